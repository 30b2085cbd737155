"""Every bench, one after the other, and a table of what they measured beside its bar.

    script/bench [--only NAME ...] [--quick] [--json]

Each bench starts services of its own. A figure is the worst that its bench told under a name; its
ratio is to the baseline that the same bench measured in the same run, which is what to compare
over time. `--quick` runs every bench shortly, to see that it runs: its figures prove little.
Exit code 1 when a bar is missed or a bench failed. The bar beside LiteLLM's proxy counts where that
is installed: BENCH_LITELLM names its program, see `bench.peers`. The text routes' ratios are to
figures of the original horde on the same kind of machine.
"""

import argparse
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.bars import BARS, BENCHES, Bar
from bench.litellm_proxy import NoSuchProgramError, find, version_of
from bench.report import VARIABLE, Figure, told, worst
from launcher.services.postgres import Postgres
from launcher.services.service import Service
from launcher.services.valkey import Valkey

ROOT = Path(__file__).resolve().parent.parent
QUICK = {
    "roundtrip": "--seconds 3 --clients 1 32",
    "roundtrip --flower": "--seconds 3 --clients 32",
    "text_cycle": "--clients 1 8 32 --depths 10 --seconds 1 --calls 50",
    "pop_depth": "--depths 10 1000 --pops 50",
    "verdict": "--jobs 50",
    "held_pop": "--jobs 50 --held 100 --queued 1000",
    "streams": "--posts 100 --streams 100 --seconds 5",
    "progress": "--seconds 2 --clients 1 16",
    "waits": "--waits 500 --vanish 50 --idle 5 --bare 200",
    "contract": "--rounds 20",
    "images": "--requests 8 --rounds 3",
    "settlement": "--settlements 1000 --rounds 1",
    "growth": "--requests 20000 --rounds 1 --calls 50",
    "scale": "--clients 8 --seconds 3 --rounds 1",
    "flood": "--seconds 3",
    "peers": "--seconds 2 --clients 1 --streams 1",
}


HEAD = ("what", "bar", "measured", "ratio to the baseline of the run", "")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; without a value the bench did not tell one."""

    bar: Bar
    figure: Figure | None

    @property
    def verdict(self) -> str:
        """Met, missed or not measured, for want of a peer or for no good reason."""
        if self.figure is None:
            return f"{self.bar.peer} is not installed" if self.is_excused else "not measured"
        return "met" if self.bar.is_met(self.figure.value) else "missed"

    @property
    def is_excused(self) -> bool:
        """Whether nothing was measured because its peer is not installed."""
        return self.figure is None and bool(self.bar.peer)

    def cells(self) -> tuple[str, ...]:
        """The columns for people."""
        value, ratio = "–", "–"
        if self.figure is not None:
            value = f"{self.figure.value:.3g}"
            if self.figure.ratio is not None:
                ratio = f"{self.figure.ratio:.3g} × {self.bar.baseline}".rstrip(" ×")
        return self.bar.what, self.bar.shown, value, ratio, self.verdict


@dataclass(frozen=True, slots=True)
class Machine:
    """What the figures were measured on."""

    cores: int
    processor: str
    kernel: str
    python: str
    postgresql: str
    valkey: str
    litellm: str
    """The peer's version, or that it is not installed."""

    @classmethod
    def this(cls) -> "Machine":
        """This one."""
        nowhere = Path("nowhere")
        return cls(
            cores=os.cpu_count() or 1,
            processor=_processor(),
            kernel=platform.release(),
            python=platform.python_version(),
            postgresql=_version(Postgres(nowhere, 0, "")),
            valkey=_version(Valkey(nowhere, 0, "")),
            litellm=_peer(),
        )


def _version(service: Service) -> str:
    """What a service's program says of itself."""
    said = subprocess.run([shlex.split(service.program().command)[0], "--version"], capture_output=True, check=True)
    found = re.search(rb"\d+\.\d+(\.\d+)?", said.stdout)
    return found[0].decode() if found else said.stdout.decode().strip()


def _peer() -> str:
    """LiteLLM's version; that it is not installed, or that what was named is none."""
    try:
        program = find()
    except NoSuchProgramError as error:
        return str(error)
    return "not installed" if program is None else version_of(program)


def _processor() -> str:
    """The processor's name, where the kernel tells it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def run(bench: str, *, quick: bool) -> tuple[list[Figure], int]:
    """Run one bench, which prints; its figures and its exit code."""
    words = [sys.executable, "-m", *f"bench.{bench}".split(), *(QUICK[bench].split() if quick else [])]
    with tempfile.TemporaryDirectory(prefix="horde-bench-") as folder:
        target = Path(folder) / "figures"
        began = time.monotonic()
        say(f"== bench.{bench}")
        code = subprocess.run(
            words, check=False, cwd=ROOT, env=os.environ | {VARIABLE: str(target)}, stdout=sys.stderr
        ).returncode
        say(f"== {time.monotonic() - began:.0f} s, exit code {code}\n")
        return told(target), code


def rows(figures: Sequence[Figure], benches: Sequence[str]) -> list[Row]:
    """A row for each bar of these benches."""
    return [
        Row(bar, worst((figure for figure in figures if figure.name == bar.name), at_most=bar.at_most))
        for bar in BARS
        if bar.bench in benches
    ]


def table(found: Sequence[Row]) -> str:
    """The rows for people, as Markdown."""
    lines = [HEAD, tuple("---" for _ in HEAD), *(row.cells() for row in found)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def document(machine: Machine, found: Sequence[Row], failed: Sequence[str]) -> str:
    """The same for programs."""
    measured = [
        asdict(row.bar)
        | {"value": row.figure and row.figure.value, "ratio": row.figure and row.figure.ratio, "verdict": row.verdict}
        for row in found
    ]
    return json.dumps({"machine": asdict(machine), "figures": measured, "failed": list(failed)}, indent=2)


def say(line: str) -> None:
    """Tell whoever watches, beside the result."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def main() -> None:
    """Run the benches and print what they came to."""
    names = sorted({bench.split()[0] for bench in BENCHES})
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--quick", action="store_true", help="run each shortly")
    parser.add_argument("--json", action="store_true", help="print JSON in place of the table")
    options = parser.parse_args()
    benches = [bench for bench in BENCHES if bench.split()[0] in options.only]
    figures, failed = list[Figure](), list[str]()
    for bench in benches:
        more, code = run(bench, quick=options.quick)
        figures += more
        failed += [bench] if code else []
    machine, found = Machine.this(), rows(figures, benches)
    if options.json:
        sys.stdout.write(f"{document(machine, found, failed)}\n")
    else:
        about = ", ".join(f"{name} {value}" for name, value in asdict(machine).items())
        sys.stdout.write(f"{table(found)}\n\n{about}\n")
        sys.stdout.writelines(f"bench.{bench} ended with an error or missed its own bar\n" for bench in failed)
    sys.exit(bool(failed) or any(row.verdict != "met" and not row.is_excused for row in found))


if __name__ == "__main__":
    main()
