"""What the worker and its commands begin with: connections, the probe's verdict, and a runner of jobs."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp

from .backend import Backend
from .backends import connect
from .chat import Json
from .config import WorkerConfig
from .counting import PromptFit
from .declaration import Declaration, decide
from .horde import HordeClient
from .jobs import JobRunner
from .media import Media
from .probe import Findings, Prober
from .waiting import Shutdown


@dataclass(frozen=True)
class Connections:
    """The two sides."""

    backend_session: aiohttp.ClientSession
    horde: HordeClient
    media: Media


@dataclass(frozen=True)
class Examined:
    """A backend, what the probe found, and what is declared for it."""

    backend: Backend
    findings: Findings
    declaration: Declaration

    async def still_holds(self, config: WorkerConfig) -> bool:
        """Whether the backend is the one that was examined. Raises BackendError while it does not answer."""
        return await Prober(self.backend, config.model_name).finds_again(self.findings)

    def summary(self) -> Json:
        """The declaration in the log's words."""
        return {
            "backend": self.findings.kind,
            "model": self.declaration.model_id,
            "features": sorted(self.declaration.features),
            "because": self.declaration.because,
            "withheld": self.declaration.withheld,
            "max_context_length": self.declaration.context,
            "max_length": self.declaration.max_length,
            "counter": self.declaration.counter,
            "counted_tokens": self.findings.counted_tokens,
            "used_tokens": self.findings.used_tokens,
        }


@asynccontextmanager
async def connections(config: WorkerConfig) -> AsyncIterator[Connections]:
    """Opens what is needed to talk to both sides."""
    trusted = ssl.create_default_context(cafile=config.ca_file) if config.ca_file else True
    # A server may close a kept connection just as a call goes out on it. For a backend that would
    # cost a job, so each call gets a connection of its own; the horde's calls are simply repeated.
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, force_close=True)) as backend_session,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, ssl=trusted)) as horde_session,
    ):
        horde = HordeClient(horde_session, config.horde_url, config.api_key)
        yield Connections(backend_session, horde, Media(horde_session))


async def examine(config: WorkerConfig, to: Connections) -> Examined:
    """Recognises and probes the backend, and decides on the declaration.

    Raises BackendError while the backend is not ready, ModelMissing and UnusableBackend.
    """
    backend = await connect(to.backend_session, config.backend_url, config.backend, config.backend_api_key)
    findings = await Prober(backend, config.model_name, config.max_context_length).probe()
    return Examined(backend, findings, decide(config, findings))


def runner_for(config: WorkerConfig, to: Connections, examined: Examined, shutdown: Shutdown) -> JobRunner:
    """A runner of jobs that keeps what the declaration says."""
    declared = examined.declaration
    exact = examined.backend.count_tokens if declared.counter == "exact" else None
    fit = PromptFit(declared.context, declared.overhead, exact, config.image_tokens or 0)
    return JobRunner(
        config,
        to.horde,
        examined.backend,
        to.media,
        examined.findings.backend_model,
        fit if declared.counter != "none" else None,
        shutdown,
    )
