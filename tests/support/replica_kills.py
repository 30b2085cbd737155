"""Kills one process after another of a replicated horde while it is asked."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.support.replica_load import Clients, Load, Outcomes
from tests.support.replicas import KILLABLE, ReplicatedHorde, kind_of, twin_of

RESTART_SECONDS = 1.0
"""As long as the unit of `deploy/systemd` waits before it starts a process again."""


@dataclass(frozen=True)
class Kills:
    """For how long a process is killed every few seconds, who first, and the seed of who is next."""

    seconds: float
    every_seconds: float = 10.0
    first: tuple[str, ...] = ()
    seed: int = 1

    def victims(self) -> Iterator[str]:
        """Who is killed, one after the other."""
        chance = random.Random(self.seed)  # noqa: S311 - chances of a test
        yield from self.first
        while True:
            yield chance.choice(KILLABLE)


@dataclass
class Seen:
    """What happened: how often each kind was killed, and what became of the completions."""

    outcomes: Outcomes
    killed: Counter[str] = field(default_factory=Counter)

    @property
    def fronts_killed(self) -> int:
        """How often a front was killed."""
        return self.killed["front"]

    def stored_twice(self, horde: ReplicatedHorde) -> list[tuple[object, ...]]:
        """Prompts that were asked for once and became two requests."""
        return horde.query(
            "SELECT prompt, count(*) FROM request_bodies WHERE prompt IS NOT NULL GROUP BY prompt HAVING count(*) > 1"
        )


async def load_with_kills(horde: ReplicatedHorde, load: Load, kills: Kills) -> Seen:
    """Ask, and kill meanwhile; return when all that was asked has ended."""
    clients = Clients(horde, load)
    seen = Seen(clients.outcomes)
    async with clients.asking():
        until, victims = time.monotonic() + kills.seconds, kills.victims()
        while (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(kills.every_seconds - RESTART_SECONDS, left))
            name = next(victims)
            twin = twin_of(name)
            if twin is not None:
                await asyncio.to_thread(horde.wait_for, twin)
            await asyncio.to_thread(horde.kill, name)
            seen.killed[kind_of(name)] += 1
            await asyncio.sleep(RESTART_SECONDS)
            await asyncio.to_thread(horde.start, name)
    return seen
