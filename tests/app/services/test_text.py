"""Text requests: several generations, exact counts, and the same queue as chat."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest

from app.domain.errors import (
    AbortedGen,
    BadRequest,
    CorruptPrompt,
    KudosUpfront,
    RequiresTrust,
    SharedKeyEmpty,
    TooManyPrompts,
    WorkerNotFound,
)
from app.domain.moderation import FilterKind
from app.domain.shared_key_terms import parse_shared_key
from app.domain.system_accounts import ANONYMOUS_ID
from app.domain.text_reply import TextReply
from app.domain.text_request import parse_text_request
from app.services.filters import NewFilter, add_filter
from app.services.pop import Job
from app.services.settle import settle_batch
from app.services.shared_keys import SharedKeys
from app.services.sweep import sweep
from tests.app.services.conftest import World

BRIDGE: dict[str, Any] = {
    "name": "bridge",
    "chat_jobs": False,
    "prompt_jobs": True,
    "model_id": None,
    "models": ["koboldcpp/Demo-8B"],
}


def ask(world: World, **changes: Any) -> UUID:
    params = {"n": changes.pop("n", 1), "max_length": changes.pop("max_length", 80)}
    return world.submit_text(
        world.requester_key, parse_text_request({"prompt": "Once upon", "params": params, **changes})
    ).id


def pop(world: World, **changes: Any) -> Job:
    return world.pop(**BRIDGE | changes)


def deliver(world: World, generation_id: UUID, text: str = "a time", state: str = "ok") -> float | None:
    return world.text_replies(world.owner_key, generation_id, TextReply(text=text, state=state)).reward


def status(world: World, request_id: UUID) -> dict[str, Any]:
    return world.read.text(request_id)


def test_a_text_request_goes_to_a_bridge_and_comes_back(world: World) -> None:
    request_id = ask(world, models=["koboldcpp/Demo-8B"])
    job = pop(world)
    assert job.payload is not None
    assert job.id is not None
    assert (job.is_chat, job.model, job.payload["prompt"]) == (False, "koboldcpp/Demo-8B", "Once upon")
    assert deliver(world, job.id) is not None
    found = status(world, request_id)
    assert (found["done"], found["finished"], found["generations"][0]["text"]) == (True, 1, "a time")
    assert settle_batch(world.runtime) == 1


def test_generations_without_batching_go_out_one_a_pop(world: World) -> None:
    world.execute("UPDATE users SET trusted = true WHERE id = :id", id=world.requester_id)
    ask(world, n=3, disable_batching=True)
    assert [len(pop(world, amount=3).ids) for _ in range(4)] == [1, 1, 1, 0]


def test_several_generations_without_batching_are_for_trusted_accounts(world: World) -> None:
    with pytest.raises(RequiresTrust):
        ask(world, n=2, disable_batching=True)
    ask(world, n=1, disable_batching=True)


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_blocked_prompt_is_refused_with_nothing_stored(world: World, dry_run: bool) -> None:
    with world.runtime.database.transaction() as transaction:
        add_filter(transaction, NewFilter(FilterKind.BLOCK, "forbidden"))
    wanted = parse_text_request({"prompt": "Something FORBIDDEN."})
    with pytest.raises(CorruptPrompt):
        (world.submit_text.quote if dry_run else world.submit_text)(world.requester_key, wanted)
    assert world.execute("SELECT 1 FROM request_bodies") == []


def test_a_worker_gets_the_prompt_as_the_filters_rewrote_it(world: World) -> None:
    with world.runtime.database.transaction() as transaction:
        add_filter(transaction, NewFilter(FilterKind.REPLACE, "upon", "below"))
    ask(world)
    assert world.execute("SELECT prompt, submitted_prompt FROM request_bodies") == [("Once below", "Once below")]
    assert (pop(world).payload or {})["prompt"] == "Once below"


@pytest.mark.parametrize("amount", [1, 3])
def test_three_wanted_generations_are_exactly_three(world: World, amount: int) -> None:
    request_id = ask(world, n=3)
    jobs: list[UUID] = []
    while ids := pop(world, amount=amount).ids:
        assert len(ids) == amount
        jobs.extend(ids)
    assert len(jobs) == len(set(jobs)) == 3
    found = status(world, request_id)
    assert (found["waiting"], found["processing"], found["finished"]) == (0, 3, 0)
    for number, job in enumerate(jobs):
        assert not status(world, request_id)["done"]
        deliver(world, job, f"text {number}")
    found = status(world, request_id)
    assert (found["done"], [one["text"] for one in found["generations"]]) == (True, ["text 0", "text 1", "text 2"])


@pytest.mark.parametrize("progress", ["popped", "delivered", "faulted", "timed out", "released"])
def test_a_text_request_lives_on_from_its_last_progress(world: World, progress: str) -> None:
    ask(world, n=2)
    job = pop(world) if progress != "popped" else None
    world.execute("UPDATE horde_requests SET expires_at = now() + interval '1 minute'")
    if job is None:
        job = pop(world)
    assert job.id is not None
    if progress == "delivered":
        deliver(world, job.id)
    elif progress == "faulted":
        world.replies.fault(world.owner_key, job.id, "backend_error")
    elif progress == "timed out":
        world.execute("UPDATE generations SET deadline_at = now() - interval '1 second'")
        sweep(world.runtime)
    elif progress == "released":
        assert world.release(job.id)
    assert world.execute("SELECT expires_at > now() + interval '10 minutes' FROM horde_requests") == [(True,)]


def test_a_chat_request_keeps_its_deadline_whatever_happens(world: World) -> None:
    _, generation_id = world.leased()
    world.execute("UPDATE horde_requests SET expires_at = now() + interval '1 minute'")
    world.replies.fault(world.owner_key, generation_id, "backend_error")
    world.pop(name="another")
    assert world.execute("SELECT expires_at > now() + interval '2 minutes' FROM horde_requests") == [(False,)]


def test_the_tax_is_paid_once_a_request(world: World) -> None:
    ask(world, n=2)
    for _ in range(2):
        job = pop(world).id
        assert job is not None
        deliver(world, job)
    fees = world.execute("SELECT charge - reward FROM generations ORDER BY popped_at")
    assert fees == [(2000,), (1000,)]


def test_a_slot_that_failed_is_popped_again_and_the_others_go_on(world: World) -> None:
    request_id = ask(world, n=2)
    first, second = pop(world).id, pop(world).id
    assert first is not None
    assert second is not None
    world.replies.fault(world.owner_key, first, "")
    world.replies.fault(world.owner_key, first, "")
    assert (status(world, request_id)["waiting"], status(world, request_id)["restarted"]) == (1, 1)
    deliver(world, second)
    again = pop(world).id
    assert again is not None
    deliver(world, again)
    assert status(world, request_id)["done"]


def test_three_faults_over_all_generations_fault_the_request(world: World) -> None:
    request_id = ask(world, n=2)
    for _ in range(3):
        job = pop(world).id
        assert job is not None
        world.replies.fault(world.owner_key, job, "")
    found = status(world, request_id)
    assert (found["faulted"], found["done"], found["waiting"]) == (True, True, 0)
    assert pop(world).id is None


def test_a_late_reply_takes_its_slot_out_of_the_queue(world: World) -> None:
    request_id = ask(world)
    job = pop(world).id
    assert job is not None
    world.execute("UPDATE generations SET deadline_at = now() - interval '1 second'")
    sweep(world.runtime)
    assert status(world, request_id)["waiting"] == 1
    assert deliver(world, job) is not None
    assert (status(world, request_id)["done"], pop(world).id) == (True, None)


def test_of_two_replies_for_one_slot_the_first_counts(world: World) -> None:
    ask(world)
    late = pop(world).id
    world.execute("UPDATE generations SET deadline_at = now() - interval '1 second'")
    sweep(world.runtime)
    second = pop(world, name="second").id
    assert late is not None
    assert second is not None
    deliver(world, second)
    with pytest.raises(AbortedGen):
        deliver(world, late)


def test_a_text_reply_that_is_sent_twice_is_paid_once(world: World) -> None:
    ask(world)
    job = pop(world).id
    assert job is not None
    with ThreadPoolExecutor(4) as pool:
        rewards = set(pool.map(lambda _: deliver(world, job), range(4)))
    assert len(rewards) == 1
    assert settle_batch(world.runtime) == 1
    assert world.execute("SELECT count(*) FROM ledger_entries WHERE kind = 'reward'") == [(1,)]


def test_a_censored_text_costs_its_fee_and_earns_nothing(world: World) -> None:
    request_id = ask(world)
    job = pop(world).id
    assert job is not None
    assert deliver(world, job, state="censored") == 0
    assert status(world, request_id)["generations"][0]["state"] == "censored"


def test_a_cancelled_text_request_is_done_and_its_running_job_is_paid(world: World) -> None:
    request_id = ask(world, n=2)
    job = pop(world).id
    assert job is not None
    found = world.cancel.text(request_id)
    assert (found["done"], found["waiting"]) == (True, 0)
    assert pop(world).id is None
    assert deliver(world, job)


def test_the_same_pop_key_gets_the_same_batch_again(world: World) -> None:
    ask(world, n=3)
    declaration: dict[str, Any] = BRIDGE | {"amount": 2}
    first = world.pop("key", **declaration)
    assert len(first.ids) == 2
    assert world.pop("key", **declaration).ids == first.ids


def test_chat_and_text_share_one_queue(world: World) -> None:
    both: dict[str, Any] = {"prompt_jobs": True, "models": ["m"], "name": "both"}
    world.pop(**both)
    world.online._taken_at = float("-inf")
    ask(world, models=["m"])
    world.ask()
    ask(world, models=["m"])
    assert [world.pop(**both).is_chat for _ in range(3)] == [False, True, False]


def test_a_worker_that_declares_no_chat_gets_text_alone(world: World) -> None:
    world.ask()
    assert pop(world, models=["m"]).id is None
    ask(world, models=["m"])
    assert pop(world, models=["m"]).id is not None


def test_a_text_request_without_models_is_for_any_bridge(world: World) -> None:
    ask(world)
    assert pop(world).id is not None


def test_a_soft_prompt_is_for_bridges_that_have_it(world: World) -> None:
    ask(world, softprompt="story.zip")
    assert pop(world).id is None
    job = pop(world, softprompts=["story.zip"])
    assert job.payload is not None
    assert job.payload["softprompt"] == "story.zip"


def test_a_text_request_that_nobody_can_take_is_accepted_with_a_message(world: World) -> None:
    wanted = parse_text_request({"prompt": "x", "models": ["absent"]})
    accepted = world.submit_text(world.requester_key, wanted)
    assert accepted.message is not None
    assert not status(world, accepted.id)["is_possible"]
    pop(world, models=["absent"])
    assert world.execute("SELECT count(*) FROM generations") == [(1,)]


def test_an_unknown_worker_is_refused(world: World) -> None:
    with pytest.raises(WorkerNotFound):
        ask(world, workers=["no-uuid"])


def test_a_bridge_that_names_no_model_is_told_so(world: World) -> None:
    with pytest.raises(BadRequest, match="models"):
        pop(world, models=[])


def test_the_reply_of_one_kind_is_refused_for_the_other(world: World) -> None:
    ask(world)
    text_job = pop(world).id
    _, chat_job = world.leased()
    assert text_job is not None
    with pytest.raises(BadRequest):
        world.deliver(text_job)
    with pytest.raises(BadRequest):
        deliver(world, chat_job)


def test_two_workers_share_a_thousand_slots_without_a_double(world: World) -> None:
    world.enrich()
    for _ in range(50):
        ask(world, n=20)

    def work(name: str) -> list[UUID]:
        mine: list[UUID] = []
        while ids := pop(world, name=name, amount=7).ids:
            mine.extend(ids)
        return mine

    with ThreadPoolExecutor(2) as pool:
        jobs = [job for mine in pool.map(work, ("one", "two")) for job in mine]
    assert len(jobs) == len(set(jobs)) == 1000
    assert world.execute("SELECT count(DISTINCT (request_id, slot)) FROM generations") == [(1000,)]


def test_a_text_request_holds_kudos_for_each_generation_until_it_ends(world: World) -> None:
    before, _ = world.kudos(world.requester_id)
    request_id = ask(world, n=2, models=["koboldcpp/Demo-8B"], max_length=1024)
    assert world.kudos(world.requester_id)[0] == before - 2 * 390_100
    world.cancel.text(request_id)
    assert world.kudos(world.requester_id)[0] == before


def test_a_text_request_for_any_model_holds_a_flat_amount_for_each_generation(world: World) -> None:
    before, _ = world.kudos(world.requester_id)
    ask(world, n=3, slow_workers=False)
    assert world.kudos(world.requester_id)[0] == before - 3 * 20_000


def test_a_text_request_without_the_kudos_is_refused_or_cut_where_that_is_allowed(world: World) -> None:
    _, world.requester_key = world.account("cy")
    with pytest.raises(KudosUpfront):
        ask(world, max_length=1024)
    assert world.execute("SELECT count(*) FROM horde_requests") == [(0,)]
    ask(world, max_length=1024, slow_workers=False, allow_downgrade=True)
    assert world.execute("SELECT max_length, hold, requirements ->> 'slow_workers' FROM horde_requests") == [
        (512, 0, "true")
    ]


def test_the_generations_that_wait_are_what_is_limited(world: World) -> None:
    ask(world, n=20)
    with pytest.raises(TooManyPrompts):
        ask(world, n=11)
    ask(world, n=10)
    assert len(pop(world, amount=4).ids) == 4
    ask(world, n=4)
    with pytest.raises(TooManyPrompts):
        world.ask()


def test_a_limited_key_is_bound_by_what_its_open_text_request_may_still_cost(world: World) -> None:
    world.execute("UPDATE api_keys SET kudos_limit = 20000 WHERE user_id = :id", id=world.requester_id)
    models = ["koboldcpp/Demo-8B"]
    ask(world, n=2, models=models, max_length=16)
    jobs = pop(world, amount=2).ids
    deliver(world, jobs[0])
    settle_batch(world.runtime)
    quote, charged = world.execute(
        "SELECT r.quote, g.charge FROM horde_requests r JOIN generations g ON g.request_id = r.id WHERE g.id = :id",
        id=jobs[0],
    )[0]
    committed = world.execute(
        "SELECT committed FROM locked_standing(:id, (SELECT id FROM api_keys WHERE user_id = :id))",
        id=world.requester_id,
    )
    assert 0 < int(str(charged)) < int(str(quote))
    assert committed == [(quote,)]


def test_a_spent_shared_key_goes_on_as_anonymous_when_a_text_request_allows_it(world: World) -> None:
    world.requester_key = str(
        SharedKeys(world.runtime).create(world.requester_key, parse_shared_key({"kudos": 0}))["id"]
    )
    with pytest.raises(SharedKeyEmpty):
        ask(world)
    ask(world, allow_downgrade=True)
    assert world.execute("SELECT user_id, key_id FROM horde_requests") == [(ANONYMOUS_ID, None)]
