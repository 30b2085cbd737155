"""The commands beside the worker itself: check, why, test, earnings."""

import asyncio
import sys
import uuid

from .assembling import Connections, Examined, connections, examine, runner_for
from .backend import BackendError
from .chat import Json
from .config import WorkerConfig
from .contract import Finding, trials
from .declaration import OVERFLOW, UnusableBackend
from .horde import HordeRefusal, HordeUnavailable
from .jobs import Job
from .probe import ModelMissing
from .waiting import Shutdown

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_CONFIGURATION = 2
LOOK_SECONDS = 1.0
PATIENCE_SECONDS = 300.0
MOST_WORKERS = 5
"""A request can name no more of them."""

REASONS = {
    "models": "ask for a model that you do not serve",
    "max_length": "ask for longer replies than your MAX_LENGTH",
    "max_context_length": "are longer than your context",
    "max_images": "have more images than your MAX_IMAGES",
    "max_tools": "have more tools than your MAX_TOOLS",
    "tools_max_temperature": "use tools at a higher temperature than your TOOLS_MAX_TEMPERATURE",
    "image_transports": "have images, and you declare no way to get them",
    "worker_id": "name the workers that may serve them, or that may not, and you are left out",
    "untrusted": "want workers of trusted owners; an account becomes trusted by serving for a while",
    "bridge_version": "want workers with known software",
    "nsfw": "may hold adult content, and you take none",
    "blacklist": "hold a word of your blacklist",
    "matching_softprompt": "need a soft prompt that you do not have",
    "performance": "want fast workers, and you were measured as slow",
    "kudos": "come from accounts without enough kudos",
}
"""The reasons in a pop's `skipped`, in words. Any other is the name of a feature or guarantee."""


def _say(text: str = "") -> None:
    sys.stdout.write(text + "\n")


async def check(config: WorkerConfig) -> int:
    """Runs the whole contract against the backend and prints what holds, with the evidence.

    0 when strict requests can be served, 1 when they cannot, 2 when a setting has to change.
    """
    async with connections(config) as to:
        try:
            examined = await examine(config, to)
            found = await trials(examined)
        except BackendError as error:
            _say(f"The backend gives no answer: {error.reason}")
            return EXIT_FAILED
        except (ModelMissing, UnusableBackend) as error:
            _say(str(error))
            return EXIT_CONFIGURATION
    _say(report(config, examined, found))
    broken = [finding for finding in found if not finding.holds]
    return EXIT_FAILED if broken or OVERFLOW not in examined.declaration.features else EXIT_OK


def report(config: WorkerConfig, examined: Examined, found: list[Finding]) -> str:
    """The text of a check."""
    declared = examined.declaration
    context = f"context {declared.context}, counter {declared.counter}"
    lines = [f"{examined.findings.kind} at {config.backend_url}, model {examined.findings.backend_model}, {context}"]
    lines += ["", "The contract"]
    lines += [_line("holds" if finding.holds else "BROKEN", finding.name, finding.words) for finding in found]
    overflow = examined.findings.evidence["overflow"]
    lines += [_line("refused" if overflow.shown else "watch", "beyond the context", overflow.words)]
    lines += ["", "Declared"]
    lines += [_line("yes", name, reason) for name, reason in sorted(declared.because.items())]
    lines += ["", "Not declared"]
    lines += [_line("no", name, reason) for name, reason in sorted(declared.withheld.items())]
    return "\n".join(lines)


def _line(verdict: str, name: str, words: str) -> str:
    return f"  {verdict:<8} {name:<26} {words}"


async def why(config: WorkerConfig) -> int:
    """Asks the horde once for a job, as the worker does, and says in words why it gives none.

    A job that comes is answered: to leave it would cost its requester time, and this worker an abort.
    """
    async with connections(config) as to:
        try:
            examined = await examine(config, to)
            body = {**examined.declaration.pop_body(config), "wait": 0, "pop_key": uuid.uuid4().hex}
            answer = await to.horde.pop(body)
            if answer.get("id"):
                return await _answer_one(config, to, examined, answer)
        except BackendError as error:
            _say(f"The backend gives no answer ({error.reason}), so the worker asks for no jobs.")
            return EXIT_FAILED
        except (ModelMissing, UnusableBackend) as error:
            _say(str(error))
            return EXIT_CONFIGURATION
        except HordeRefusal as refusal:
            _say(f"The horde refuses this worker: {refusal.message} ({refusal.rc})")
            return EXIT_FAILED
        except HordeUnavailable as error:
            _say(f"The horde cannot be reached: {error.reason}")
            return EXIT_FAILED
    for line in explained(answer, examined):
        _say(line)
    return EXIT_OK


async def _answer_one(config: WorkerConfig, to: Connections, examined: Examined, answer: Json) -> int:
    _say("There is a job for this worker. It is answered now, as the worker would:")
    runner = runner_for(config, to, examined, Shutdown(config.stop_grace_seconds))
    end = await runner.run(Job.from_answer(answer, asyncio.get_running_loop().time()))
    return EXIT_OK if end.event == "job_done" else EXIT_FAILED


def explained(answer: Json, examined: Examined) -> list[str]:
    """What an empty pop says, in words, one line a reason, the most frequent first."""
    skipped = answer.get("skipped") or {}
    if not skipped:
        return ["No job waits that this worker is not given: the queue is empty, or others are faster."]
    lines = []
    for reason, count in sorted(skipped.items(), key=lambda item: (-item[1], item[0])):
        withheld = examined.declaration.withheld.get(reason)
        words = REASONS.get(reason) or f"require {reason}, which you do not declare" + (
            f" ({withheld})" if withheld else ""
        )
        lines.append(f"{count:>6} waiting {words}")
    return lines


async def test(config: WorkerConfig) -> int:
    """Sends a request of one's own to one's own workers, and prints what comes back."""
    async with connections(config) as to:
        try:
            workers = (await to.horde.account()).get("worker_ids") or []
            if not workers:
                _say("This account has no worker yet. Start one, and test it then.")
                return EXIT_FAILED
            serving = await _serving(config, to, [str(worker) for worker in workers])
            if not serving:
                _say(f"None of the {len(workers)} workers of this account is online with {config.model_id}.")
                return EXIT_FAILED
            return await _request(config, to, serving)
        except HordeRefusal as refusal:
            _say(f"The horde refuses: {refusal.message} ({refusal.rc})")
        except HordeUnavailable as error:
            _say(f"The horde cannot be reached: {error.reason}")
    return EXIT_FAILED


async def _serving(config: WorkerConfig, to: Connections, workers: list[str]) -> list[str]:
    """Those that are online with the model, as many as a request can name."""
    found: list[str] = []
    for worker in workers:
        shown = await to.horde.worker(worker)
        if shown.get("online") and shown.get("chat_model") == config.model_id and len(found) < MOST_WORKERS:
            found.append(worker)
    return found


async def _request(config: WorkerConfig, to: Connections, workers: list[str]) -> int:
    asked = await to.horde.ask(
        {
            "model": config.model_id,
            "messages": [{"role": "user", "content": "Say hello in one short sentence."}],
            "max_tokens": 64,
            "horde": {"workers": workers},
            "operation_key": uuid.uuid4().hex,
        }
    )
    _say(f"Request {asked['id']} for {config.model_id}, at most {asked.get('kudos')} kudos.")
    status: Json = {}
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not status.get("done"):
                await asyncio.sleep(LOOK_SECONDS if status else 0)
                status = await to.horde.status(asked["id"])
    except asyncio.CancelledError:
        await to.horde.cancel(asked["id"])
        raise
    except TimeoutError:
        await to.horde.cancel(asked["id"])
        _say(f"No reply within {PATIENCE_SECONDS:g} s, so it is cancelled. `horde-worker why` may say the reason.")
        return EXIT_FAILED
    for generation in status.get("generations") or []:
        _say(f"{generation['worker_name']} answered for {status.get('kudos')} kudos:")
        _say(str(generation["message"].get("content") or generation["message"].get("reasoning_content")))
        return EXIT_OK
    _say(f"No reply: {(status.get('fault') or {}).get('message') or status.get('state')}")
    return EXIT_FAILED


async def earnings(config: WorkerConfig) -> int:
    """Prints what the account has earned."""
    async with connections(config) as to:
        try:
            account = await to.horde.account()
        except (HordeRefusal, HordeUnavailable) as error:
            _say(f"The horde does not tell: {error}")
            return EXIT_FAILED
    for line in accounted(account):
        _say(line)
    return EXIT_OK


def accounted(account: Json) -> list[str]:
    """An account's earnings, one line a fact."""
    details, records = account.get("kudos_details") or {}, account.get("records") or {}
    served = (records.get("fulfillment") or {}).get("text", 0)
    lines = [
        f"{account.get('username')}: {account.get('kudos')} kudos to spend",
        f"  earned by its workers, less its own requests: {details.get('accumulated', 0)}",
        f"  jobs served: {served}",
        f"  workers: {account.get('worker_count', 0)}",
    ]
    if account.get("evaluating_kudos"):
        lines.append(f"  waiting until the account is trusted: {account['evaluating_kudos']}")
    return lines
