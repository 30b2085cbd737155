"""Bans of accounts and networks: who is refused, what becomes of what they have under way, and how bans end."""

from collections.abc import Callable
from uuid import UUID

import pytest

from app.adapters.database import STATEMENTS
from app.domain.capabilities import parse_declaration
from app.domain.errors import AddressBanned, BadRequest, LeaseEnded, UserBanned
from app.domain.progress import ProgressPost
from app.domain.system_accounts import ANONYMOUS_ID, ANONYMOUS_KEY, HORDE_ID
from app.domain.text_request import parse_text_request
from app.models.account import AccountKind
from app.services import bans
from app.services.accounts import authenticate, create_user, get_account
from app.services.address_bans import AddressBans
from app.services.countermeasures import Countermeasures, Timeouts
from app.services.modes import Modes
from app.services.pop import Pop
from app.services.progress import PostProgress
from app.services.registration import Register
from app.services.sweep import sweep
from app.services.under_way import Ended, end_all_under_way
from tests.app.services.conftest import DECLARATION, World

AWAY = "203.0.113.7"


def ban(world: World, user_id: int, reason: str | None = None, hours: float | None = None) -> Ended:
    """Ban an account, as the command does."""
    with world.runtime.database.transaction() as transaction:
        bans.ban_account(transaction, get_account(transaction, user_id), reason, hours)
    return end_all_under_way(world.runtime, [user_id])


def ban_network(world: World, network: str, reason: str | None = None) -> None:
    with world.runtime.database.transaction() as transaction:
        bans.ban_network(transaction, network, reason, None)


def unban(world: World, user_id: int) -> None:
    with world.runtime.database.transaction() as transaction:
        assert bans.unban_account(transaction, user_id)


def known(world: World, key: str) -> str:
    with world.runtime.database.statements() as transaction:
        return authenticate(transaction, key).username


def test_a_banned_account_is_told_why_and_until_when(world: World) -> None:
    ban(world, world.requester_id, "it floods the queue.", hours=2)
    with pytest.raises(UserBanned) as refusal:
        world.ask()
    assert refusal.value.http_status == 403
    assert "it floods the queue. Ask the operator" in refusal.value.message
    assert (refusal.value.metadata or {})["ends_at"]


@pytest.mark.parametrize(
    "call",
    [
        lambda world: world.ask(),
        lambda world: world.pop(),
        lambda world: world.replies.deliver(world.owner_key, UUID(int=1), world.reply()),
        lambda world: world.replies.fault(world.owner_key, UUID(int=1), "timeout"),
    ],
)
def test_a_ban_shuts_every_way_in(world: World, call: Callable[[World], object]) -> None:
    world.requester_key = world.owner_key
    ban(world, world.owner_id)
    with pytest.raises(UserBanned):
        call(world)


def test_a_ban_ends_by_itself_or_by_the_operator(world: World) -> None:
    ban(world, world.requester_id, hours=1)
    world.execute("UPDATE bans SET ends_at = now()")
    assert known(world, world.requester_key) == "ann"
    ban(world, world.requester_id)
    with pytest.raises(UserBanned):
        known(world, world.requester_key)
    unban(world, world.requester_id)
    assert known(world, world.requester_key) == "ann"


def test_a_second_ban_of_the_same_account_has_the_last_word(world: World) -> None:
    ban(world, world.requester_id, "first", hours=1)
    ban(world, world.requester_id, "second")
    with world.runtime.database.transaction() as transaction:
        (found,) = bans.list_bans(transaction)
    assert (found["banned"], found["reason"], found["ends_at"]) == (f"ann#{world.requester_id}", "second", None)


def test_its_waiting_and_running_requests_are_cancelled_and_what_was_held_is_free_again(world: World) -> None:
    world.enrich()
    before = world.kudos(world.requester_id)
    running, _ = world.leased(max_tokens=1024)
    waiting = world.ask(max_tokens=1024)
    assert world.kudos(world.requester_id) < before
    assert ban(world, world.requester_id) == Ended(requests=2)
    assert {world.state_of("horde_requests", each) for each in (running, waiting.id)} == {"cancelled"}
    assert world.kudos(world.requester_id) == before
    assert world.execute("SELECT 1 FROM queue_entries") == []


def test_the_worker_that_has_its_job_is_paid_all_the_same(world: World) -> None:
    _, generation_id = world.leased()
    ban(world, world.requester_id)
    world.deliver(generation_id)
    assert world.state_of("generations", generation_id) == "submitted"


def test_a_stream_is_settled_on_what_was_posted(world: World) -> None:
    request_id, generation_id = world.leased(stream=True)
    post = ProgressPost(generation_id=generation_id, seq=0, delta="Once upon a time " * 20, reasoning_delta="")
    PostProgress(world.runtime)(world.owner_key, post)
    assert ban(world, world.requester_id) == Ended(requests=1)
    assert world.state_of("horde_requests", request_id) == "cancelled"
    assert world.execute("SELECT state, charge > 0 FROM generations") == [("settled", True)]


def test_a_text_request_with_slots_at_workers_and_in_the_queue_is_cancelled_whole(world: World) -> None:
    text_request = parse_text_request({"prompt": "Once upon", "params": {"n": 3}, "models": ["m"]})
    accepted = world.submit_text(world.requester_key, text_request)
    assert world.pop(prompt_jobs=True, chat_jobs=False).request_id == accepted.id
    assert ban(world, world.requester_id) == Ended(requests=1)
    assert world.state_of("horde_requests", accepted.id) == "cancelled"
    assert world.execute("SELECT 1 FROM queue_entries") == []


def test_jobs_of_its_workers_go_to_others_without_a_fault(world: World) -> None:
    request_id, generation_id = world.leased(stream=True)
    assert ban(world, world.owner_id) == Ended(jobs=1)
    assert world.state_of("horde_requests", request_id) == "queued"
    assert world.execute("SELECT faults FROM horde_requests") == [(0,)]
    assert world.execute("SELECT aborts FROM workers") == [(0,)]
    post = ProgressPost(generation_id=generation_id, seq=0, delta="too late", reasoning_delta="")
    with pytest.raises(LeaseEnded):
        PostProgress(world.runtime)(world.owner_key, post)
    _, key = world.account("carl")
    declaration, _ = parse_declaration(DECLARATION | {"name": "another box"})
    assert world.pops(key, declaration, None).request_id == request_id


def test_its_workers_are_offline_at_once_and_come_back_after_the_ban(world: World) -> None:
    def online() -> int:
        with world.runtime.database.statements() as transaction:
            return len(world.online.fresh_pool(transaction).candidates)

    world.online._taken_at = float("-inf")
    assert online() == 1
    ban(world, world.owner_id)
    world.online._taken_at = float("-inf")
    assert online() == 0
    unban(world, world.owner_id)
    world.pop()
    world.online._taken_at = float("-inf")
    assert online() == 1


def test_the_sweep_ends_what_slipped_in_while_the_ban_was_set(world: World) -> None:
    accepted = world.ask()
    with world.runtime.database.transaction() as transaction:
        bans.ban_account(transaction, get_account(transaction, world.requester_id), None, None)
    assert world.state_of("horde_requests", accepted.id) == "queued"
    sweep(world.runtime)
    assert world.state_of("horde_requests", accepted.id) == "cancelled"


def test_without_banned_accounts_the_sweep_looks_once(world: World) -> None:
    before = STATEMENTS._value.get()
    assert bans.end_banned(world.runtime) == Ended()
    assert STATEMENTS._value.get() - before == 1


def test_anonymous_access_can_be_shut(world: World) -> None:
    ban(world, ANONYMOUS_ID, "Register to ask")
    with pytest.raises(UserBanned, match="Register to ask"):
        known(world, ANONYMOUS_KEY)


def test_the_hordes_own_accounts_and_services_cannot_be_banned(world: World) -> None:
    with world.runtime.database.transaction() as transaction:
        service = create_user(transaction, "front", AccountKind.SERVICE)
    for user_id in (HORDE_ID, service):
        with pytest.raises(BadRequest):
            ban(world, user_id)


def test_no_request_comes_from_a_banned_network(world: World) -> None:
    ban_network(world, "203.0.113.0/24", "It is an open proxy")
    countermeasures = Countermeasures(world.runtime, Modes(world.runtime), Timeouts(world.runtime))
    with pytest.raises(AddressBanned, match="open proxy"), countermeasures.screened(world.requester_key, AWAY):
        pass
    with countermeasures.screened(world.requester_key, "203.0.114.1"):
        pass


def test_no_worker_and_no_registration_comes_from_a_banned_network(world: World) -> None:
    ban_network(world, "203.0.113.0/24")
    declaration, _ = parse_declaration(DECLARATION)
    pops = Pop(world.runtime, world.online, world.pops._classes, world.queue_info)
    with pytest.raises(AddressBanned):
        pops(world.owner_key, declaration, None, AWAY)
    with pytest.raises(AddressBanned):
        Register(world.runtime)("Newcomer", AWAY)
    assert pops(world.owner_key, declaration, None, "203.0.114.1").worker_id is not None


def test_a_process_looks_at_the_networks_once_in_two_seconds(world: World) -> None:
    process = AddressBans(world.runtime.database)
    process.check(AWAY)
    before = STATEMENTS._value.get()
    for _ in range(100):
        process.check(AWAY)
    assert STATEMENTS._value.get() == before


def test_networks_are_read_again_only_when_one_of_them_changed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.services.address_bans.FRESH_SECONDS", 0.0)
    world.execute(
        "INSERT INTO bans (network, ends_at) SELECT CAST('10.0.0.0' AS inet) + 256 * n, now() + interval '1 hour' "
        "FROM generate_series(1, 2000) n"
    )
    process = AddressBans(world.runtime.database)
    with pytest.raises(AddressBanned):
        process.check("10.0.1.0")
    table = process._table
    process.check(AWAY)
    assert process._table is table
    ban_network(world, AWAY)
    with pytest.raises(AddressBanned):
        process.check(AWAY)
    world.execute("UPDATE bans SET ends_at = now() WHERE network = '10.0.1.0/32'")
    process.check("10.0.1.0")
    with pytest.raises(AddressBanned):
        process.check("10.0.2.0")


def test_a_network_is_let_in_again(world: World) -> None:
    ban_network(world, AWAY)
    with world.runtime.database.transaction() as transaction:
        assert bans.unban_network(transaction, AWAY)
        assert not bans.unban_network(transaction, AWAY)
    AddressBans(world.runtime.database).check(AWAY)
