"""Configuration: environment variables, overruled by flags."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import values
from .hours import Span

RENAMED = {"CHAT_FEATURES": "DECLARE"}
"""Variables of earlier versions: to pass them over in silence would change what is declared."""

BACKEND_KINDS = ("auto", "llama.cpp", "koboldcpp", "vllm", "tabbyapi", "ollama", "openai")


class ConfigError(Exception):
    """The configuration cannot be used; `problems` lists everything that is wrong with it."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True)
class WorkerConfig:
    """Everything that an operator can set. What a command does not need is empty."""

    horde_url: str = ""
    api_key: str = ""
    backend_url: str = ""
    model_name: str = ""
    worker_name: str = ""
    backend: str = "auto"
    backend_api_key: str | None = None
    threads: int = 1
    max_length: int = 512
    max_context_length: int | None = None
    template_overhead: int | None = None
    image_tokens: int | None = None
    max_images: int | None = None
    image_transports: tuple[str, ...] = values.TRANSPORTS
    max_tools: int | None = None
    tools_max_temperature: float | None = None
    declare: frozenset[str] = frozenset()
    no_declare: frozenset[str] = frozenset()
    quiet_hours: tuple[Span, ...] = ()
    pop_wait_seconds: int = 20
    progress_seconds: float = 1.0
    heartbeat_seconds: float = 10.0
    stop_grace_seconds: float = 20.0
    backend_patience_seconds: float = 30.0
    abort_limit: int = 20
    abort_window_seconds: float = 3600.0
    refused_pause_seconds: float = 60.0
    keep_reply_seconds: float = 1200.0
    ca_file: Path | None = None
    health_file: Path | None = None
    log_file: Path | None = None
    view: bool = False

    @property
    def model_id(self) -> str:
        """The model's name on the horde, where a colon is reserved (details D1)."""
        return self.model_name.replace(":", "-")


@dataclass(frozen=True)
class Option:
    """One setting: its field in WorkerConfig, its variable, its parser and what it means."""

    field: str
    variable: str
    parse: Callable[[str], Any]
    meaning: str
    is_switch: bool = False

    @property
    def flag(self) -> str:
        """The flag that overrules the variable."""
        return "--" + self.field.replace("_", "-")


_SECONDS = values.number(0, 86400, "a number of seconds")
_SOME_SECONDS = values.number(0.01, 86400, "a number of seconds")

OPTIONS = (
    Option("horde_url", "HORDE_URL", values.base_url("/api/v2"), "base URL of a front or of the native API"),
    Option("api_key", "HORDE_API_KEY", values.header, "key of the account that owns this worker"),
    Option("backend_url", "BACKEND_URL", values.base_url("/v1"), "OpenAI-compatible server, with or without /v1"),
    Option("model_name", "MODEL_NAME", values.words, "model as the backend calls it; the horde sees ':' as '-'"),
    Option("worker_name", "WORKER_NAME", values.words, "name of this worker, unique on the horde"),
    Option("backend", "BACKEND", values.one_of(*BACKEND_KINDS), "kind of backend (default auto: it is recognised)"),
    Option("backend_api_key", "BACKEND_API_KEY", values.header, "bearer key of the backend, if it wants one"),
    Option("threads", "WORKER_THREADS", values.whole(1, 50), "jobs at the same time (default 1)"),
    Option("max_length", "MAX_LENGTH", values.whole(16), "most tokens of one reply (default 512)"),
    Option(
        "max_context_length",
        "MAX_CONTEXT_LENGTH",
        values.whole(80),
        "most tokens of prompt and reply (default: measured)",
    ),
    Option(
        "template_overhead", "TEMPLATE_OVERHEAD", values.whole(0), "tokens of the tool preamble, for the byte bound"
    ),
    Option("image_tokens", "IMAGE_TOKENS", values.whole(1), "most tokens that the model makes of one image"),
    Option("max_images", "MAX_IMAGES", values.whole(1), "most images of one job"),
    Option(
        "image_transports",
        "IMAGE_TRANSPORTS",
        values.transports,
        "ways to this worker, of url, base64, messages_url (default all; base64 where storage is out of reach)",
    ),
    Option("max_tools", "MAX_TOOLS", values.whole(1), "most tools of one job"),
    Option(
        "tools_max_temperature",
        "TOOLS_MAX_TEMPERATURE",
        values.number(0, 2, "a temperature"),
        "highest temperature that the backend keeps with tools",
    ),
    Option("declare", "DECLARE", values.vouched_names, "names that you vouch for beyond the probe, comma separated"),
    Option("no_declare", "NO_DECLARE", values.names, "names to leave out although the probe shows them"),
    Option("quiet_hours", "QUIET_HOURS", values.spans, "local hours without jobs, such as 23:00-07:00"),
    Option("pop_wait_seconds", "POP_WAIT_SECONDS", values.whole(0, 25), "how long a pop may be held (default 20)"),
    Option("progress_seconds", "PROGRESS_SECONDS", _SOME_SECONDS, "time between posts of a streamed job (default 1)"),
    Option("heartbeat_seconds", "HEARTBEAT_SECONDS", _SOME_SECONDS, "time between signs of life (default 10)"),
    Option("stop_grace_seconds", "STOP_GRACE_SECONDS", _SECONDS, "time for running jobs after SIGTERM (default 20)"),
    Option(
        "backend_patience_seconds",
        "BACKEND_PATIENCE_SECONDS",
        _SECONDS,
        "how long a job waits for a backend that takes no connections, as while it restarts (default 30)",
    ),
    Option("abort_limit", "ABORT_LIMIT", values.whole(1, 1000), "aborts in the window before it rests (default 20)"),
    Option("abort_window_seconds", "ABORT_WINDOW_SECONDS", _SOME_SECONDS, "the window of that limit (default 3600)"),
    Option("refused_pause_seconds", "REFUSED_PAUSE_SECONDS", _SOME_SECONDS, "pause after a refusal (default 60)"),
    Option("keep_reply_seconds", "KEEP_REPLY_SECONDS", _SECONDS, "how long an undelivered reply is kept after its ttl"),
    Option("ca_file", "CA_FILE", values.existing_file, "certificates to trust for the horde, if it has one of its own"),
    Option("health_file", "HEALTH_FILE", values.new_file, "file that is kept up to date with the worker's state"),
    Option("log_file", "LOG_FILE", values.new_file, "file that the log is added to, in place of standard output"),
    Option("view", "VIEW", values.switch, "show a live view in the terminal (needs rich)", is_switch=True),
)

HORDE = frozenset({"horde_url", "api_key"})
BACKEND = frozenset({"backend_url", "model_name"})
WORKER = HORDE | BACKEND | {"worker_name"}
"""What a command needs to be set."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="horde-worker",
        description="Answers a horde's chat requests with your own backend.",
        epilog="Commands: run (or nothing), check, why, test, earnings. All take the same settings.",
    )
    for option in OPTIONS:
        text = f"{option.meaning} [{option.variable}]"
        if option.is_switch:
            parser.add_argument(option.flag, dest=option.field, help=text, action="store_const", const="yes")
        else:
            parser.add_argument(option.flag, dest=option.field, help=text)
    return parser


def load_config(
    arguments: Sequence[str], environment: Mapping[str, str], needed: frozenset[str] = WORKER
) -> WorkerConfig:
    """Reads the configuration; a flag wins over its variable, and an empty value counts as unset.

    Raises ConfigError with every problem at once.
    """
    flags, unknown = _parser().parse_known_args(arguments)
    problems = [f"{argument}: no such flag" for argument in unknown]
    problems += [f"{old}: is called {new} now" for old, new in RENAMED.items() if environment.get(old)]
    found: dict[str, Any] = {}
    for option in OPTIONS:
        text = (getattr(flags, option.field) or environment.get(option.variable) or "").strip()
        if text:
            try:
                found[option.field] = option.parse(text)
            except ValueError as error:
                problems.append(f"{option.variable} ({option.flag}): {error}")
        elif option.field in needed:
            problems.append(f"{option.variable} ({option.flag}): is not set; it is the {option.meaning}")
    problems += _contradictions(found)
    if problems:
        raise ConfigError(problems)
    return WorkerConfig(**found)


def _contradictions(found: Mapping[str, Any]) -> list[str]:
    problems = []
    context, length = found.get("max_context_length"), found.get("max_length", WorkerConfig.max_length)
    if context is not None and length >= context:
        problems.append(f"MAX_LENGTH ({length}) must be below MAX_CONTEXT_LENGTH ({context})")
    both = sorted(found.get("declare", frozenset()) & found.get("no_declare", frozenset()))
    if both:
        problems.append(f"DECLARE and NO_DECLARE: both name {', '.join(both)}")
    return problems
