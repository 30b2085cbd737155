"""Configuration: environment variables, overruled by flags."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CAPABILITIES = frozenset({"tools", "json_object", "json_schema", "reasoning"})
"""Features that this worker can act on. `images` is missing: it declares no image transport."""

GUARANTEES = frozenset(
    {
        "tool_choice_enforced",
        "tool_choice_auto_faithful",
        "single_tool_call_enforced",
        "json_object_enforced",
        "json_schema_enforced",
    }
)
"""Guarantees that an operator may vouch for. `prompt_overflow_refused` is missing: it is only ever measured."""


class ConfigError(Exception):
    """The configuration cannot be used; `problems` lists everything that is wrong with it."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True)
class WorkerConfig:
    """Everything that an operator can set."""

    horde_url: str
    api_key: str
    backend_url: str
    model_name: str
    worker_name: str
    backend_api_key: str | None = None
    threads: int = 1
    max_length: int = 512
    max_context_length: int | None = None
    template_overhead: int | None = None
    chat_features: frozenset[str] = frozenset()
    pop_wait_seconds: int = 20
    stop_grace_seconds: float = 20.0
    backend_patience_seconds: float = 30.0
    health_file: Path | None = None

    @property
    def model_id(self) -> str:
        """The model's name on the horde, where a colon is reserved (details D1)."""
        return self.model_name.replace(":", "-")


def _base_url(*endings: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not text.startswith(("http://", "https://")):
            raise ValueError("must be an http:// or https:// URL")
        url = text.rstrip("/")
        for ending in endings:
            url = url.removesuffix(ending)
        return url

    return parse


def _whole(least: int, most: int | None = None) -> Callable[[str], int]:
    wanted = f"a whole number from {least}" + (f" to {most}" if most is not None else " up")

    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least or (most is not None and int(text) > most):
            raise ValueError(f"must be {wanted}")
        return int(text)

    return parse


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 3600:
        raise ValueError("must be a number of seconds from 0 to 3600")
    return value


def _words(text: str) -> str:
    if not text.isprintable() or len(text) > 100:
        raise ValueError("must be printable and at most 100 characters long")
    return text


def _header(text: str) -> str:
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("must be printable ASCII without spaces")
    return text


def _file(text: str) -> Path:
    path = Path(text)
    if not path.parent.is_dir():
        raise ValueError("must lie in a folder that exists")
    return path


def _features(text: str) -> frozenset[str]:
    names = frozenset(name.strip() for name in text.split(",") if name.strip())
    if "prompt_overflow_refused" in names:
        raise ValueError("prompt_overflow_refused is measured at the start and cannot be set by hand")
    if "images" in names:
        raise ValueError("this worker has no image transport, so it cannot declare images")
    unknown = sorted(names - CAPABILITIES - GUARANTEES)
    if unknown:
        known = ", ".join(sorted(CAPABILITIES | GUARANTEES))
        raise ValueError(f"does not know {', '.join(unknown)}; known names are {known}")
    return names


@dataclass(frozen=True)
class Option:
    """One setting: its field in WorkerConfig, its variable, its parser and what it means."""

    field: str
    variable: str
    parse: Callable[[str], Any]
    meaning: str
    required: bool = False

    @property
    def flag(self) -> str:
        """The flag that overrules the variable."""
        return "--" + self.field.replace("_", "-")


OPTIONS = (
    Option("horde_url", "HORDE_URL", _base_url("/api/v2"), "base URL of a front or of the native API", required=True),
    Option("api_key", "HORDE_API_KEY", _header, "key of the account that owns this worker", required=True),
    Option(
        "backend_url", "BACKEND_URL", _base_url("/v1"), "OpenAI-compatible server, with or without /v1", required=True
    ),
    Option(
        "model_name", "MODEL_NAME", _words, "model as the backend calls it; the horde sees ':' as '-'", required=True
    ),
    Option("worker_name", "WORKER_NAME", _words, "name of this worker, unique on the horde", required=True),
    Option("backend_api_key", "BACKEND_API_KEY", _header, "bearer key of the backend, if it wants one"),
    Option("threads", "WORKER_THREADS", _whole(1, 50), "jobs at the same time (default 1)"),
    Option("max_length", "MAX_LENGTH", _whole(16), "most tokens of one reply (default 512)"),
    Option(
        "max_context_length", "MAX_CONTEXT_LENGTH", _whole(80), "most tokens of prompt and reply (default: measured)"
    ),
    Option("template_overhead", "TEMPLATE_OVERHEAD", _whole(0), "tokens of the tool preamble, for the byte bound"),
    Option("chat_features", "CHAT_FEATURES", _features, "features and guarantees that you vouch for, comma separated"),
    Option("pop_wait_seconds", "POP_WAIT_SECONDS", _whole(0, 25), "how long a pop may be held (default 20)"),
    Option("stop_grace_seconds", "STOP_GRACE_SECONDS", _seconds, "time for running jobs after SIGTERM (default 20)"),
    Option(
        "backend_patience_seconds",
        "BACKEND_PATIENCE_SECONDS",
        _seconds,
        "how long a job waits for a backend that takes no connections, as while it restarts (default 30)",
    ),
    Option("health_file", "HEALTH_FILE", _file, "file that is kept up to date with the worker's state"),
)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="chat_worker_example", description="Answers a horde's chat requests with your own backend."
    )
    for option in OPTIONS:
        parser.add_argument(option.flag, dest=option.field, help=f"{option.meaning} [{option.variable}]")
    return parser


def load_config(arguments: Sequence[str], environment: Mapping[str, str]) -> WorkerConfig:
    """Reads the configuration; a flag wins over its variable, and an empty value counts as unset.

    Raises ConfigError with every problem at once.
    """
    flags, unknown = _parser().parse_known_args(arguments)
    problems = [f"{argument}: no such flag" for argument in unknown]
    values: dict[str, Any] = {}
    for option in OPTIONS:
        text = (getattr(flags, option.field) or environment.get(option.variable) or "").strip()
        if text:
            try:
                values[option.field] = option.parse(text)
            except ValueError as error:
                problems.append(f"{option.variable} ({option.flag}): {error}")
        elif option.required:
            problems.append(f"{option.variable} ({option.flag}): is not set; it is the {option.meaning}")
    context, length = values.get("max_context_length"), values.get("max_length", WorkerConfig.max_length)
    if context is not None and length >= context:
        problems.append(f"MAX_LENGTH ({length}) must be below MAX_CONTEXT_LENGTH ({context})")
    if problems:
        raise ConfigError(problems)
    return WorkerConfig(**values)
