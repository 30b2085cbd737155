"""The tutorials and the local backup, run as printed in a clean clone with ports and a folder of its own.

Only the addresses of the first block of ports, and the folder of the client's environment, are others.
"""

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from script.docs.generated import ROOT
from tests.docs.printed import Terminal, blocks
from tests.launcher.test_up import free_block
from tests.support.services import free_port, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

INSTALL_SECONDS = 1200
START_SECONDS = 240
DECLARED_SECONDS = 120
KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
KEPT_PREFIXES = ("PIP_", "SSL_", "HTTP", "http", "NO_PROXY", "no_proxy", "REQUESTS_")


class Reader:
    """Somebody who follows the pages, in a clone of the checkout."""

    def __init__(self, folder: Path) -> None:
        self.clone = folder / "horde"
        self.folder = folder
        self.base = free_block()
        self.backend = free_port()
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(self.clone)], check=True)
        kept = {name: value for name, value in os.environ.items() if name in KEPT or name.startswith(KEPT_PREFIXES)}
        self.terminal = Terminal(self.clone, folder, kept | {"HORDE_PORT_BASE": str(self.base)})

    def mine(self, printed: str) -> str:
        """A printed block with this reader's ports and folders."""
        block = printed.replace("127.0.0.1:700", f"127.0.0.1:{self.base // 10}")
        block = block.replace("/tmp/client", str(self.folder / "client"))  # noqa: S108 - what the page prints
        return block.replace("--port 8080", f"--port {self.backend}").replace(":8080", f":{self.backend}")

    def run(self, printed: str, seconds: float = START_SECONDS) -> str:
        """What a block says."""
        return self.terminal.run(self.mine(printed), seconds=seconds)

    def run_python(self, parts: list[str]) -> str:
        """What `ask.py` says, made of these parts."""
        (self.clone / "ask.py").write_text("".join(parts))
        return self.terminal.run(f"{self.folder / 'client'}/bin/python ask.py")


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    # Not tmp_path: pytest closes its folders to the account that PostgreSQL runs as.
    with tempfile.TemporaryDirectory(prefix="horde-reader-") as folder:
        Path(folder).chmod(0o755)
        made = Reader(Path(folder))
        try:
            yield made
        finally:
            subprocess.run([made.clone / "script" / "down"], env=os.environ | {"PWD": str(made.clone)}, check=False)


def test_the_pages_are_followed_from_the_first_chat_to_the_backup(reader: Reader) -> None:
    _first_chat(reader)
    _backup(reader)
    _first_worker(reader)


def _first_chat(reader: Reader) -> None:
    start, client, look, stop = blocks("tutorials/first-chat.md")
    said = reader.run(start, INSTALL_SECONDS)
    assert f"http://127.0.0.1:{reader.base}/v1" in said
    curl = re.search(r"^\s*(curl .*(?:\\\n.*)*)$", said, re.MULTILINE)
    assert curl is not None, said
    assert '"chat.completion"' in reader.run(curl[1])
    reader.run(client, INSTALL_SECONDS)
    asked, streamed, refused = blocks("tutorials/first-chat.md", "python")
    assert "'kudos'" in reader.run_python([asked])
    _, _, told = reader.run_python([asked, streamed]).partition("'kudos'")
    assert "\n".join(told.splitlines()[1:]).strip(), "nothing was streamed"
    assert "no_worker_supports_features" in reader.run_python([asked, refused])
    seen = reader.run(look)
    assert '"event"' in seen
    assert re.search(r"^horde_requests_accepted_total [1-9]", seen, re.MULTILINE)
    reader.run(stop)


def _backup(reader: Reader) -> None:
    dump, stopped, restored = blocks("how-to/back-up.md", section="The local horde")
    reader.run("script/up --detach\n")
    reader.run(f"({dump})\n")
    assert (reader.clone / "horde.dump").stat().st_size > 10_000
    keys = (reader.clone / ".horde" / "secrets.json").read_text()
    reader.run(stopped)
    reader.run(restored)
    assert (reader.clone / ".horde" / "secrets.json").read_text() == keys


def _first_worker(reader: Reader) -> None:
    without_worker, backend, settings, worker, ask = blocks("tutorials/first-worker.md")
    reader.run(without_worker)
    log = reader.folder / "worker.log"
    serving = reader.terminal.start(reader.mine(backend).rstrip("& \n"), reader.folder / "backend.log")
    try:
        reader.run(settings)
        volunteer = reader.terminal.start(reader.mine(worker), log)
        try:
            wait_until(lambda: '"declared"' in log.read_text(), DECLARED_SECONDS, f"no line 'declared' in {log}")
            said = reader.run(ask)
            assert '"my-model"' in said
            assert '"chat.completion"' in said
            wait_until(lambda: '"job_done"' in log.read_text(), 30, f"no line 'job_done' in {log}")
        finally:
            os.killpg(volunteer.pid, signal.SIGINT)
        assert volunteer.wait(30) == 0
    finally:
        os.killpg(serving.pid, signal.SIGTERM)
        serving.wait(30)
    reader.terminal.run(f"cd '{reader.clone}' && script/down")
