"""Concurrency, upfront kudos and key limits: checked as the request is stored, and given back with its end."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from app.domain.contract import Face, parse_chat_request
from app.domain.errors import (
    HordeError,
    KudosUpfront,
    RequestNotFound,
    SharedKeyEmpty,
    SharedKeyExpired,
    SharedKeyInsufficientKudos,
    TooManyPrompts,
    WrongCredentials,
)
from app.domain.shared_key_terms import parse_shared_key
from app.domain.system_accounts import ANONYMOUS_ID, ANONYMOUS_KEY
from app.services import accounts
from app.services.settle import settle_batch
from app.services.shared_keys import SharedKeys
from app.services.submit_request import Accepted, Submission, SubmitRequest
from app.services.sweep import sweep
from app.services.verify_generation import verify_generation
from tests.app.services.conftest import CHAT, World

LONG: dict[str, Any] = {"max_tokens": 1024}
HOLD = 48_760
"""What is held for 1 024 tokens of a model of unknown size."""


def ask(world: World, key: str, operation_key: str | None = None, **changes: Any) -> Accepted:
    chat = parse_chat_request(CHAT | changes, Face.NATIVE)
    return world.submit(Submission(api_key=key, chat=chat, operation_key=operation_key, address="198.51.100.7"))


def limited(world: World, **limits: int) -> World:
    """Give the world's submits other limits."""
    settings = world.runtime.settings.model_copy(update=limits)
    submit, runtime = world.submit, replace(world.runtime, settings=settings)
    world.submit = SubmitRequest(runtime, world.online, submit._classes, submit._statuses)
    return world


def outcomes(world: World, key: str, count: int, **changes: Any) -> list[Accepted | HordeError]:
    """Submit at once from several threads."""

    def one(_: int) -> Accepted | HordeError:
        try:
            return ask(world, key, **changes)
        except HordeError as refusal:
            return refusal

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(one, range(count)))


def test_no_more_requests_of_an_account_wait_than_may(world: World) -> None:
    answers = outcomes(limited(world, user_concurrency=3), world.requester_key, 12)
    assert sum(isinstance(answer, Accepted) for answer in answers) == 3
    assert {type(answer) for answer in answers} == {Accepted, TooManyPrompts}


def test_a_request_that_a_worker_took_no_longer_counts(world: World) -> None:
    limited(world, user_concurrency=1)
    world.leased()
    assert world.ask().status["state"] == "queued"


def test_the_operators_number_for_an_account_wins(world: World) -> None:
    world.execute("UPDATE users SET concurrency = 0 WHERE id = :id", id=world.requester_id)
    with pytest.raises(TooManyPrompts):
        world.ask()


def test_a_replay_is_answered_at_the_limit(world: World) -> None:
    limited(world, user_concurrency=1)
    first = world.ask("some-operation-key")
    assert world.ask("some-operation-key").id == first.id
    with pytest.raises(TooManyPrompts):
        world.ask("another-operation-key")
    assert world.execute("SELECT count(*) FROM operation_keys") == [(1,)]


def test_anonymous_requests_count_by_model(world: World) -> None:
    limited(world, anonymous_concurrency=2)
    world.pop(name="other", models=["o"], model_id="o")
    world.online._taken_at = float("-inf")
    ask(world, ANONYMOUS_KEY)
    ask(world, ANONYMOUS_KEY)
    with pytest.raises(TooManyPrompts):
        ask(world, ANONYMOUS_KEY)
    assert ask(world, ANONYMOUS_KEY, model="o").status["state"] == "queued"


def test_a_long_request_holds_kudos_until_it_ends(world: World) -> None:
    before, _ = world.kudos(world.requester_id)
    request_id = world.ask(**LONG).id
    assert world.kudos(world.requester_id)[0] == before - HOLD
    world.cancel(request_id, api_key=world.requester_key, trusted_front=False)
    assert world.kudos(world.requester_id)[0] == before


def test_a_short_request_holds_nothing(world: World) -> None:
    before = world.kudos(world.requester_id)
    world.ask(max_tokens=512)
    assert world.kudos(world.requester_id) == before


def test_a_request_that_refuses_slow_workers_holds_kudos(world: World) -> None:
    before, _ = world.kudos(world.requester_id)
    world.ask(max_tokens=21, horde={"slow_workers": False})
    assert world.kudos(world.requester_id)[0] == before - 1000


def done(world: World, generation_id: UUID) -> None:
    world.deliver(generation_id)
    verify_generation(world.runtime, generation_id)


def faulted(world: World, generation_id: UUID) -> None:
    for _ in range(3):
        world.replies.fault(world.owner_key, generation_id, "backend_error")
        generation_id = world.pop().id or generation_id


def expired(world: World, _: UUID) -> None:
    world.execute("UPDATE horde_requests SET expires_at = now() - interval '1 second'")
    sweep(world.runtime)


@pytest.mark.parametrize(("end", "state"), [(done, "done"), (faulted, "faulted"), (expired, "expired")])
def test_every_end_releases_the_hold_once(world: World, end: Callable[[World, UUID], None], state: str) -> None:
    request_id, generation_id = world.leased(**LONG)
    end(world, generation_id)
    assert world.state_of("horde_requests", request_id) == state
    assert world.execute(
        "SELECT kind, pocket, amount FROM ledger_entries WHERE business_key = :key ORDER BY id",
        key=f"upfront:{request_id}",
    ) == [
        ("hold", "spendable", -HOLD),
        ("held", "held", HOLD),
        ("release", "spendable", HOLD),
        ("released", "held", -HOLD),
    ]


def test_two_requests_cannot_hold_the_same_kudos(world: World) -> None:
    _, key = world.account("cy", grants=HOLD)
    answers = outcomes(world, key, 4, **LONG)
    assert sum(isinstance(answer, Accepted) for answer in answers) == 1
    assert {type(answer) for answer in answers} == {Accepted, KudosUpfront}


def test_a_request_without_the_kudos_is_refused_and_stores_nothing(world: World) -> None:
    user_id, key = world.account("cy")
    with pytest.raises(KudosUpfront) as refused:
        ask(world, key, "an-operation-key", **LONG)
    assert refused.value.metadata == {"hold": 48.76, "kudos": 14.0, "free_cap": 512}
    assert world.kudos(user_id) == (14_000, 0)
    assert world.execute("SELECT count(*) FROM horde_requests") == [(0,)]
    assert world.execute("SELECT count(*) FROM operation_keys") == [(0,)]


def test_a_downgrade_cuts_the_request_and_puts_it_last(world: World) -> None:
    user_id, key = world.account("cy")
    accepted = ask(world, key, horde={"allow_downgrade": True, "slow_workers": False}, **LONG)
    assert world.execute("SELECT max_length, hold FROM horde_requests") == [(512, 0)]
    assert accepted.warnings
    assert world.kudos(user_id) == (14_000, 0)
    poor = ask(world, ANONYMOUS_KEY)
    assert world.execute("SELECT request_id FROM queue_entries ORDER BY sort_key") == [(accepted.id,), (poor.id,)]


def test_a_default_length_is_cut_where_a_long_queue_would_ask_for_kudos(world: World) -> None:
    _, key = world.account("cy")
    limited(world, anonymous_concurrency=400)
    for _ in range(30):
        ask(world, ANONYMOUS_KEY)
    world.execute(
        "UPDATE users SET concurrency = 1000 WHERE id = :id",
        id=ANONYMOUS_ID,
    )
    accepted = ask(world, key)
    cap = 512 + 5 * 2 - 27
    assert world.execute("SELECT max_length, hold FROM horde_requests WHERE id = :id", id=accepted.id) == [(cap, 0)]
    assert accepted.warnings == ()
    with pytest.raises(KudosUpfront):
        ask(world, key, max_tokens=cap + 1)


def shared(world: World, **terms: object) -> str:
    return str(SharedKeys(world.runtime).create(world.requester_key, parse_shared_key(terms))["id"])


def test_a_shared_key_spends_its_owners_kudos_and_counts_them(world: World) -> None:
    key = shared(world, kudos=100)
    before, _ = world.kudos(world.requester_id)
    ask(world, key)
    generation_id = world.pop().id
    assert generation_id is not None
    done(world, generation_id)
    settle_batch(world.runtime)
    spent = before - world.kudos(world.requester_id)[0]
    found = SharedKeys(world.runtime).read(UUID(key))
    assert spent > 0
    assert (found["utilized"], found["kudos"]) == (spent / 1000, 100 - spent / 1000)


def test_open_requests_count_against_a_shared_key_by_their_quote(world: World) -> None:
    key = shared(world, kudos=12)
    assert ask(world, key).kudos == 8.8
    with pytest.raises(SharedKeyInsufficientKudos):
        ask(world, key)


def test_requests_at_once_cannot_spend_the_same_kudos_of_a_key(world: World) -> None:
    answers = outcomes(world, shared(world, kudos=12), 4)
    assert sum(isinstance(answer, Accepted) for answer in answers) == 1


@pytest.mark.parametrize("kudos", [0, 1])
def test_a_spent_shared_key_goes_on_as_anonymous_when_that_is_allowed(world: World, kudos: int) -> None:
    key = shared(world, kudos=kudos)
    with pytest.raises((SharedKeyEmpty, SharedKeyInsufficientKudos)):
        ask(world, key)
    accepted = ask(world, key, horde={"allow_downgrade": True})
    assert world.execute("SELECT user_id, key_id FROM horde_requests WHERE id = :id", id=accepted.id) == [
        (ANONYMOUS_ID, None)
    ]


def test_an_expired_shared_key_is_refused_by_its_name(world: World) -> None:
    key = shared(world)
    world.execute("UPDATE api_keys SET expires_at = now() - interval '1 second' WHERE shared_id IS NOT NULL")
    with pytest.raises(SharedKeyExpired):
        ask(world, key)


def test_a_shared_keys_longest_reply_binds_and_shortens_the_default(world: World) -> None:
    key = shared(world, max_text_tokens=100)
    with pytest.raises(HordeError, match="at most 100 tokens"):
        ask(world, key, max_tokens=101)
    accepted = ask(world, key)
    assert world.execute("SELECT max_length FROM horde_requests WHERE id = :id", id=accepted.id) == [(100,)]


def test_a_shared_key_reads_and_cancels_what_was_asked_with_it_and_no_more(world: World) -> None:
    key = shared(world)
    own, others = ask(world, key).id, world.ask().id
    assert world.read(own, api_key=key, trusted_front=False)["state"] == "queued"
    assert world.read(own, api_key=world.requester_key, trusted_front=False)["state"] == "queued"
    with pytest.raises(RequestNotFound):
        world.read(others, api_key=key, trusted_front=False)
    with pytest.raises(RequestNotFound):
        world.cancel(others, api_key=key, trusted_front=False)


def test_a_shared_key_gets_no_job(world: World) -> None:
    world.owner_key = shared(world)
    with pytest.raises(HordeError) as refused:
        world.pop()
    assert refused.value.rc == "InvalidAPIKey"


def test_users_of_one_shared_key_share_operation_keys_and_others_do_not(world: World) -> None:
    key = shared(world)
    first = ask(world, key, "an-operation-key")
    assert ask(world, key, "an-operation-key").id == first.id
    assert world.ask("an-operation-key").id != first.id


def test_a_key_with_a_limit_stops_at_it(world: World) -> None:
    world.execute("UPDATE api_keys SET kudos_limit = 12000 WHERE user_id = :id", id=world.requester_id)
    world.ask()
    with pytest.raises(SharedKeyInsufficientKudos):
        world.ask()


@pytest.mark.parametrize("limits", [{"kudos_limit": 0}, {"expires_at": datetime.now(UTC) + timedelta(days=1)}])
def test_a_key_with_limits_makes_and_changes_no_keys_without_them(world: World, limits: dict[str, Any]) -> None:
    other = UUID(str(SharedKeys(world.runtime).create(world.requester_key, parse_shared_key({}))["id"]))
    with world.runtime.database.transaction() as transaction:
        _, limited = accounts.create_key(transaction, world.requester_id, "limited", **limits)
    unlimited = parse_shared_key({"kudos": -1})
    with pytest.raises(WrongCredentials):
        SharedKeys(world.runtime).create(limited, unlimited)
    with pytest.raises(WrongCredentials):
        SharedKeys(world.runtime).change(limited, other, unlimited)
    with pytest.raises(WrongCredentials):
        SharedKeys(world.runtime).delete(limited, other)
