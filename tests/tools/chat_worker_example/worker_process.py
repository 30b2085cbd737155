"""The real worker as a process, with its log read as events."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TOOLS = Path(__file__).parents[3] / "tools"
DEADLINE_SECONDS = 60.0
COMMAND_SECONDS = 200.0
"""A check may ask a real model a dozen questions."""


@dataclass
class WorkerProcess:
    """A running worker."""

    process: asyncio.subprocess.Process
    lines: list[str] = field(default_factory=list)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def events(self, name: str) -> list[dict[str, Any]]:
        """The log's events of this name so far."""
        parsed = [json.loads(line) for line in self.lines]
        return [event for event in parsed if event["event"] == name]

    async def event(self, name: str, count: int = 1, seconds: float = DEADLINE_SECONDS) -> dict[str, Any]:
        """The last event of this name, once there are so many."""
        async with asyncio.timeout(seconds), self._changed:
            await self._changed.wait_for(lambda: len(self.events(name)) >= count)
        return self.events(name)[-1]

    async def printed(self, beginning: str, seconds: float = DEADLINE_SECONDS) -> None:
        """Waits for a line that begins so, of a command that prints no events."""
        async with asyncio.timeout(seconds), self._changed:
            await self._changed.wait_for(lambda: any(line.startswith(beginning) for line in self.lines))

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Sends a signal to the worker."""
        self.process.send_signal(number)

    async def exit_code(self, seconds: float = DEADLINE_SECONDS) -> int:
        """The exit code, once the worker has ended."""
        async with asyncio.timeout(seconds):
            return await self.process.wait()

    async def stderr(self) -> str:
        """All of standard error, once the worker has ended."""
        assert self.process.stderr is not None
        return (await self.process.stderr.read()).decode()

    async def read_log(self) -> None:
        """Reads the log to its end."""
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            async with self._changed:
                self.lines.append(line.decode())
                self._changed.notify_all()


async def run_command(*arguments: str, **environment: str) -> tuple[int, str]:
    """Runs a command of the worker to its end; returns its exit code and what it printed."""
    async with running_worker(*arguments, **environment) as worker:
        code = await worker.exit_code(COMMAND_SECONDS)
    return code, "".join(worker.lines)


@asynccontextmanager
async def running_worker(
    *arguments: str, start: Sequence[str] = ("-m", "chat_worker_example"), **environment: str
) -> AsyncIterator[WorkerProcess]:
    """Starts a worker with these arguments and this environment alone; kills it at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *start,
        *arguments,
        cwd=TOOLS,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    worker = WorkerProcess(process)
    reader = asyncio.create_task(worker.read_log())
    try:
        yield worker
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await reader
