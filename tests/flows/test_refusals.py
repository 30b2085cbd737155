"""Each row of the front's table of refusals (front F5), by name, as the OpenAI SDK sees it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import openai
import pytest

from tests.flows.test_accounts import registered
from tests.flows.test_chat import TOOL
from tests.front.process.front_process import running_front
from tests.support.asking import Asking
from tests.support.hand_worker import HandWorker, call
from tests.support.horde import KEYS, MODEL, HordeProcesses
from tests.support.services import free_port, wait_until

IMAGE = [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]


@dataclass
class Scene:
    """A horde, and fronts to it that are short of time or of a horde."""

    horde: HordeProcesses
    folder: Path

    def refused(self, *, base: str | None = None, key: str = KEYS.demo, **more: Any) -> openai.APIStatusError:
        """What the SDK raises for a request."""
        body: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "Hello."}], **more}
        url = f"{base or self.horde.front}/v1"
        with (
            openai.OpenAI(base_url=url, api_key=key, max_retries=0, timeout=60) as client,
            pytest.raises(openai.APIStatusError) as caught,
        ):
            client.chat.completions.create(**body)
        return caught.value

    def refused_in_a_hurry(self, seconds: int, **more: Any) -> openai.APIStatusError:
        """The same at a front that waits for so many seconds only."""
        settings = {"SERVICE_PASSKEY": KEYS.service_passkey, "DEFAULT_DEADLINE_SECONDS": str(seconds)}
        with running_front(self.folder, self.horde.native, self.horde.services.redis_url, **settings) as front:
            return self.refused(base=front.url, **more)

    def idle_model(self) -> str:
        """A model whose only worker has popped and does so no more."""
        model = f"idle-{uuid4().hex[:8]}"
        assert HandWorker(self.horde, model).pop() is None
        return model

    def busy_model(self, seconds: int) -> str:
        """An idle model with so many requests that the last of them has to wait for longer than this."""
        model, chats = self.idle_model(), f"{self.horde.native}/api/v2/generate/chat"
        body = {"model": model, "messages": [{"role": "user", "content": "Hello."}], "max_tokens": 500}
        for _ in range(5):
            last = call("POST", f"{chats}/async", body, KEYS.demo)
            assert last.status == 202

        def is_long() -> bool:
            return bool(call("GET", f"{chats}/status/{last.body['id']}", key=KEYS.demo).body["wait_time"] > seconds)

        wait_until(is_long, 10, "the wait is not known")
        return model

    def open_requests(self) -> list[tuple[object, ...]]:
        """Everything that waits."""
        return self.horde.query("SELECT id FROM horde_requests WHERE ended_at IS NULL")


@pytest.fixture
def scene(horde: HordeProcesses, tmp_path: Path) -> Scene:
    return Scene(horde, tmp_path)


def horde_options(**options: Any) -> dict[str, Any]:
    return {"extra_body": {"horde": options}}


def an_absent_model(scene: Scene) -> openai.APIStatusError:
    return scene.refused(model="absent")


def a_feature_that_nobody_declares(scene: Scene) -> openai.APIStatusError:
    return scene.refused(messages=[{"role": "user", "content": IMAGE}])


def a_size_above_every_limit(scene: Scene) -> openai.APIStatusError:
    return scene.refused(**horde_options(max_context_length=10_000_000))


def nobody_eligible_after_the_grace(scene: Scene) -> openai.APIStatusError:
    return scene.refused(**horde_options(trusted_workers=True))


def fail_fast_without_a_thread(scene: Scene) -> openai.APIStatusError:
    return scene.refused(**horde_options(trusted_workers=True, availability_mode="fail_fast"))


def fail_fast_with_a_wait_above_the_budget(scene: Scene) -> openai.APIStatusError:
    model = scene.busy_model(20)
    return scene.refused_in_a_hurry(20, model=model, **horde_options(availability_mode="fail_fast"))


def an_unknown_parameter(scene: Scene) -> openai.APIStatusError:
    return scene.refused(extra_body={"min_p": 0.1})


def a_bad_key(scene: Scene) -> openai.APIStatusError:
    return scene.refused(key="no-such-key", tools=[TOOL])


def kudos_that_cannot_be_held(scene: Scene) -> openai.APIStatusError:
    key = registered(scene.horde)
    return scene.refused(key=key, max_tokens=400, **horde_options(slow_workers=False))


def the_deadline(scene: Scene) -> openai.APIStatusError:
    return scene.refused_in_a_hurry(3, model=scene.idle_model())


def a_worker_that_always_faults(scene: Scene) -> openai.APIStatusError:
    return scene.refused(messages=[{"role": "user", "content": "[[status=502]]"}])


def an_end_without_a_reply(scene: Scene) -> openai.APIStatusError:
    with Asking(scene.horde, f"[[delay=3]]Cancelled {uuid4().hex}.") as asking, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(asking.answer)
        asking.wait_for("leased")
        rows = scene.horde.query(
            "SELECT request_id FROM request_bodies WHERE strpos(prompt, :text) > 0", text=asking.text
        )
        url = f"{scene.horde.native}/api/v2/generate/chat/status/{rows[0][0]}"
        assert call("DELETE", url, key=KEYS.demo).status == 200
        error = answer.exception(60)
    assert isinstance(error, openai.APIStatusError)
    return error


def no_horde_behind_the_front(scene: Scene) -> openai.APIStatusError:
    nowhere = f"http://127.0.0.1:{free_port()}"
    with running_front(scene.folder, nowhere, scene.horde.services.redis_url) as front:
        return scene.refused(base=front.url)


ROWS = [
    (an_absent_model, 503, "no_eligible_worker", None, True),
    (a_feature_that_nobody_declares, 404, "no_worker_supports_features", "false", False),
    (a_size_above_every_limit, 400, "no_worker_supports_limit", "false", False),
    (nobody_eligible_after_the_grace, 503, "no_eligible_worker", "false", True),
    (fail_fast_without_a_thread, 503, "queue_unavailable", "false", True),
    (fail_fast_with_a_wait_above_the_budget, 503, "queue_unavailable", "false", True),
    (an_unknown_parameter, 400, "UnsupportedChatParameter", None, False),
    (a_bad_key, 401, "invalid_api_key", None, False),
    (kudos_that_cannot_be_held, 402, "KudosUpfront", None, False),
    (the_deadline, 408, "DeadlineExceeded", "false", False),
    (a_worker_that_always_faults, 502, "ChatRequestFaulted", "false", False),
    (an_end_without_a_reply, 502, "NoGeneration", "false", False),
    (no_horde_behind_the_front, 502, "HordeUnreachable", None, False),
]


@pytest.mark.parametrize(
    ("provoke", "status", "code", "should_retry", "retry_after"), ROWS, ids=[row[0].__name__ for row in ROWS]
)
def test_a_refusal_has_its_status_code_and_advice(
    scene: Scene,
    provoke: Callable[[Scene], openai.APIStatusError],
    status: int,
    code: str,
    should_retry: str | None,
    retry_after: bool,
) -> None:
    error = provoke(scene)
    assert (error.status_code, error.code) == (status, code)
    assert set(error.body) >= {"message", "type", "param", "code", "metadata"}  # type: ignore[call-overload]
    assert error.type == ("invalid_request_error" if status < 500 else "server_error")
    headers = error.response.headers
    assert headers.get("x-should-retry") == should_retry
    assert ("Retry-After" in headers) == retry_after
    assert 1 <= int(headers.get("Retry-After", 1)) <= 60


def test_a_limits_gap_says_what_was_asked_and_the_largest_there_is(scene: Scene) -> None:
    body: Any = a_size_above_every_limit(scene).body
    assert body["metadata"]["limit"] == "max_context_length"
    assert body["metadata"]["asked"] == 10_000_000
    assert body["metadata"]["largest"] < 10_000_000


def test_a_declaration_gap_says_what_is_missing_and_how_many_declare_it(scene: Scene) -> None:
    body: Any = a_feature_that_nobody_declares(scene).body
    assert "images" in str(body["metadata"])


def test_a_request_that_was_refused_after_its_submit_is_cancelled(scene: Scene) -> None:
    nobody_eligible_after_the_grace(scene)
    wait_until(lambda: not scene.open_requests(), 5, "the request stays in the queue")
