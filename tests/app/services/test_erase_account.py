"""What is erased of a person, what stays for the ledger, and what an export tells before."""

from typing import Any

import orjson
import pytest
from sqlalchemy import text

from app.domain.errors import BadRequest, DeletedUser, InvalidApiKey
from app.domain.reports import ReportKind
from app.domain.shared_key_terms import parse_shared_key
from app.domain.system_accounts import ANONYMOUS_ID
from app.services.accounts import authenticate, find_account, get_account
from app.services.erase_account import Erased, erase_account
from app.services.export_account import export_account
from app.services.reports import Reports
from app.services.settle import settle_batch
from app.services.shared_keys import SharedKeys
from app.services.transfers import TransferKudos
from app.services.under_way import Ended
from app.services.verify_generation import verify_generation
from tests.app.services.conftest import World

SECRET = "the name of my cat is Mauzi"
TABLES = (
    "users",
    "api_keys",
    "workers",
    "worker_messages",
    "horde_requests",
    "request_bodies",
    "replies",
    "generations",
    "operation_keys",
    "kudos_transfers",
    "ledger_entries",
    "suspicions",
    "bans",
    "reports",
)


def erase(world: World, user_id: int) -> Erased:
    with world.runtime.database.transaction() as transaction:
        account = get_account(transaction, user_id)
    return erase_account(world.runtime, account)


def export(world: World, user_id: int) -> Any:
    with world.runtime.database.transaction() as transaction:
        return orjson.loads(b"".join(export_account(transaction, user_id)))


def database(world: World) -> str:
    """Everything that the tables with something about accounts hold."""
    with world.runtime.database.transaction() as transaction:
        return "\n".join(
            str(row)
            for table in TABLES
            for row in transaction.execute(text(f"SELECT row_to_json(t)::text FROM {table} t")).scalars()  # noqa: S608
        )


def live(world: World) -> str:
    """Let the requester do whatever leaves a trace, and return the id of its shared key."""
    asked: dict[str, Any] = {"messages": [{"role": "user", "content": SECRET}]}
    _, generation_id = world.leased(operation_key="an-operation-key-of-mine", **asked)
    world.deliver(generation_id, {"message": {"content": f"I see: {SECRET}"}, "finish_reason": "stop"})
    verify_generation(world.runtime, generation_id)
    settle_batch(world.runtime)
    world.ask(**asked)
    shared = SharedKeys(world.runtime).create(world.requester_key, parse_shared_key({"name": "for my mother"}))["id"]
    _, donor_key = world.account("donor", grants=100_000)
    TransferKudos(world.runtime)(donor_key, shared, 5, None)
    TransferKudos(world.runtime)(world.requester_key, f"bob#{world.owner_id}", 5, "my-transfer-key")
    reports = Reports(world.runtime)
    ((worker,),) = world.execute("SELECT id FROM workers")
    reports.make(world.requester_key, ReportKind.WORKER, str(worker), "It said that my cat is ugly.")
    reports.make(donor_key, ReportKind.REQUESTER, str(world.requester_id), "It begs in every prompt.")
    world.execute(
        "UPDATE users SET contact = 'ann@example.org', admin_comment = 'a cat person' WHERE id = :id",
        id=world.requester_id,
    )
    world.execute("INSERT INTO suspicions (user_id, reason) VALUES (:id, 'corrupt_prompt')", id=world.requester_id)
    return str(shared)


def test_nothing_personal_is_left_and_the_books_still_balance(world: World) -> None:
    shared = live(world)
    traces = [SECRET, "cat person", "is ugly", "begs", '"ann"', "example.org", shared, "for my mother"]
    traces += ["an-operation-key-of-mine", "my-transfer-key"]
    before = database(world)
    assert [trace for trace in traces if trace not in before] == []
    kudos = world.kudos(world.requester_id)
    assert erase(world, world.requester_id) == Erased(Ended(requests=1), left=0)
    after = database(world)
    assert [trace for trace in traces if trace in after] == []
    assert world.kudos(world.requester_id)[0] >= kudos[0]
    assert world.execute("SELECT username FROM users WHERE id = :id", id=world.requester_id) == [("erased",)]


def test_what_faults_and_requirements_quote_of_a_text_is_erased_too(world: World) -> None:
    for _ in range(3):
        _, generation_id = world.leased()
        world.replies.fault(world.owner_key, generation_id, "out of memory")
        world.execute("UPDATE workers SET failed_at = NULL")
    world.execute(
        "UPDATE horde_requests SET fault = jsonb_build_object('message', CAST(:secret AS text)), "
        "requirements = jsonb_set(requirements, '{refused_words}', '[\"Mauzi\"]')",
        secret=SECRET,
    )
    erase(world, world.requester_id)
    assert "Mauzi" not in database(world)


def test_no_key_of_an_erased_account_is_good(world: World) -> None:
    shared = live(world)
    erase(world, world.requester_id)
    for key in (world.requester_key, shared):
        with world.runtime.database.statements() as transaction, pytest.raises((InvalidApiKey, DeletedUser)):
            authenticate(transaction, key)


def test_an_owners_workers_are_deleted_and_their_jobs_go_to_others(world: World) -> None:
    request_id, _ = world.leased()
    world.execute("UPDATE workers SET info = 'in my kitchen', address = '203.0.113.7'")
    assert erase(world, world.owner_id) == Erased(Ended(jobs=1), left=0)
    assert world.state_of("horde_requests", request_id) == "queued"
    rows = world.execute(
        "SELECT name, info, address, deleted_at IS NOT NULL, declaration ->> 'name', declaration ->> 'model_id' "
        "FROM workers"
    )
    assert rows == [("erased", None, None, True, "erased", "m")]
    with pytest.raises(InvalidApiKey):
        world.pop()


def test_the_same_erasure_again_changes_nothing(world: World) -> None:
    live(world)
    erase(world, world.requester_id)
    once = database(world)
    assert erase(world, world.requester_id) == Erased(Ended(), left=0)
    assert database(world) == once


def test_a_reply_that_is_being_judged_keeps_its_text_until_the_next_time(world: World) -> None:
    _, generation_id = world.leased(messages=[{"role": "user", "content": SECRET}])
    world.deliver(generation_id)
    assert erase(world, world.requester_id).left == 1
    verify_generation(world.runtime, generation_id)
    settle_batch(world.runtime)
    assert erase(world, world.requester_id).left == 0
    assert "Mauzi" not in database(world)


def test_an_erased_account_is_found_by_its_number_whatever_name_is_given(world: World) -> None:
    erase(world, world.requester_id)
    with world.runtime.database.transaction() as transaction:
        assert find_account(transaction, f"ann#{world.requester_id}").alias == f"erased#{world.requester_id}"


def test_the_hordes_own_accounts_are_not_erased(world: World) -> None:
    with pytest.raises(BadRequest):
        erase(world, ANONYMOUS_ID)


def test_an_export_holds_all_that_is_stored(world: World) -> None:
    live(world)
    told = export(world, world.requester_id)
    assert told["account"][0]["contact"] == "ann@example.org"
    assert told["kudos"]["balance"] == world.kudos(world.requester_id)[0]
    assert [key["name"] for key in told["keys"]] == ["test", "for my mother"]
    served = next(each for each in told["requests"] if each["state"] == "done")
    assert served["contract"]["messages"][0]["content"] == SECRET
    assert SECRET in served["generations"][0]["reply"]["content"]
    assert {entry["kind"] for entry in told["ledger"]} >= {"charge", "gift", "receipt"}
    assert len(told["transfers"]) == 2
    assert told["operation_keys"][0]["key"] == "an-operation-key-of-mine"
    assert [each["reason"] for each in told["reports_by_the_account"]] == ["It said that my cat is ugly."]
    assert len(told["suspicions"]) == 1


def test_an_export_names_no_secret_and_nobody_who_reported(world: World) -> None:
    live(world)
    told = orjson.dumps(export(world, world.requester_id)).decode()
    assert "sha256" not in told
    assert world.requester_key not in told
    assert "begs" not in told


def test_an_export_of_an_owner_tells_of_workers_and_jobs_and_of_nobodys_prompts(world: World) -> None:
    live(world)
    told = export(world, world.owner_id)
    assert [worker["name"] for worker in told["workers"]] == ["box"]
    assert [job["state"] for job in told["jobs"]] == ["settled"]
    assert SECRET not in orjson.dumps(told).decode()


def test_an_export_of_many_rows_is_read_in_parts_and_whole(world: World) -> None:
    world.enrich()
    world.execute(
        "INSERT INTO suspicions (user_id, reason) SELECT :id, 'corrupt_prompt' FROM generate_series(1, 1234)",
        id=world.requester_id,
    )
    assert len(export(world, world.requester_id)["suspicions"]) == 1234
