"""A real Prometheus over a horde's processes, with the deployment's rules at thirty times their pace."""

import json
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.support.services import free_port, wait_until

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy" / "prometheus" / "alerts.yml"
PROGRAM = shutil.which("prometheus")
FASTER = 30
STOP_SECONDS = 20


def hastened(rules: str) -> str:
    """The rules with every duration, range and age divided by `FASTER`; what they ask for stays the same."""
    rules = re.sub(r"\bfor: (\d+)m", lambda found: f"for: {60 * int(found[1]) // FASTER}s", rules)
    rules = re.sub(r"\[(\d+)m\]", lambda found: f"[{60 * int(found[1]) // FASTER}s]", rules)
    return re.sub(
        r"(_seconds(?:\{[^}]*\})?\) > )(\d+)", lambda found: f"{found[1]}{max(1, int(found[2]) // FASTER)}", rules
    )


class Prometheus:
    """A running server."""

    def __init__(self, url: str) -> None:
        self.url = url

    def firing(self) -> set[str]:
        """The alerts that fire now."""
        alerts = self._asked("alerts")["alerts"]
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}

    def query(self, expression: str) -> list[Any]:
        """What an expression comes to now. Raises AssertionError when it is none."""
        return list(self._asked(f"query?{urllib.parse.urlencode({'query': expression})}")["result"])

    def is_scraping(self, targets: int) -> bool:
        """Whether it is ready, and so many processes answer it."""
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5) as response:  # noqa: S310 - ours
                response.read()
            return len(self.query('up{job="horde"} == 1')) == targets
        except OSError:
            return False

    def _asked(self, path: str) -> dict[str, Any]:
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{path}", timeout=5) as response:  # noqa: S310 - ours
                answer = json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(error.read().decode()) from None
        assert answer["status"] == "success", answer
        return dict(answer["data"])


@contextmanager
def running_prometheus(folder: Path, processes: Mapping[str, int]) -> Iterator[Prometheus]:
    """A server that scrapes these ports each second; ended with the block."""
    assert PROGRAM is not None
    targets = [{"targets": [f"127.0.0.1:{port}"], "labels": {"process": name}} for name, port in processes.items()]
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": ["alerts.yml"],
        "scrape_configs": [{"job_name": "horde", "static_configs": targets}],
    }
    (folder / "alerts.yml").write_text(hastened(RULES.read_text()))
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    port = free_port()
    words = [f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'series'}"]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen([PROGRAM, *words, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
    server = Prometheus(f"http://127.0.0.1:{port}")
    try:
        wait_until(lambda: server.is_scraping(len(processes)), 60, f"not every process is scraped, see {folder}")
        yield server
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)
