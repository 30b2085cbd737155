"""Workers that serve text, chats and pictures at a model of their own, and keep what the horde told them."""

import asyncio
import random
import re
import time
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import aiohttp

from tests.support.hand_worker import EVERYTHING
from tests.support.horde import KEYS, HordeProcesses

Json = dict[str, Any]

WORKERS = 4
PAUSE_SECONDS = 0.5
HOLD_SECONDS = 5
DELAY = re.compile(r"\[\[delay=([^\]]*)\]\]")
MARK = re.compile(r"\[\[[^\]]*\]\]")


@dataclass
class Delivered:
    """One job, the reply that was sent for it, and the last answer to that."""

    generation_id: str
    reply: str
    status: int = 0
    code: str = ""
    reward: float = 0.0


@dataclass
class Workers:
    """All of them, until `over` is set. Odd ones work at the front, even ones at the native API."""

    horde: HordeProcesses
    http: aiohttp.ClientSession
    model: str
    chance: random.Random
    delivered: list[Delivered] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)
    """Answers that no worker should get."""
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def go_on(self) -> None:
        """Serve until the run is over."""
        async with asyncio.TaskGroup() as group:
            for number in range(WORKERS):
                group.create_task(self._work(number))

    def declaration(self, number: int) -> Json:
        """What a worker of this number sends on every pop."""
        return {
            "name": f"{self.model}-{number}",
            "models": [self.model],
            "model_id": self.model,
            "prompt_jobs": True,
            "chat_jobs": True,
            "chat_features": [*EVERYTHING, "images"],
            "image_transports": [("url", "inline")[number % 2]],
            "max_length": 512,
            "max_context_length": 8192,
            "threads": 1,
        }

    async def _work(self, number: int) -> None:
        pop_key = uuid4().hex
        face = self.horde.front if number % 2 else self.horde.native
        while not self.over.is_set():
            body = self.declaration(number) | {"wait": HOLD_SECONDS, "pop_key": pop_key}
            status, job = await self._post(f"{face}/api/v2/generate/text/pop", body)
            if status != 200 or not job["id"]:
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            pop_key = uuid4().hex
            await self._serve(face, job)

    async def _serve(self, face: str, job: Json) -> None:
        text = await self._read(job)
        if text is None:
            fault = {"id": job["id"], "state": "faulted", "fault": "image_fetch_failed"}
            await self._post(f"{face}/api/v2/generate/text/submit", fault)
            return
        found = DELAY.search(text)
        await asyncio.sleep(float(found[1]) if found else 0.1)
        delivered = Delivered(job["id"], MARK.sub("", text))
        self.delivered.append(delivered)
        if job["is_chat"]:
            reply: Json = {"message": {"content": delivered.reply}, "finish_reason": "stop", "state": "ok"}
        else:
            reply = {"generation": delivered.reply, "state": "ok"}
        await self._deliver(face, delivered, reply | {"id": job["id"]})

    async def _deliver(self, face: str, delivered: Delivered, reply: Json) -> None:
        """Submit until the horde has answered for good. Now and then, once more: the answer must be the same."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            status, answer = await self._post(f"{face}/api/v2/generate/text/submit", reply)
            if status == 200 and delivered.status == 200 and answer["reward"] != delivered.reward:
                self.strange.append(f"{delivered.generation_id} earned {delivered.reward}, then {answer['reward']}")
            # A 2xx was the horde's word; no later trouble takes it back here.
            if status and (delivered.status not in {200, 202} or status in {200, 202}):
                delivered.status, delivered.code = status, str(answer.get("rc", ""))
                delivered.reward = answer.get("reward", 0.0)
            if status not in {0, 502, 503, 504} and self.chance.random() > 0.1:
                return
            await asyncio.sleep(PAUSE_SECONDS)

    async def _read(self, job: Json) -> str | None:
        """The last message's text; None when a picture of it cannot be had."""
        payload = job["payload"]
        if not job["is_chat"]:
            return str(payload["prompt"])
        content = payload["messages"][-1]["content"]
        if isinstance(content, str):
            return content
        for part in content:
            if part["type"] == "image_url" and not await self._sees(part["image_url"]["url"]):
                return None
        return "".join(part.get("text", "") for part in content)

    async def _sees(self, url: str) -> bool:
        if url.startswith("data:"):
            return True
        try:
            async with self.http.get(url) as answer:
                return answer.status == 200 and (await answer.read()).startswith(b"\xff\xd8")
        except (aiohttp.ClientError, TimeoutError):
            return False

    async def _post(self, url: str, body: Json) -> tuple[int, Json]:
        """One call; status 0 when nobody answered, or not the horde."""
        try:
            async with self.http.post(url, json=body, headers={"apikey": KEYS.worker}) as answer:
                found = await answer.json(content_type=None)
                if answer.status >= 500 and answer.status not in {502, 503, 504}:
                    self.strange.append(f"{url.rpartition('/')[2]} was answered with {answer.status}: {found}")
                return answer.status, found if isinstance(found, dict) else {}
        except (aiohttp.ClientError, TimeoutError, ValueError):
            return 0, {}
