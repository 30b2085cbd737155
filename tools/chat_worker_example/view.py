"""The live view of a run in the terminal. Needs `rich`."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from .board import Board
from .events import Listener


def picture(board: Board, now: float) -> Group:
    """The board as it looks at one moment."""
    ends = ", ".join(f"{count} {name.removeprefix('job_')}" for name, count in sorted(board.ended.items()))
    head = Text.assemble((board.worker, "bold"), f"  {board.model}  ", (board.state, "cyan"))
    sums = Text(
        f"{board.kudos:.2f} kudos   {board.tokens_per_second(now):.1f} tokens/s   "
        f"{len(board.running)} running   {ends or 'no job yet'}"
    )
    jobs = Table("job", "state", "seconds", "tokens", "kudos", box=None, pad_edge=False)
    for job, since in board.running.items():
        jobs.add_row(job[:8], "running", f"{now - since:.0f}", "", "")
    for event in reversed(board.recent):
        usage = event.get("usage")
        tokens = usage.get("completion_tokens") if isinstance(usage, dict) else None
        state = str(event.get("fault") or str(event["event"]).removeprefix("job_"))
        cells = (str(event.get("id"))[:8], state, event.get("seconds"), tokens, event.get("reward"))
        jobs.add_row(*("" if cell is None else str(cell) for cell in cells))
    return Group(head, sums, jobs)


class _Picture:
    """Drawn anew at each refresh, so that seconds go by between events."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def __rich__(self) -> Group:
        return picture(self._board, time.time())


@contextmanager
def live_view(stream: TextIO) -> Iterator[Listener]:
    """Shows a board until the end; what it gives takes the events."""
    board = Board()
    with Live(_Picture(board), console=Console(file=stream), refresh_per_second=2):
        yield board.take
