"""Live progress: the worker's posts for a streamed job, and its signs of life for any other."""

import pytest

from tests.tools.chat_worker_example.scripted_horde import LOST, Lease, ScriptedHorde
from tests.tools.chat_worker_example.worker_process import WorkerProcess, running_worker

FAST = {"PROGRESS_SECONDS": "0.05", "HEARTBEAT_SECONDS": "0.2"}
TEXT = "👩‍🚀 says مرحبا, 日本 and e\u0301: " + "as one reply in many pieces " * 4
SLOW = "[[pace=0.02]]"


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    return environment | FAST


async def test_a_streamed_job_is_posted_in_pieces_that_make_its_reply(
    horde: ScriptedHorde, worker: WorkerProcess
) -> None:
    job_id = await horde.give(f"{SLOW}{TEXT}", stream=True)
    [submit] = await horde.submitted()
    lease = horde.leases[job_id]
    assert submit["message"]["content"] == TEXT
    assert len(lease.entries) > 3
    assert lease.text == TEXT[: len(lease.text)]
    assert submit["usage"]["completion_tokens"] > 0


async def test_reasoning_is_posted_apart_from_the_content(horde: ScriptedHorde, worker: WorkerProcess) -> None:
    job_id = await horde.give(f"{SLOW}[[reasoning=first I think about it at length]]{TEXT}", stream=True)
    [submit] = await horde.submitted()
    assert submit["message"]["reasoning_content"] == "first I think about it at length"
    assert horde.leases[job_id].reasoning == "first I think about it at length"


async def test_no_post_holds_half_a_character(horde: ScriptedHorde, worker: WorkerProcess) -> None:
    job_id = await horde.give(f"[[pace=0.06]]{'😀' * 12}", stream=True)
    [submit] = await horde.submitted()
    assert submit["message"]["content"] == "😀" * 12
    assert horde.leases[job_id].entries
    assert all(set(entry["delta"]) == {"😀"} for entry in horde.leases[job_id].entries)


async def test_posts_come_no_more_often_than_set(horde: ScriptedHorde, environment: dict[str, str]) -> None:
    async with running_worker(**environment | {"PROGRESS_SECONDS": "60"}):
        job_id = await horde.give(f"{SLOW}{TEXT}", stream=True)
        await horde.submitted()
    assert len(horde.leases[job_id].entries) == 1


@pytest.mark.parametrize("trouble", [LOST, (503, {}), (500, {})])
async def test_a_post_without_an_answer_is_repeated_as_it_was(
    horde: ScriptedHorde, worker: WorkerProcess, trouble: tuple[int, dict[str, str]]
) -> None:
    horde.progress_script.append(trouble)
    job_id = await horde.give(f"[[pace=0.05]]{TEXT}", stream=True)
    [submit] = await horde.submitted()
    first, repeated = horde.posts[:2]
    assert first == repeated
    assert TEXT.startswith(horde.leases[job_id].text)
    assert submit["message"]["content"] == TEXT


async def test_a_worker_out_of_step_sends_again_from_where_it_is_told(
    horde: ScriptedHorde, worker: WorkerProcess
) -> None:
    job_id = await horde.give(f"{SLOW}{TEXT}", stream=True)
    await horde.until(lambda: len(horde.leases[job_id].entries) >= 3)
    horde.leases[job_id].entries.clear()
    await horde.submitted()
    assert [entry["seq"] for entry in horde.leases[job_id].entries] == list(range(len(horde.leases[job_id].entries)))
    assert TEXT.startswith(horde.leases[job_id].text)
    assert horde.leases[job_id].text


async def test_a_lost_lease_is_asked_back_and_filled_again(horde: ScriptedHorde, worker: WorkerProcess) -> None:
    job_id = await horde.give(f"{SLOW}{TEXT}", stream=True)
    await horde.until(lambda: len(horde.leases[job_id].entries) >= 2)
    horde.leases[job_id].lost = True
    [submit] = await horde.submitted()
    assert horde.restored == [{"id": job_id}]
    assert submit["message"]["content"] == TEXT
    assert TEXT.startswith(horde.leases[job_id].text)
    assert horde.leases[job_id].text


async def test_a_cancelled_streamed_job_is_stopped_and_not_submitted(
    horde: ScriptedHorde, worker: WorkerProcess
) -> None:
    job_id = await horde.give(f"[[pace=0.05]]{TEXT * 20}", stream=True)
    await horde.until(lambda: bool(horde.leases[job_id].entries))
    horde.leases[job_id].cancelled = True
    assert (await worker.event("job_cancelled"))["id"] == job_id
    after = await horde.give("and now?")
    [submit] = await horde.submitted()
    assert submit["id"] == after


@pytest.mark.parametrize("stream", [True, False])
async def test_a_job_that_has_ended_is_stopped_and_not_submitted(
    horde: ScriptedHorde, worker: WorkerProcess, stream: bool
) -> None:
    job_id = await horde.give(f"{TEXT * 20}[[{'pace=0.05' if stream else 'hang'}]]", stream=stream)
    horde.leases[job_id] = Lease(ended=True)
    assert (await worker.event("job_ended"))["id"] == job_id
    after = await horde.give("and now?")
    [submit] = await horde.submitted()
    assert submit["id"] == after


async def test_after_the_cap_no_text_is_posted_but_the_reply_is_submitted(
    horde: ScriptedHorde, worker: WorkerProcess
) -> None:
    job_id = await horde.give(f"{SLOW}{TEXT}[[delay=0.5]]", stream=True)
    horde.leases[job_id] = Lease(cap=0)
    [submit] = await horde.submitted()
    assert submit["message"]["content"] == TEXT
    assert len([post for post in horde.posts if "seq" in post]) == 1
    assert horde.leases[job_id].heartbeats >= 2


async def test_a_job_that_is_not_streamed_shows_signs_of_life_and_no_text(
    horde: ScriptedHorde, worker: WorkerProcess
) -> None:
    job_id = await horde.give("[[delay=1]]good things take time")
    [submit] = await horde.submitted()
    assert submit["state"] == "ok"
    assert horde.leases[job_id].heartbeats >= 2
    assert horde.posts == [{"id": job_id}] * len(horde.posts)


async def test_a_cancelled_job_that_is_not_streamed_runs_on_because_it_is_paid(
    horde: ScriptedHorde, worker: WorkerProcess
) -> None:
    job_id = await horde.give("[[delay=1]]nearly there")
    horde.leases[job_id] = Lease(cancelled=True)
    [submit] = await horde.submitted()
    assert (submit["id"], submit["state"]) == (job_id, "ok")


async def test_a_horde_that_knows_no_progress_still_gets_the_reply(horde: ScriptedHorde, worker: WorkerProcess) -> None:
    horde.progress_script.append((405, {}))
    await horde.give(f"{SLOW}{TEXT}", stream=True)
    [submit] = await horde.submitted()
    assert submit["message"]["content"] == TEXT
    assert len(horde.posts) == 1
