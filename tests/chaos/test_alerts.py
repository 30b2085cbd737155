"""The drill: what an alert is for is provoked in a real horde, a real Prometheus sees it fire, and end afterwards.

The rules are the deployment's, at thirty times their pace. It needs `prometheus` on the PATH.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import orjson
import pytest

from tests.support.hand_worker import call
from tests.support.horde import KEYS, MODEL, ROOT, HordeProcesses
from tests.support.prometheus import PROGRAM, Prometheus, running_prometheus
from tests.support.services import LocalServices, wait_until
from tests.support.tcp_proxy import TcpProxy

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(PROGRAM is None, reason="prometheus is not on the PATH: install it, for example by apt-get"),
]

ONLINE_SECONDS = 40
SETTINGS = {"WORKER_ONLINE_SECONDS": str(ONLINE_SECONDS), "OFFLOAD_BYTES": "1024"}
FIRES_SECONDS = ONLINE_SECONDS + 60
ENDS_SECONDS = 90


@dataclass(frozen=True)
class Drill:
    """A horde of this drill's own, its services, and who watches it."""

    horde: HordeProcesses
    services: LocalServices
    store: TcpProxy
    prometheus: Prometheus

    def ask(self, content: str) -> None:
        """Submit a request and leave it to the horde."""
        body = {"model": MODEL, "messages": [{"role": "user", "content": content}], "max_tokens": 32}
        answer = call("POST", f"{self.horde.native}/api/v2/generate/chat/async", body, KEYS.demo)
        assert answer.status == 202, answer

    def chat(self) -> None:
        """Ask and wait for the answer."""
        self.horde.openai().chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "Hello."}])


@pytest.fixture(scope="module")
def drill(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drill]:
    folder = tmp_path_factory.mktemp("drill")
    with LocalServices() as services, TcpProxy(services.s3_endpoint_url) as store:
        migration = [sys.executable, "-m", "alembic", "upgrade", "head"]
        subprocess.run(migration, cwd=ROOT, env={**os.environ, **services.environment}, check=True)
        settings = SETTINGS | {"S3_ENDPOINT_URL": store.url}
        horde = HordeProcesses(services, services.database_url, folder, settings)
        ports = {name: getattr(horde.ports, name) for name in ("front", "verdict", "tasks", "media", "beat")}
        try:
            horde.start_all()
            with running_prometheus(folder, ports | {"web": horde.ports.native}) as prometheus:
                yield Drill(horde, services, store, prometheus)
        finally:
            horde.close()


@contextmanager
def no_worker(drill: Drill) -> Iterator[None]:
    drill.horde.kill("worker")
    yield
    drill.horde.start("worker")


@contextmanager
def stuck_queue(drill: Drill) -> Iterator[None]:
    """A worker that is still taken for online pops no more."""
    drill.horde.kill("worker")
    for _ in range(3):
        drill.ask("Is anybody there?")
    yield
    drill.horde.start("worker")


@contextmanager
def broker_down(drill: Drill) -> Iterator[None]:
    drill.services.redis.stop()
    yield
    drill.services.redis.start()


@contextmanager
def settlement_stopped(drill: Drill) -> Iterator[None]:
    """Verdicts come, and nobody books them."""
    drill.horde.kill("tasks")
    drill.chat()
    yield
    drill.horde.start("tasks")


@contextmanager
def store_full(drill: Drill) -> Iterator[None]:
    with drill.store.full():
        drill.ask(f"[[delay=8]] {'long ' * 400}")
        yield


PROVOCATIONS: dict[str, Callable[[Drill], AbstractContextManager[None]]] = {
    "HordeNoWorker": no_worker,
    "HordeQueueStuck": stuck_queue,
    "HordeBrokerDown": broker_down,
    "HordeSettlementLag": settlement_stopped,
    "HordeStorageFull": store_full,
}


@pytest.mark.parametrize("alert", PROVOCATIONS)
def test_an_alert_fires_while_its_cause_lasts_and_ends_with_it(drill: Drill, alert: str) -> None:
    drill.horde.wait_ready()
    drill.chat()
    wait_until(lambda: alert not in drill.prometheus.firing(), ENDS_SECONDS, f"{alert} fires before its cause")
    with PROVOCATIONS[alert](drill):
        wait_until(lambda: alert in drill.prometheus.firing(), FIRES_SECONDS, f"{alert} does not fire")
    wait_until(lambda: alert not in drill.prometheus.firing(), ENDS_SECONDS, f"{alert} goes on")


def test_a_horde_that_is_well_is_left_alone(drill: Drill) -> None:
    drill.horde.wait_ready()
    drill.chat()
    wait_until(lambda: not drill.prometheus.firing(), ENDS_SECONDS, "an alert fires for nothing")


def test_prometheus_understands_every_panel(drill: Drill) -> None:
    board = orjson.loads((ROOT / "deploy" / "grafana" / "horde.json").read_bytes())
    drill.chat()
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            drill.prometheus.query(target["expr"].replace("$__rate_interval", "10s"))
