"""The loops of two existing bridges, written from the wire reference's sections 3.1 and 3.2, with a faster clock.

Each keeps the rules by which the original punishes itself: what a koboldcpp worker counts before it
pauses for minutes, what makes a scribe restart. `Clock.pace` is how many of their seconds pass in one.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import urllib3

Json = dict[str, Any]


@dataclass(frozen=True)
class Clock:
    """A bridge's own time: all its pauses are divided by the pace."""

    pace: float
    over: Event

    def sleep(self, seconds: float) -> None:
        """Wait as the bridge would, unless it is all over."""
        self.over.wait(seconds / self.pace)


@dataclass
class Life:
    """What happened to a bridge."""

    pops: int = 0
    empties: int = 0
    delivered: int = 0
    punished: int = 0
    failed: int = 0
    rewards: float = 0.0
    said: list[str] = field(default_factory=list)


class KoboldLoop:
    """koboldcpp's embedded worker (3.1): every pop but a plain success counts against it; no submit is tried twice."""

    EMPTY_PAUSES = ((10, 1.0), (25, 2.0))
    LAST_PAUSE = 3.0
    FAILURE_PAUSE = 10.0
    PUNISHED_OUT = 5

    def __init__(self, root: str, key: str, model: str, clock: Clock) -> None:
        self.life = Life()
        self._root = root
        self._clock = clock
        self._http = urllib3.PoolManager(timeout=300, retries=False)
        self._headers = {
            "apikey": key,
            "User-Agent": "KoboldCppEmbeddedWorkerV2",
            "Client-Agent": "KoboldCppEmbedWorker:2",
        }
        self._pop_body = {
            "name": f"Kobold {model[-8:]}",
            "models": [model],
            "max_length": 512,
            "max_context_length": 8192,
            "priority_usernames": [],
            "softprompts": [],
            "bridge_agent": "KoboldCppEmbedWorker:2:https://github.com/LostRuins/koboldcpp",
        }

    def run(self) -> None:
        """Live until it is all over, or until the worker would have paused itself."""
        empties = 0
        while not self._clock.over.is_set() and self.life.punished < self.PUNISHED_OUT:
            popped = self._post("pop", self._pop_body)
            self.life.pops += 1
            if not popped:
                self.life.punished += 1
                self._clock.sleep(self.FAILURE_PAUSE)
            elif not popped["id"]:
                empties += 1
                self.life.empties += 1
                self._clock.sleep(next((pause for most, pause in self.EMPTY_PAUSES if empties < most), self.LAST_PAUSE))
            else:
                empties = 0
                self._generate(popped)
        self._http.clear()

    def _generate(self, popped: Json) -> None:
        payload = popped["payload"]
        payload["genkey"] = "KCPP1234"
        self._clock.sleep(payload.get("max_length", 80) / 20)
        submitted = self._post("submit", {"id": popped["id"], "generation": " once more", "state": "ok"})
        if submitted:
            self.life.rewards += submitted["reward"]
            self.life.delivered += 1
        else:
            self.life.punished += 1

    def _post(self, path: str, body: Json) -> Json | None:
        answer = self._http.request(
            "POST", f"{self._root}/api/v2/generate/text/{path}", json=body, headers=self._headers
        )
        if not 200 <= answer.status < 300:
            self.life.said.append(f"{path}: {answer.status} {answer.data[:200]!r}")
            return None
        return dict(answer.json())


class ScribeLoop:
    """AI-Horde-Worker's scribe bridge (3.2): keys without a guard, submits tried again, faults that are told."""

    POP_TIMEOUT, SUBMIT_TIMEOUT = 40, 60
    IDLE_PAUSE, REFUSED_PAUSE = 1.0, 2.0
    SUBMIT_TRIES = 10
    RELOAD_SECONDS = 60
    FAILED_OUT = 5
    IMAGE_KEYS = frozenset({"width", "length", "steps"})

    def __init__(
        self, root: str, key: str, model: str, clock: Clock, *, backend_fails: Callable[[int], bool] = lambda _: False
    ) -> None:
        self.life = Life()
        self._root = root
        self._clock = clock
        self._http = urllib3.PoolManager(retries=False)
        self._headers = {"apikey": key}
        self._backend_fails = backend_fails
        self._jobs = 0
        self._failed_in_a_row = 0
        self._pop_body = {
            "name": f"Scribe {model[-8:]}",
            "models": [model],
            "max_length": 512,
            "max_context_length": 8192,
            "priority_usernames": [],
            "softprompts": [],
            "bridge_agent": "AI Horde Worker~aphrodite~kai:24:https://github.com/db0/AI-Horde-Worker",
            "threads": 2,
        }

    def run(self) -> None:
        """Live until it is all over, or until the bridge would have restarted."""
        reload_at = 0.0
        while not self._clock.over.is_set() and self._failed_in_a_row < self.FAILED_OUT:
            if time.monotonic() >= reload_at:
                reload_at = time.monotonic() + self.RELOAD_SECONDS / self._clock.pace
                self._reload()
            popped = self._pop()
            if popped is None:
                self._clock.sleep(self.REFUSED_PAUSE)
            elif not popped["id"]:
                self.life.empties += 1
                self.life.said.extend(f"skipped {reason}" for reason in popped["skipped"])
                self._clock.sleep(self.IDLE_PAUSE)
            else:
                self._serve(popped)
        self._http.clear()

    def _reload(self) -> None:
        answer = self._http.request("GET", f"{self._root}/api/v2/find_user", headers=self._headers, timeout=10)
        if answer.status != 200 or not answer.json()["username"]:
            self.life.said.append(f"find_user: {answer.status}")
            self.life.punished += 1

    def _pop(self) -> Json | None:
        answer = self._request("pop", self._pop_body, self.POP_TIMEOUT)
        self.life.pops += 1
        body = dict(answer.json())
        if answer.status < 400:
            return body
        self.life.said.append(f"pop: {answer.status} {body['message']}")
        self.life.punished += 1
        return None

    def _serve(self, popped: Json) -> None:
        payload = popped["payload"]
        self._jobs += 1
        prompt, length, context = payload["prompt"], payload["max_length"], payload["max_context_length"]
        faulted = bool(self.IMAGE_KEYS & payload.keys()) or self._backend_fails(self._jobs) or length > context
        self._clock.sleep(length / 20)
        if faulted:
            self._failed_in_a_row += 1
            self.life.failed += 1
            body = {"id": popped["id"], "state": "faulted", "generation": "faulted", "seed": -1}
        else:
            self._failed_in_a_row = 0
            body = {"id": popped["id"], "generation": f"{prompt[:20]} once more", "seed": 0}
        self._submit(body, faulted=faulted)

    def _submit(self, body: Json, *, faulted: bool) -> None:
        for _ in range(self.SUBMIT_TRIES):
            answer = self._request("submit", body, self.SUBMIT_TIMEOUT)
            if answer.status in {400, 404}:
                self.life.said.append(f"submit: {answer.status} {answer.data[:200]!r}")
                self.life.punished += 1
                return
            if answer.status < 400:
                self.life.rewards += answer.json()["reward"]
                self.life.delivered += not faulted
                return
            self._clock.sleep(self.REFUSED_PAUSE)

    def _request(self, path: str, body: Json, timeout: float) -> urllib3.BaseHTTPResponse:
        url = f"{self._root}/api/v2/generate/text/{path}"
        return self._http.request("POST", url, json=body, headers=self._headers, timeout=timeout)
