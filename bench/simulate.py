"""What so many requests a second need, by simulation: processes, what they wait for, and what gives out first.

    python -m bench.simulate [--rates 10 100 1000] [--plot docs/explanation/scale.svg]

A completion goes from process to process as the real one does (`STEPS`), and takes of each the CPU
that `bench.roundtrip` measured (`COSTS`; others by `--cost web=6.1`). A process works on one thing at
a time, PostgreSQL on as many as it has cores. Requests come at random moments, and each step takes an
exponentially distributed time, which is rather worse than in life. Generation takes no time: what is
printed is what the horde adds. For each rate every process is replicated until none is busy for more
than 70 % of the time.

First the model is held against life: 32 clients that ask again at once, 8 worker threads, two cores
for everything. Then `--plot` draws what one of each process adds as requests come faster.
"""

import argparse
import itertools
import math
import random
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import simpy

from bench.plot import Line, plot

COSTS = {"web": 5.7, "front": 4.4, "postgres": 3.5, "verdict": 2.4, "redis": 0.7, "tasks": 0.3}
"""Milliseconds of CPU of a completion, `bench.roundtrip --clients 32`."""

AROUND = 3.4
"""What the worker, its backend, the load and the rest of the processes take on the same machine, in milliseconds."""

COMPLETIONS = 5000
"""Completions of a simulated run."""

POINTS = 12
"""Of the plot."""

PLANNED = 0.7
"""The share of its time for which a process is planned to be busy."""

Step = tuple[str, float]
"""A process, and the share of what a completion costs it that is spent in this step."""

ANSWERED: Sequence[Step] = (
    *(("front", 0.22), ("web", 0.10), ("postgres", 0.06), ("web", 0.10), ("postgres", 0.24), ("web", 0.08)),  # submit
    *(("redis", 0.2), ("front", 0.16)),  # a held pop wakes
    *(("web", 0.09), ("postgres", 0.08), ("web", 0.07), ("postgres", 0.22), ("web", 0.12), ("front", 0.12)),  # claim
    *(("front", 0.14), ("web", 0.10), ("postgres", 0.12), ("web", 0.20), ("redis", 0.3)),  # the worker's submit
    *(("verdict", 0.35), ("postgres", 0.07), ("verdict", 0.25), ("postgres", 0.12), ("verdict", 0.2), ("redis", 0.3)),
    *(("front", 0.06), ("web", 0.05), ("postgres", 0.07), ("web", 0.04), ("front", 0.16)),  # read and answer
)
"""The way of a completion until its client has the answer."""

AFTERWARDS: Sequence[Step] = (
    ("web", 0.05),
    ("front", 0.14),
    ("verdict", 0.2),
    ("redis", 0.2),
    ("tasks", 1.0),
    ("postgres", 0.02),
)
"""What is done for it later: the worker's answer, acknowledgement, settlement."""


@dataclass
class Horde:
    """A simulated horde. `cores` limits all processes together, as on one machine; 0 means that nothing does."""

    counts: Mapping[str, int]
    costs: Mapping[str, float]
    cores: int = 0
    environment: simpy.Environment = field(default_factory=simpy.Environment)
    latencies: list[float] = field(default_factory=list)
    busy: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._chance = random.Random(1)  # noqa: S311 - a simulation
        self._processes = {name: simpy.Resource(self.environment, count) for name, count in self.counts.items()}
        self._cores = simpy.Resource(self.environment, self.cores or 10**6)

    def complete(self) -> Generator[simpy.Event, Any, None]:
        """One completion; what follows it goes on by itself."""
        began = self.environment.now
        yield from self._go(ANSWERED)
        self.latencies.append(self.environment.now - began)
        self.environment.process(self._go(AFTERWARDS))

    def arrive(self, rate: float) -> Generator[simpy.Event, Any, None]:
        """Requests at random moments, so many a second."""
        while True:
            yield self.environment.timeout(self._chance.expovariate(rate / 1000))
            self.environment.process(self.complete())

    def ask_again(self, workers: simpy.Resource) -> Generator[simpy.Event, Any, None]:
        """A client that asks as soon as it is answered; a worker's thread has to be free for it."""
        while True:
            with workers.request() as thread:
                yield thread
                yield from self.complete()
                yield from self.work("around", AROUND)

    def work(self, name: str, milliseconds: float) -> Generator[simpy.Event, Any, None]:
        """Let a process work, when it is free and has a core."""
        taken = self._chance.expovariate(1 / milliseconds)
        process = self._processes.get(name)
        if process is None:
            yield from self._on_a_core(taken)
            return
        with process.request() as turn:
            yield turn
            yield from self._on_a_core(taken)
        self.busy[name] = self.busy.get(name, 0.0) + taken

    def _on_a_core(self, milliseconds: float) -> Generator[simpy.Event, Any, None]:
        with self._cores.request() as core:
            yield core
            yield self.environment.timeout(milliseconds)

    def _go(self, steps: Sequence[Step]) -> Generator[simpy.Event, Any, None]:
        for name, share in steps:
            yield from self.work(name, share * self.costs[name])

    def busiest(self) -> tuple[str, float]:
        """The process that is busy for the largest share of its time, and that share."""
        shares = {name: spent / self.environment.now / self.counts[name] for name, spent in self.busy.items()}
        name = max(shares, key=lambda each: shares[each])
        return name, shares[name]

    def percentile(self, share: float) -> float:
        """Of the latencies, in milliseconds."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def at_rate(
    counts: Mapping[str, int], costs: Mapping[str, float], rate: float, completions: int = COMPLETIONS
) -> Horde:
    """A horde that so many requests a second came to."""
    horde = Horde(counts, costs)
    horde.environment.process(horde.arrive(rate))
    horde.environment.run(until=1000 * completions / rate)
    return horde


def on_one_machine(costs: Mapping[str, float], *, clients: int, threads: int, cores: int, seconds: float = 60) -> float:
    """Completions a second of one of each process on one machine, with clients that ask again at once."""
    horde = Horde(dict.fromkeys(costs, 1) | {"postgres": cores}, costs, cores)
    workers = simpy.Resource(horde.environment, threads)
    for _ in range(clients):
        horde.environment.process(horde.ask_again(workers))
    horde.environment.run(until=1000 * seconds)
    return len(horde.latencies) / seconds


def needed(costs: Mapping[str, float], rate: float) -> dict[str, int]:
    """How many of each process so many requests a second need; of PostgreSQL, how many cores."""
    return {name: max(1, math.ceil(rate * cost / 1000 / PLANNED)) for name, cost in costs.items()}


def describe(costs: Mapping[str, float], rate: float) -> str:
    """One line of the table."""
    counts = needed(costs, rate)
    horde = at_rate(counts, costs, rate)
    name, share = horde.busiest()
    cells = (
        f"{rate:g}",
        f"{rate * sum(costs.values()) / 1000:.1f}",
        ", ".join(f"{count} {each}" for each, count in counts.items()),
        f"{horde.percentile(0.5):.1f}, {horde.percentile(0.95):.1f}",
        f"{name}, busy {share:.0%}, full at {rate / share:.0f}",
    )
    return f"| {' | '.join(cells)} |"


def draw(costs: Mapping[str, float]) -> str:
    """The plot of what one of each adds, up to where the first is full."""
    most = 1000 / max(costs.values())
    rates = [most * step / POINTS for step in range(1, POINTS)]
    hordes = [at_rate(dict.fromkeys(costs, 1), costs, rate) for rate in rates]
    lines = [
        Line(label, [(rate, horde.percentile(share)) for rate, horde in zip(rates, hordes, strict=True)])
        for label, share in (("p50", 0.5), ("p95", 0.95))
    ]
    return plot(lines, "requests a second, one of each process", "ms added")


def main() -> None:
    """Run the simulation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", type=float, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--cost", action="append", default=[], metavar="PROCESS=MILLISECONDS")
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    pairs = itertools.chain(COSTS.items(), (each.split("=", 1) for each in options.cost))
    costs = {name: float(value) for name, value in pairs}
    alike = on_one_machine(costs, clients=32, threads=8, cores=2)
    print(f"one of each on two cores, 32 clients, 8 worker threads: {alike:.1f} completions a second\n")
    print("| a second | cores busy | processes, cores of PostgreSQL | added p50, p95 in ms | what gives out first |")
    print("| --- | --- | --- | --- | --- |")
    for rate in options.rates:
        print(describe(costs, rate))
    if options.plot is not None:
        options.plot.write_text(draw(costs))


if __name__ == "__main__":
    main()
