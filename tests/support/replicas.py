"""Two of each process of a horde behind nginx, with the files of `deploy/`: what one machine's operator runs."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, Popen

import psutil

from launcher.procfile import read_procfile
from tests.support.horde import FAST, KEYS, MODEL, ROOT, START_SECONDS, HordeProcesses, answers
from tests.support.services import LocalServices, free_port, wait_until

TWICE = ("web", "verdict", "tasks", "fetch", "media", "front", "worker")
ONCE = ("beat", "flower")
REPLICAS = tuple(f"{name}{number}" for name in TWICE for number in ("", "-2"))
KILLABLE = (*REPLICAS, *ONCE)
MAKE_ACCOUNTS = """
import json, os, sys
from types import SimpleNamespace
from launcher.accounts import create_accounts
create_accounts(os.environ, SimpleNamespace(**json.loads(sys.argv[1])))
"""
"""A program of the checkout in force, since its tables are what they are."""

SECRETS = {
    "admin_key": KEYS.admin,
    "demo_key": KEYS.demo,
    "worker_key": KEYS.worker,
    "service_passkey": KEYS.service_passkey,
}

RENEWED = tuple(name for name in (*REPLICAS, *ONCE) if not name.startswith("worker"))
"""The horde's own processes in the order in which an upgrade restarts them; workers are their owners'."""

WITH_FIGURES = frozenset({"web", "verdict", "tasks", "fetch", "media"})
HTTP_PATHS = {"web": "/readyz", "front": "/readyz", "flower": "/healthcheck"}
AS_SHIPPED = {
    # As `deploy/systemd/horde.env.example` says.
    "TRUSTED_PROXIES": "127.0.0.1/32,::1/128",
    # Every client has one address and one key.
    "RATE_LIMITS": "false",
    "USER_CONCURRENCY": "200",
    "WORKERS_UNTRUSTED": "100000",
}
"""What a horde of replicas is told beyond the settings as they come."""

SETTINGS = FAST | AS_SHIPPED | {"DRAIN_SECONDS": "25"}
SLOW_START_SECONDS = 90.0
TIMEOUT_STOP_SECONDS = 40.0
"""As in `deploy/systemd/horde@.service`."""

NGINX = shutil.which("nginx", path=os.pathsep.join((os.environ["PATH"], "/usr/sbin", "/sbin")))
"""The server that `deploy/nginx` is for, if this machine has it."""


def kind_of(name: str) -> str:
    """The Procfile's name of a replica."""
    return re.sub(r"-\d+$", "", name)


def twin_of(name: str) -> str | None:
    """The other replica; None of a process that runs once."""
    if kind_of(name) in ONCE:
        return None
    return kind_of(name) if name.endswith("-2") else f"{name}-2"


def _stops(process: psutil.Process) -> bool:
    """Whether a process of nginx has ended, or takes no new connection before it does."""
    try:
        return "shutting down" in " ".join(process.cmdline()) or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@dataclass
class _Ports:
    """Where each process listens, by the replica's name."""

    by_name: dict[str, int] = field(default_factory=dict)

    def __getitem__(self, name: str) -> int:
        return self.by_name.setdefault(name, free_port())


class ReplicatedHorde(HordeProcesses):
    """A horde whose processes run from a checkout each, so that some can be older than others."""

    def __init__(
        self, services: LocalServices, database_url: str, folder: Path, settings: Mapping[str, str] = SETTINGS
    ) -> None:
        super().__init__(services, database_url, folder)
        self._settings = dict(settings)
        self.port = _Ports()
        self._site = ""
        self.checkout = ROOT

    @property
    def front(self) -> str:
        """Base URL of nginx, the one door."""
        return f"http://127.0.0.1:{self.port['nginx']}"

    @property
    def native(self) -> str:
        """Base URL of the first native API."""
        return f"http://127.0.0.1:{self.port['web']}"

    def start_all(self) -> None:
        """Create the accounts, start every process and wait until each is ready and the workers are known."""
        self.run(sys.executable, "-c", MAKE_ACCOUNTS, json.dumps(SECRETS))
        self.start_nginx()
        names = [name for name in KILLABLE if self.has(name)]
        for name in ("backend", *names):
            self.start(name)
        for name in names:
            self.wait_for(name, SLOW_START_SECONDS)

    def has(self, name: str) -> bool:
        """Whether the checkout in force has a process of this name."""
        return kind_of(name) in {"worker", *read_procfile(self.checkout / "Procfile")}

    def wait_for(self, name: str, seconds: float = START_SECONDS) -> None:
        """Wait until a process can work."""
        wait_until(partial(self.is_ready, name), seconds, f"{name} is not ready, see {self.folder}")

    def is_ready(self, name: str) -> bool:
        """Whether a process can work."""
        if not self.is_alive(name):
            return False
        if kind_of(name) == "worker":
            return self._is_online(name)
        return answers(f"http://127.0.0.1:{self.port[name]}{HTTP_PATHS.get(kind_of(name), '/readyz')}")

    def figure_of(self, name: str, metric: str) -> float:
        """A metric without labels of one process."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port[name]}/metrics", timeout=5) as response:
            text = response.read().decode()
        return sum(float(value) for value in re.findall(rf"^{metric} (\S+)$", text, re.MULTILINE))

    def start_nginx(self) -> None:
        """Start nginx with the site of `deploy/`, of which only the ports are other ones."""
        assert NGINX is not None
        site = (ROOT / "deploy" / "nginx" / "horde.conf").read_text()
        for given, port in (("7000", self.port["front"]), ("7100", self.port["front-2"])):
            site = site.replace(f"127.0.0.1:{given}", f"127.0.0.1:{port}")
        site = site.replace("listen [::]:80;", "").replace("listen 80;", f"listen 127.0.0.1:{self.port['nginx']};")
        home = self.folder / "nginx"
        home.mkdir()
        self._site = site
        (home / "site.conf").write_text(site)
        user = "user root;" if os.geteuid() == 0 else ""
        kept = "".join(
            f"{kind}_temp_path {home}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (home / "nginx.conf").write_text(
            f"{user} daemon off; worker_processes 2; pid {home}/pid; error_log {home}/error.log;"
            f"events {{}} http {{ access_log {home}/access.log; {kept} include {home}/site.conf; }}"
        )
        self._spawn("nginx", [NGINX, "-c", str(home / "nginx.conf"), "-e", str(home / "error.log")], ROOT, {})
        wait_until(
            lambda: self.is_alive("nginx") and (home / "pid").exists(), START_SECONDS, f"nginx is not up, see {home}"
        )

    def give_no_more_to(self, *fronts: str) -> None:
        """Let nginx pass no new call to these fronts; without any, give all of them calls again."""
        site = self._site
        for front in fronts:
            site = site.replace(f"127.0.0.1:{self.port[front]} ", f"127.0.0.1:{self.port[front]} down ")
        (self.folder / "nginx" / "site.conf").write_text(site)
        master = psutil.Process(self.running["nginx"].pid)
        before = set(master.children())
        master.send_signal(signal.SIGHUP)
        wait_until(lambda: all(_stops(one) for one in before), START_SECONDS, "nginx does not take its new site")

    def start(self, name: str, fault: object = None, **settings: str) -> None:
        """Start a process with the code of the checkout in force."""
        assert fault is None
        checkout = ROOT if name == "backend" else self.checkout
        self._spawn(name, self._command(name), checkout, self._environment(name) | settings)

    def renew(self, name: str) -> None:
        """Restart a process as systemd does, and wait until it can work: SIGTERM to itself, SIGKILL to what is left."""
        process = self.running.get(name)
        if process is not None:
            process.send_signal(signal.SIGTERM)
            process.wait(TIMEOUT_STOP_SECONDS)
            self.kill(name)
        self.start(name)
        self.wait_for(name, SLOW_START_SECONDS)

    def run(self, *command: str) -> None:
        """Run a command of the checkout in force to its end, with a web process's environment."""
        subprocess.run(
            command, cwd=self.checkout, env=self._environment("web") | {"PYTHONPATH": str(self.checkout)}, check=True
        )

    def _spawn(self, name: str, command: list[str], folder: Path, environment: Mapping[str, str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = Popen(
                command,
                cwd=folder / "tools" if kind_of(name) == "worker" else folder,
                env={**environment, "PYTHONPATH": str(folder)},
                stdout=log,
                stderr=log,
                stdin=DEVNULL,
                start_new_session=True,
            )

    def _is_online(self, name: str) -> bool:
        rows = self.query(
            "SELECT last_seen_at > now() - interval '30 seconds' FROM workers WHERE name = :name", name=f"flows {name}"
        )
        return rows == [(True,)]

    def _command(self, name: str) -> list[str]:
        if name == "backend":
            return [sys.executable, "-m", "tests.support.scripted_backend", "--port", str(self.ports.backend)]
        if kind_of(name) == "worker":
            return [sys.executable, "-m", "chat_worker_example"]
        return ["/bin/sh", "-c", f"exec {read_procfile(self.checkout / 'Procfile')[kind_of(name)]}"]

    def _environment(self, name: str) -> dict[str, str]:
        kind = kind_of(name)
        environment = super()._environment(kind)
        if kind == "worker":
            return environment | {"WORKER_NAME": f"flows {name}", "MODEL_NAME": MODEL}
        if kind == "backend":
            return environment
        figures = {"PROMETHEUS_MULTIPROC_DIR": str(self._figures(name))} if kind in WITH_FIGURES else {}
        return (
            environment
            | {
                "HORDE_INSTANCE": name.removeprefix(kind),
                "HORDE_NATIVE_PORT": str(self.port[name]),
                "HORDE_FRONT_PORT": str(self.port[name]),
                "HORDE_METRICS_PORT": str(self.port[name]),
                "NATIVE_URLS": ",".join(f"http://127.0.0.1:{self.port[web]}" for web in ("web", "web-2")),
                "FLOWER_BASIC_AUTH": "operator:a-long-password",
                "FLOWER_PORT": str(self.port["flower"]),
            }
            | figures
        )
