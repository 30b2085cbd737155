"""What this worker declares on every pop (contract C4), decided from configuration and probe alone."""

from dataclasses import dataclass, field

from . import BRIDGE_AGENT
from .chat import Json
from .config import WorkerConfig
from .probe import TRIM_SLACK, Findings, covers
from .values import CAPABILITIES, GUARANTEES

OVERFLOW = "prompt_overflow_refused"
TOOL_NAMES = frozenset({"tools", "tool_choice_enforced", "tool_choice_auto_faithful", "single_tool_call_enforced"})
FEATURE_OF = {
    "json_object_enforced": "json_object",
    "json_schema_enforced": "json_schema",
    "tool_choice_enforced": "tool_choice_enforced",
    "tool_choice_auto_faithful": "tool_choice_auto_faithful",
}
"""What has to show before a kind of backend that enforces a guarantee is believed."""


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
    because: dict[str, str] = field(default_factory=dict)
    """Why each name is declared."""
    withheld: dict[str, str] = field(default_factory=dict)
    """Names left out, each with the reason."""

    def pop_body(self, config: WorkerConfig) -> Json:
        """The body of a pop, without its pop_key."""
        limits = {"max_context_length": self.context, "max_length": self.max_length}
        others = ("max_images", "max_tools", "tools_max_temperature")
        chosen = {name: getattr(config, name) for name in others if getattr(config, name) is not None}
        return {
            "name": config.worker_name,
            "models": [self.model_id],
            "model_id": self.model_id,
            "chat_jobs": True,
            "prompt_jobs": False,
            "chat_features": sorted(self.features),
            "chat_limits": {**limits, **chosen},
            "image_transports": [
                each for each in config.image_transports if each == "messages_url" or "images" in self.features
            ],
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
    counter, because, withheld = _counter(findings, context)
    for name in sorted(CAPABILITIES | GUARANTEES - {OVERFLOW}):
        shown, reason = _backing(name, config, findings)
        obstacle = _uncounted(name, counter, config, findings)
        if not shown or (OVERFLOW in because and obstacle):
            withheld[name] = reason if not shown else str(obstacle)
        else:
            because[name] = reason
    for name in config.no_declare & set(because):
        withheld[name] = f"by NO_DECLARE, although: {because.pop(name)}"
    return Declaration(
        model_id=config.model_id,
        context=context,
        max_length=config.max_length,
        features=frozenset(because),
        counter=counter,
        overhead=(findings.used_tokens or 0) + (config.template_overhead or 0),
        because=because,
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


def _counter(findings: Findings, context: int) -> tuple[str, dict[str, str], dict[str, str]]:
    """The counter to trust, with the reason for or against the promise that rests on it.

    The exact one is trusted unless it is short of what generation used.
    """
    used, counted, kept = findings.used_tokens, findings.counted_tokens, findings.trimmed_to
    if kept is not None and kept < TRIM_SLACK * context:
        reason = f"of a prompt longer than {context} tokens the backend kept {kept} in silence; set MAX_CONTEXT_LENGTH"
        return "none", {}, {OVERFLOW: reason}
    if used is None:
        return "none", {}, {OVERFLOW: "the backend reports no usage.prompt_tokens, so no counter can be checked"}
    if covers(counted, used):
        return "exact", {OVERFLOW: f"its counter says {counted} tokens where generation used {used}"}, {}
    why = "it has no counter" if counted is None else f"its counter is short ({counted} of {used} tokens)"
    return "bytes", {OVERFLOW: f"{why}, so prompts are bounded by their bytes and {used} tokens of template"}, {}


def _backing(name: str, config: WorkerConfig, findings: Findings) -> tuple[bool, str]:
    """Whether a name has the operator's word or the probe's evidence, and the reason either way."""
    if name in config.declare:
        return True, "by DECLARE: you vouch for it"
    evidence = findings.evidence.get(FEATURE_OF.get(name, name))
    if evidence is None:
        return False, "the probe cannot show it; vouch for it in DECLARE"
    if evidence.shown and name in GUARANTEES and name not in findings.enforces:
        return False, "one good reply does not prove it for this kind of backend; vouch for it in DECLARE"
    enforced = f"{findings.kind} enforces it, and " if name in GUARANTEES and evidence.shown else ""
    return evidence.shown, enforced + evidence.words


def _uncounted(name: str, counter: str, config: WorkerConfig, findings: Findings) -> str | None:
    """What the prompt-fit check cannot see of this input: both cannot be promised together."""
    if name == "images" and config.image_tokens is None:
        return "no counter sees an image; set IMAGE_TOKENS to the most tokens that one can take"
    if name not in TOOL_NAMES:
        return None
    if counter == "exact" and not findings.counts_tools:
        return "the counter is short on a conversation with tools"
    if counter == "bytes" and config.template_overhead is None:
        return "the byte bound does not know the tool preamble; set TEMPLATE_OVERHEAD"
    return None
