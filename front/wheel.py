"""One alarm clock for many sleepers of a process: moments are rounded up to a grain, and each grain is one timer."""

import asyncio
import heapq
import math
from typing import Protocol

GRAIN_SECONDS = 0.01


class Sleeper(Protocol):
    """What can be woken."""

    def wake(self) -> None:
        """It is time."""


class Wheel:
    """Wakes each sleeper at its moment; a sleeper has one moment at a time.

    `grain`: seconds; whoever sleeps to the same multiple of it wakes together.
    """

    def __init__(self, grain: float = GRAIN_SECONDS) -> None:
        self._grain = grain
        self._slots: dict[int, set[Sleeper]] = {}
        self._slot_of: dict[Sleeper, int] = {}
        self._order: list[int] = []
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._slot_of)

    def set(self, sleeper: Sleeper, moment: float) -> None:
        """Wake it at `moment` of the monotonic clock, and at no other."""
        slot = math.ceil(moment / self._grain)
        if self._slot_of.get(sleeper) == slot:
            return
        self.drop(sleeper)
        self._slot_of[sleeper] = slot
        members = self._slots.get(slot)
        if members is None:
            members = self._slots[slot] = set()
            heapq.heappush(self._order, slot)
        members.add(sleeper)
        if self._order[0] == slot:
            self._wind()

    def bring_forward(self, sleeper: Sleeper, moment: float) -> None:
        """Wake a sleeper that has a moment already at `moment`, if that is earlier."""
        slot = self._slot_of.get(sleeper)
        if slot is not None and moment < slot * self._grain:
            self.set(sleeper, moment)

    def drop(self, sleeper: Sleeper) -> None:
        """Do not wake it."""
        slot = self._slot_of.pop(sleeper, None)
        if slot is not None:
            self._slots[slot].discard(sleeper)

    def _wind(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(self._order[0] * self._grain, self._ring) if self._order else None

    def _ring(self) -> None:
        slot = math.floor(asyncio.get_running_loop().time() / self._grain + 0.01)
        while self._order and self._order[0] <= slot:
            for sleeper in self._slots.pop(heapq.heappop(self._order)):
                del self._slot_of[sleeper]
                sleeper.wake()
        self._wind()
