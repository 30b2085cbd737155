"""Bytes that are almost HTTP, straight into the front's socket: never a 500, never a 5xx without a name."""

import asyncio
import random
import re

import requests
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from yarl import URL

from tests.front.process.front_process import FrontProcess
from tests.front.process.scripted_native import ScriptedNative, finished_at_once
from tests.front.process.waiting import eventually
from tests.support.raw_http import complaint, exchange, raw_request


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(seed=st.integers(0, 2**32))
def test_no_bytes_make_the_front_fail(front: FrontProcess, native: ScriptedNative, seed: int) -> None:
    native.initial = finished_at_once()
    chance = random.Random(seed)  # noqa: S311 -- the same bytes for the same seed
    raw = raw_request(chance)
    at = URL(front.url)
    answer = asyncio.run(exchange(str(at.host), int(at.port or 0), raw, chance))
    assert complaint(answer) is None, (raw[:500], answer[:500])


async def test_no_place_stays_taken(front: FrontProcess, native: ScriptedNative) -> None:
    native.initial = finished_at_once()
    chance = random.Random(7)  # noqa: S311 -- see above
    at = URL(front.url)
    host, port = str(at.host), int(at.port or 0)
    await asyncio.gather(*(exchange(host, port, raw_request(chance), chance) for _ in range(40)))

    def free() -> bool:
        figures = requests.get(f"{front.url}/metrics", timeout=5).text
        return all(float(value) == 0 for value in re.findall(r"^horde_front_open_\w+ (\S+)$", figures, re.MULTILINE))

    await eventually(free, "places stay taken", 20)
