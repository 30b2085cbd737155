"""A requester's submit: what is stored, once, and what is refused with nothing stored."""

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from app.domain.contract import ChatRequest, Face, parse_chat_request
from app.domain.errors import (
    BadRequest,
    ContractRefusal,
    InvalidApiKey,
    KudosCapExceeded,
    NoEligibleWorker,
    OperationKeyMismatch,
)
from app.domain.model_sizes import is_in_table
from app.domain.redis_keys import QUEUE_CHANNEL, QueueSignal
from app.services.submit_request import Submission
from tests.app.services.conftest import CHAT, Listen, World

KEY = "an-operation-key-of-22-chars"


def listing(*models: str) -> ChatRequest:
    """A request that any of these models may serve."""
    body = {key: value for key, value in CHAT.items() if key != "model"} | {"models": list(models)}
    return parse_chat_request(body, Face.NATIVE)


def requests_of(world: World) -> int:
    return len(world.execute("SELECT id FROM horde_requests"))


def test_a_request_waits_in_the_queue_once_it_is_accepted(world: World) -> None:
    accepted = world.ask()
    assert accepted.status["state"] == "queued"
    assert world.execute("SELECT request_id FROM queue_entries") == [(accepted.id,)]


def test_the_answer_carries_the_status_that_a_read_gives(world: World) -> None:
    accepted = world.ask()
    assert accepted.status | {"queue_position": 1} == world.status(accepted.id)


def test_the_queue_is_rung_with_the_requirements_of_the_request(world: World, listen: Listen) -> None:
    next_message = listen(QUEUE_CHANNEL)
    world.ask()
    message = next_message()
    assert message is not None
    assert QueueSignal.decode(message).requirements["models"] == ["m"]


def test_the_same_operation_key_and_body_answer_the_first_request(world: World) -> None:
    first = world.ask(KEY)
    second = world.ask(KEY)
    assert (second.id, second.kudos, second.replayed) == (first.id, first.kudos, True)
    assert requests_of(world) == 1


def test_twins_of_one_operation_key_make_one_request(world: World) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: world.ask(KEY), range(4)))
    assert len({answer.id for answer in answers}) == 1
    assert [answer.replayed for answer in answers].count(False) == 1
    assert requests_of(world) == 1


def test_a_replay_is_answered_after_every_worker_has_gone(world: World) -> None:
    first = world.ask(KEY)
    world.execute("UPDATE workers SET last_seen_at = now() - interval '1 hour'")
    assert world.ask(KEY).id == first.id


def test_the_same_operation_key_with_another_body_is_refused(world: World) -> None:
    world.ask(KEY)
    with pytest.raises(OperationKeyMismatch):
        world.ask(KEY, max_tokens=17)
    assert requests_of(world) == 1


def test_the_same_operation_key_of_another_account_is_another_request(world: World) -> None:
    first = world.ask(KEY)
    chat = parse_chat_request(CHAT, Face.NATIVE)
    second = world.submit(Submission(api_key=world.owner_key, chat=chat, operation_key=KEY))
    assert second.id != first.id


def test_anonymous_operation_keys_are_apart_by_address(world: World) -> None:
    chat = parse_chat_request(CHAT, Face.NATIVE)
    ids = {
        world.submit(Submission(api_key="0000000000", chat=chat, operation_key=KEY, address=address)).id
        for address in ("192.0.2.1", "192.0.2.2", "192.0.2.1")
    }
    assert len(ids) == 2


def test_a_short_operation_key_is_refused_for_anonymous_requesters(world: World) -> None:
    chat = parse_chat_request(CHAT, Face.NATIVE)
    with pytest.raises(BadRequest, match="operation_key"):
        world.submit(Submission(api_key="0000000000", chat=chat, operation_key="short"))


def test_a_model_without_an_online_worker_is_refused_and_not_stored(world: World) -> None:
    with pytest.raises(NoEligibleWorker, match="nobody-serves-this"):
        world.ask(model="nobody-serves-this")
    assert requests_of(world) == 0


def test_a_feature_that_nobody_declares_is_accepted_with_its_gap(world: World) -> None:
    accepted = world.ask(response_format={"type": "json_object"})
    assert accepted.status["declaration_gap"] == {
        "missing": [{"name": "json_object", "workers": 0}, {"name": "json_object_enforced", "workers": 0}]
    }


def test_max_tokens_above_every_workers_length_is_lowered_with_a_warning(world: World) -> None:
    accepted = world.ask(max_tokens=4000)
    assert "4000 to 1024" in accepted.warnings[0]
    assert world.execute("SELECT max_length FROM horde_requests") == [(1024,)]


def test_a_list_of_models_may_name_one_that_was_served_before(world: World) -> None:
    world.pop(name="other-box", model_id="gone", models=["gone"])
    world.execute("UPDATE workers SET last_seen_at = now() - interval '1 hour' WHERE name = 'other-box'")
    accepted = world.submit(Submission(api_key=world.requester_key, chat=listing("m", "gone")))
    assert accepted.status["eligible_workers"] == 1


def test_an_unknown_name_in_a_list_of_models_refuses_the_whole_request(world: World) -> None:
    with pytest.raises(ContractRefusal, match="never-heard-of") as refused:
        world.submit(Submission(api_key=world.requester_key, chat=listing("m", "never-heard-of")))
    assert (refused.value.http_status, refused.value.code) == (404, "model_not_found")
    assert requests_of(world) == 0


def test_a_model_of_the_bundled_table_is_known(world: World) -> None:
    assert is_in_table("gpt-oss-20b")
    assert world.submit(Submission(api_key=world.requester_key, chat=listing("m", "gpt-oss-20b"))).id


def test_the_oldest_turns_fall_where_the_client_allows_it_and_the_whole_text_is_kept(world: World) -> None:
    long = [
        {"role": "user", "content": "a" * 30_000},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
    ]
    accepted = world.ask(messages=long, horde={"context_fit": "truncate_oldest"})
    assert "oldest 2 messages" in accepted.warnings[0]
    assert accepted.status["limits_gap"] is None
    prompt, submitted = world.execute("SELECT prompt, submitted_prompt FROM request_bodies")[0]
    assert prompt == "user: c"
    assert submitted == f"user: {'a' * 30_000}\nassistant: b\nuser: c"
    job = world.pop()
    assert job.payload is not None
    assert job.payload["messages"] == [long[2]]


def test_a_latest_turn_that_is_too_long_is_a_limits_gap(world: World) -> None:
    message = {"role": "user", "content": "c" * 60_000}
    accepted = world.ask(messages=[message], horde={"context_fit": "truncate_oldest"})
    gap = accepted.status["limits_gap"]
    assert (gap["limit"], gap["largest"]) == ("max_context_length", 8192)


def test_a_quote_above_the_requests_own_cap_is_refused(world: World) -> None:
    with pytest.raises(KudosCapExceeded, match="above horde"):
        world.ask(horde={"max_kudos": 0.5})
    assert requests_of(world) == 0


def test_an_unknown_key_is_refused(world: World) -> None:
    chat = parse_chat_request(CHAT, Face.NATIVE)
    with pytest.raises(InvalidApiKey):
        world.submit(Submission(api_key="no-such-key", chat=chat))


def test_a_dry_run_quotes_and_stores_nothing(world: World) -> None:
    chat = parse_chat_request(CHAT, Face.NATIVE)
    assert world.submit.quote(Submission(api_key=world.requester_key, chat=chat)) == world.ask().kudos
    assert requests_of(world) == 1


def test_a_front_may_propose_the_id(world: World) -> None:
    proposed = uuid4()
    chat = parse_chat_request(CHAT, Face.NATIVE)
    accepted = world.submit(Submission(api_key=world.requester_key, chat=chat, proposed_id=proposed))
    assert accepted.id == proposed


def test_more_kudos_come_first_and_age_makes_up_for_it(world: World) -> None:
    world.execute(
        "INSERT INTO ledger_entries (business_key, kind, user_id, amount)"
        " VALUES ('g', 'grant', :rich, 2000000), ('g', 'issue', 1, -2000000)",
        rich=world.owner_id,
    )
    poor = world.ask()
    chat = parse_chat_request(CHAT, Face.NATIVE)
    rich = world.submit(Submission(api_key=world.owner_key, chat=chat))
    assert world.execute("SELECT request_id FROM queue_entries ORDER BY sort_key") == [(rich.id,), (poor.id,)]
