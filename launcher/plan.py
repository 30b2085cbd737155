"""Everything that one start will run, decided before anything runs."""

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from config.settings import LauncherSettings
from launcher.errors import LauncherError
from launcher.home import Home
from launcher.local_secrets import LocalSecrets
from launcher.options import CHECKOUT, LOCAL_SLOTS, UpOptions
from launcher.ports import METRICS_OFFSETS, PortMap
from launcher.procfile import RELEASE, read_procfile
from launcher.program import MARKER, Program
from launcher.services.postgres import Postgres
from launcher.services.reach import reach_http, reach_postgres, reach_redis
from launcher.services.s3 import S3
from launcher.services.service import Service
from launcher.services.valkey import Valkey

SERVICES, BACKEND, PROCESSES, WORKER = "services", "model", "horde", "volunteer"
"""The groups that programs start and stop in."""
FLOWER_USER = "flower"


@dataclass(frozen=True, slots=True)
class Attached:
    """A service that somebody else runs, named by a variable of the environment."""

    variable: str
    url: str
    reach: Callable[[str], None]

    def check(self) -> None:
        """Raise LauncherError when it cannot be reached."""
        try:
            self.reach(self.url)
        except OSError as error:
            raise LauncherError(f"{self.variable} names a service that cannot be reached: {error}") from error


class Plan:
    """The services, programs, ports and environment of one start."""

    def __init__(self, settings: LauncherSettings, options: UpOptions, home: Home) -> None:
        self.options = options
        self.home = home
        self.ports = PortMap.from_base(settings.horde_port_base)
        self.secrets = LocalSecrets.load_or_create(home.secrets)
        self._commands = read_procfile(options.procfile)
        self.services: list[Service] = []
        self.attached: list[Attached] = []
        self._s3_environment: dict[str, str] = {}
        self.database_url = self._database(settings.database_url)
        self.redis_url = self._redis(settings.redis_url)
        self.s3_endpoint_url = self._s3(settings.s3_endpoint_url)
        if options.backend_url is not None:
            self.attached.append(Attached("--backend", options.backend_url, reach_http))

    @property
    def front_url(self) -> str:
        """Base URL of the front."""
        return f"http://127.0.0.1:{self.ports.front}"

    @property
    def native_url(self) -> str:
        """Base URL of the native API."""
        return f"http://127.0.0.1:{self.ports.native}"

    @property
    def backend_url(self) -> str:
        """Base URL of the backend behind the worker."""
        return self.options.backend_url or f"http://127.0.0.1:{self.ports.backend}"

    @property
    def local_backend(self) -> bool:
        """Whether the model is served by a program of ours."""
        return self.options.with_worker and self.options.backend_url is None

    @property
    def environment(self) -> dict[str, str]:
        """What every process of the horde itself is told."""
        return {
            "HORDE_HOME": str(self.home.path),
            "DATABASE_URL": self.database_url,
            "REDIS_URL": self.redis_url,
            "S3_ENDPOINT_URL": self.s3_endpoint_url,
            **self._s3_environment,
            "HORDE_NATIVE_PORT": str(self.ports.native),
            "HORDE_FRONT_PORT": str(self.ports.front),
            "NATIVE_URLS": self.native_url,
            "SERVICE_PASSKEY": self.secrets.service_passkey,
            # Flower reads its own options from variables of these names.
            "FLOWER_BASIC_AUTH": f"{FLOWER_USER}:{self.secrets.flower_password}",
            "FLOWER_ADDRESS": "127.0.0.1",
            "FLOWER_PORT": str(self.ports.flower),
            # Task processes take a SIGTERM to the whole group as the start of their soft shutdown.
            "REMAP_SIGTERM": "SIGQUIT",
            "PYTHONUNBUFFERED": "1",
        }

    def release(self) -> Program | None:
        """The Procfile's release line, which is run once before the others start."""
        command = self._commands.get(RELEASE)
        environment = {**self.environment, MARKER: str(self.home.path)}
        return None if command is None else Program(RELEASE, command, CHECKOUT, environment)

    def has_process(self, name: str) -> bool:
        """Whether the Procfile has this line."""
        return name in self._commands

    def groups(self) -> dict[str, list[Program]]:
        """The programs by group, in the order of their start.

        Raises LauncherError when the Procfile uses a name that the launcher needs.
        """
        groups = {
            SERVICES: [service.program() for service in self.services],
            BACKEND: [self._backend()] if self.local_backend else [],
            PROCESSES: [self._process(name) for name in self._commands if name != RELEASE],
            WORKER: [self._worker()] if self.options.with_worker else [],
        }
        names = [program.name for programs in groups.values() for program in programs]
        clashes = sorted({name for name in names if names.count(name) > 1})
        if clashes:
            raise LauncherError(f"The Procfile may not call a process {', '.join(clashes)}: the launcher has its own.")
        return {group: programs for group, programs in groups.items() if programs}

    def wanted_ports(self) -> dict[int, str]:
        """Every port that this start will listen on, and for whom."""
        known = {
            "web": (self.ports.native, "the native API"),
            "front": (self.ports.front, "the front"),
            "flower": (self.ports.flower, "Flower"),
            "postgres": (self.ports.postgres, "PostgreSQL"),
            "redis": (self.ports.redis, "Valkey"),
            "s3": (self.ports.s3, "the S3 server"),
            "backend": (self.ports.backend, "the local model"),
            **{name: (port, f"the metrics of {name}") for name, port in self.ports.metrics.items()},
        }
        names = [program.name for programs in self.groups().values() for program in programs]
        return dict(known[name] for name in names if name in known)

    def endpoints(self) -> dict[str, object]:
        """The content of endpoints.json (operations O1)."""
        metrics = {"web": f"{self.native_url}/metrics", "front": f"{self.front_url}/metrics"}
        metrics |= {name: f"http://127.0.0.1:{port}/metrics" for name, port in self.ports.metrics.items()}
        return {
            "front": self.front_url,
            "native": self.native_url,
            "flower": f"http://127.0.0.1:{self.ports.flower}",
            "metrics": {name: url for name, url in metrics.items() if self.has_process(name)},
            "admin_key": self.secrets.admin_key,
            "demo_key": self.secrets.demo_key,
            "worker_key": self.secrets.worker_key,
            "service_passkey": self.secrets.service_passkey,
            "database_url": self.database_url,
            "redis_url": self.redis_url,
            "s3_endpoint_url": self.s3_endpoint_url,
        }

    def _database(self, given: str | None) -> str:
        if given is not None:
            self.attached.append(Attached("DATABASE_URL", given, reach_postgres))
            return given
        return self._embed(Postgres(self.home.path / "postgres", self.ports.postgres, self.secrets.postgres_password))

    def _redis(self, given: str | None) -> str:
        if given is not None:
            self.attached.append(Attached("REDIS_URL", given, reach_redis))
            return given
        return self._embed(Valkey(self.home.path / "redis", self.ports.redis, self.secrets.redis_password))

    def _s3(self, given: str | None) -> str:
        if given is not None:
            self.attached.append(Attached("S3_ENDPOINT_URL", given, reach_http))
            return given
        service = S3(self.home.path / "s3", self.ports.s3, self.secrets.s3_access_key, self.secrets.s3_secret_key)
        self._s3_environment = {
            "S3_BUCKET": service.bucket,
            "AWS_ACCESS_KEY_ID": service.access_key,
            "AWS_SECRET_ACCESS_KEY": service.secret_key,
        }
        return self._embed(service)

    def _embed(self, service: Service) -> str:
        self.services.append(service)
        return service.url

    def _process(self, name: str) -> Program:
        scratch = self.home.scratch(name)
        environment = self.environment | {"PROMETHEUS_MULTIPROC_DIR": str(scratch)}
        if name in METRICS_OFFSETS:
            environment["HORDE_METRICS_PORT"] = str(self.ports.metrics[name])
        return Program(name, self._commands[name], CHECKOUT, environment, scratch=scratch)

    def _backend(self) -> Program:
        words = [sys.executable, "-m", "launcher.local_backend", "--port", str(self.ports.backend)]
        words += ["--models", str(self.home.models), "--alias", self.options.model, "--slots", str(LOCAL_SLOTS)]
        return Program("backend", shlex.join(words), CHECKOUT, {"PYTHONUNBUFFERED": "1"})

    def _worker(self) -> Program:
        """The worker knows what a volunteer's machine would know, and no more."""
        environment = {
            "HORDE_URL": self.front_url,
            "HORDE_API_KEY": self.secrets.worker_key,
            "BACKEND_URL": self.backend_url,
            "MODEL_NAME": self.options.model,
            "WORKER_NAME": "local",
            "PYTHONUNBUFFERED": "1",
        }
        if self.local_backend:
            environment["WORKER_THREADS"] = str(LOCAL_SLOTS)
        command = shlex.join([sys.executable, "-m", "chat_worker_example"])
        return Program("worker", command, CHECKOUT / "tools", environment)


def home_of(settings: LauncherSettings) -> Home:
    """The home that HORDE_HOME names, else the checkout's own."""
    chosen: Path = settings.horde_home or CHECKOUT / ".horde"
    return Home(chosen.expanduser().resolve())
