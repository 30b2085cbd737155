"""What this worker declares on every pop (contract C4), decided from configuration and probe alone."""

from dataclasses import dataclass, field

from . import BRIDGE_AGENT
from .chat import Json
from .config import WorkerConfig
from .probe import Findings, covers

OVERFLOW = "prompt_overflow_refused"
TOOL_NAMES = frozenset({"tools", "tool_choice_enforced", "tool_choice_auto_faithful", "single_tool_call_enforced"})

GRAMMAR_GUARANTEES = {
    "json_object": "json_object_enforced",
    "json_schema": "json_schema_enforced",
}
"""Guarantees that a llama.cpp server gives with the feature, since it samples under a grammar."""


class UnusableBackend(Exception):
    """The backend and the configuration do not go together; the message says what to set."""


@dataclass(frozen=True)
class Declaration:
    """The declaration, and how it came about."""

    model_id: str
    context: int
    max_length: int
    features: frozenset[str]
    counter: str
    """`exact`, `bytes`, or `none` when no counter can be trusted."""
    overhead: int = 0
    """Tokens that the byte bound adds for the template."""
    withheld: dict[str, str] = field(default_factory=dict)
    """Names left out, each with the reason."""

    def pop_body(self, config: WorkerConfig) -> Json:
        """The body of a pop, without its pop_key."""
        limits = {"max_context_length": self.context, "max_length": self.max_length}
        return {
            "name": config.worker_name,
            "models": [self.model_id],
            "model_id": self.model_id,
            "chat_jobs": True,
            "prompt_jobs": False,
            "chat_features": sorted(self.features),
            "chat_limits": limits,
            "image_transports": [],
            **limits,
            "threads": config.threads,
            "bridge_agent": BRIDGE_AGENT,
            "wait": config.pop_wait_seconds,
        }


def decide(config: WorkerConfig, findings: Findings) -> Declaration:
    """Returns the declaration that holds for this backend.

    Raises UnusableBackend when the context is unknown or too small for the replies.
    """
    context = _context(config, findings)
    withheld: dict[str, str] = {}
    features = set(config.chat_features) | _shown(findings, config, withheld)
    counter = _counter(findings)
    if counter == "none":
        withheld[OVERFLOW] = "the backend reports no usage.prompt_tokens, so no counter can be checked"
    else:
        features.add(OVERFLOW)
        reason = _why_tools_are_not_counted(counter, config, findings)
        if reason and features & TOOL_NAMES:
            withheld.update(dict.fromkeys(features & TOOL_NAMES, reason))
            features -= TOOL_NAMES
    return Declaration(
        model_id=config.model_id,
        context=context,
        max_length=config.max_length,
        features=frozenset(features),
        counter=counter,
        overhead=(findings.used_tokens or 0) + (config.template_overhead or 0),
        withheld=withheld,
    )


def _context(config: WorkerConfig, findings: Findings) -> int:
    known = [size for size in (config.max_context_length, findings.measured_context) if size is not None]
    if not known:
        raise UnusableBackend("MAX_CONTEXT_LENGTH: is not set, and the backend does not tell its context length")
    context = min(known)
    if config.max_length >= context:
        raise UnusableBackend(f"MAX_LENGTH: {config.max_length} must be below the context of {context} tokens")
    return context


def _counter(findings: Findings) -> str:
    """The counter to trust: the exact one unless it is short of what generation used."""
    if findings.used_tokens is None:
        return "none"
    return "exact" if covers(findings.counted_tokens, findings.used_tokens) else "bytes"


def _shown(findings: Findings, config: WorkerConfig, withheld: dict[str, str]) -> set[str]:
    """Names that the probe backs. A good reply shows a feature; a guarantee takes a grammar behind it."""
    shown = set(findings.shown)
    if findings.llama_cpp:
        return shown | {guarantee for feature, guarantee in GRAMMAR_GUARANTEES.items() if feature in shown}
    unproven = {"tool_choice_enforced", "tool_choice_auto_faithful"} & shown
    unproven |= {guarantee for feature, guarantee in GRAMMAR_GUARANTEES.items() if feature in shown}
    reason = "one good reply does not prove it for this kind of backend; vouch for it in CHAT_FEATURES"
    withheld.update(dict.fromkeys(unproven - config.chat_features, reason))
    return shown - unproven


def _why_tools_are_not_counted(counter: str, config: WorkerConfig, findings: Findings) -> str | None:
    if counter == "exact" and not findings.counts_tools:
        return "the counter is short on a conversation with tools"
    if counter == "bytes" and config.template_overhead is None:
        return "the byte bound does not know the tool preamble; set TEMPLATE_OVERHEAD"
    return None
