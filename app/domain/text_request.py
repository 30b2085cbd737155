"""A text request as existing clients send it, and the job that existing bridges get (wire reference 2.1 and 2.4)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from app.domain.errors import (
    ExcessiveStopSequence,
    MissingFullSamplerOrder,
    MissingPrompt,
    TokenOverflow,
    TooManyStopSequences,
    ValidationFailed,
)
from app.domain.flattening import estimate_tokens
from app.domain.json_boundary import clean_value
from app.domain.requirements import Requirements

MAX_WORKERS = 5
"""Workers of a request that count; further ones are ignored."""

MAX_STOP_SEQUENCES = 128
MAX_STOP_CHARACTERS = 2000
FULL_SAMPLER_ORDER = 7

ONE_BY_ONE = "one_by_one"
"""Member of a stored contract whose generations go out one a pop (`disable_batching`, wire reference 4.9)."""


@dataclass(frozen=True, slots=True)
class Check:
    """What a key takes: `problem` says what is wrong with a value, `schema` says the same to machines."""

    problem: Callable[[object], str | None]
    schema: Mapping[str, Any]

    def __call__(self, value: object) -> str | None:
        """What is wrong with a value; None when it can be used."""
        return self.problem(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRequest:
    """What a requester wants: `n` continuations of a prompt. `params` holds the samplers for the worker."""

    prompt: str
    n: int = 1
    max_length: int = 80
    max_context_length: int = 2048
    params: Mapping[str, Any] = field(default_factory=dict)
    models: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()
    worker_blacklist: bool = False
    trusted_workers: bool = False
    validated_backends: bool = False
    slow_workers: bool = True
    softprompt: str | None = None
    allow_downgrade: bool = False
    dry_run: bool = False
    disable_batching: bool = False

    @property
    def context_tokens(self) -> int:
        """Tokens of the prompt by estimate."""
        return estimate_tokens(self.prompt)

    def requirements(self, refused_words: tuple[str, ...] = ()) -> Requirements:
        """What a worker must be able to do."""
        return Requirements(
            is_chat=False,
            models=self.models,
            max_length=self.max_length,
            max_context_length=self.max_context_length,
            workers=self.workers,
            worker_blacklist=self.worker_blacklist,
            trusted_workers=self.trusted_workers,
            validated_workers=self.validated_backends,
            slow_workers=self.slow_workers,
            softprompt=self.softprompt,
            refused_words=refused_words,
        )


def _number(low: float, high: float) -> Check:
    def problem(value: object) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"{value!r:.40} is not of type 'number'"
        return None if low <= value <= high else f"{value} is not between {low} and {high}"

    return Check(problem, {"type": "number", "minimum": low, "maximum": high})


def _whole(low: int, high: int) -> Check:
    within = _number(low, high)

    def problem(value: object) -> str | None:
        if isinstance(value, float) and not value.is_integer():
            return f"{value} is not of type 'integer'"
        return within(value)

    return Check(problem, {"type": "integer", "minimum": low, "maximum": high})


def _is_flag(value: object) -> str | None:
    return None if isinstance(value, bool) else f"{value!r:.40} is not of type 'boolean'"


def _are_strings(value: object) -> str | None:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return None
    return f"{value!r:.40} is not a list of strings"


def _are_integers(value: object) -> str | None:
    if isinstance(value, list) and all(isinstance(item, int) and not isinstance(item, bool) for item in value):
        return None
    return f"{value!r:.40} is not a list of integers"


def _is_string(value: object) -> str | None:
    return None if isinstance(value, str) else f"{value!r:.40} is not of type 'string'"


def _is_filled(value: object) -> str | None:
    return _is_string(value) or (None if value else "'' is too short")


_FLAG = Check(_is_flag, {"type": "boolean"})
_STRING = Check(_is_string, {"type": "string"})
_FILLED = Check(_is_filled, {"type": "string", "minLength": 1})
_STRINGS = Check(_are_strings, {"type": "array", "items": {"type": "string"}})
_INTEGERS = Check(_are_integers, {"type": "array", "items": {"type": "integer"}})

SAMPLERS: Mapping[str, Check] = {
    "temperature": _number(0, 5),
    "top_p": _number(0.001, 1),
    "top_k": _whole(0, 200),
    "top_a": _number(0, 1),
    "tfs": _number(0, 1),
    "typical": _number(0, 1),
    "min_p": _number(0, 1),
    "rep_pen": _number(1, 3),
    "rep_pen_range": _whole(0, 4096),
    "rep_pen_slope": _number(0, 10),
    "smoothing_factor": _number(0, 10),
    "dynatemp_range": _number(0, 5),
    "dynatemp_exponent": _number(0, 5),
    "sampler_order": _INTEGERS,
    "stop_sequence": _STRINGS,
    "frmtadsnsp": _FLAG,
    "frmtrmblln": _FLAG,
    "frmtrmspch": _FLAG,
    "frmttriminc": _FLAG,
    "singleline": _FLAG,
    "use_default_badwordsids": _FLAG,
}
"""What of `params` reaches the worker; the rest is accepted and goes no further."""

SAMPLER_DEFAULTS: Mapping[str, float] = {
    "min_p": 0.0,
    "smoothing_factor": 0.0,
    "dynatemp_range": 0.0,
    "dynatemp_exponent": 1.0,
}
"""Samplers that every job carries."""

EMPTY_PAYLOAD: Mapping[str, Any] = {"max_context_length": 2048, "max_length": 80, **SAMPLER_DEFAULTS}
"""The payload of a pop without a job, which existing bridges index unguarded."""

SIZES: Mapping[str, Check] = {
    "n": _whole(1, 20),
    "max_length": _whole(16, 4096),
    "max_context_length": _whole(80, 1_048_576),
}
"""Members of `params` that say how much is asked for."""

TOP_LEVEL: Mapping[str, Check] = {
    "prompt": _STRING,
    "models": _STRINGS,
    "workers": _STRINGS,
    "softprompt": _FILLED,
    "worker_blacklist": _FLAG,
    "trusted_workers": _FLAG,
    "validated_backends": _FLAG,
    "slow_workers": _FLAG,
    "dry_run": _FLAG,
    "disable_batching": _FLAG,
    "allow_downgrade": _FLAG,
}
"""Members of the body beside `params`."""


def parse_text_request(body: Mapping[str, object]) -> TextRequest:
    """The request in a body; keys that it does not use are accepted and ignored.

    Raises ValidationFailed with every key that cannot be used, MissingPrompt, TokenOverflow,
    TooManyStopSequences, ExcessiveStopSequence or MissingFullSamplerOrder.
    """
    params = body.get("params", {})
    problems = _problems(body, TOP_LEVEL, "")
    if "prompt" not in body:
        problems["prompt"] = "Missing required parameter in the JSON body"
    if isinstance(params, Mapping):
        problems |= _problems(params, {**SIZES, **SAMPLERS}, "params.")
    else:
        problems["params"] = f"{params!r:.40} is not of type 'object'"
    if problems or not isinstance(params, Mapping):
        raise ValidationFailed(problems)
    made = _made(body, params)
    _check_together(made)
    return made


def _problems(given: Mapping[str, object], checks: Mapping[str, Check], prefix: str) -> dict[str, str]:
    found = {prefix + name: check(given[name]) for name, check in checks.items() if name in given}
    return {name: problem for name, problem in found.items() if problem is not None}


def _made(body: Mapping[str, Any], params: Mapping[str, Any]) -> TextRequest:
    names = {known.name for known in fields(TextRequest)} & TOP_LEVEL.keys() & body.keys()
    sizes: dict[str, Any] = {name: int(params[name]) for name in SIZES if name in params}
    return TextRequest(
        prompt=clean_value(body["prompt"]),
        params={name: clean_value(params[name]) for name in SAMPLERS if name in params},
        models=tuple(dict.fromkeys(clean_value(body.get("models", [])))),
        workers=tuple(dict.fromkeys(clean_value(body.get("workers", []))))[:MAX_WORKERS],
        **{name: clean_value(body[name]) for name in names - {"prompt", "models", "workers"}},
        **sizes,
    )


def _check_together(made: TextRequest) -> None:
    if not made.prompt:
        raise MissingPrompt("The prompt is empty. Send the text to continue.")
    if made.max_length > made.max_context_length:
        raise TokenOverflow("max_length is above max_context_length. Lower it, or raise the context.")
    stops = made.params.get("stop_sequence", ())
    if len(stops) > MAX_STOP_SEQUENCES:
        raise TooManyStopSequences(f"A request may have at most {MAX_STOP_SEQUENCES} stop sequences.")
    if sum(map(len, stops)) > MAX_STOP_CHARACTERS:
        raise ExcessiveStopSequence(f"All stop sequences together may have {MAX_STOP_CHARACTERS} characters.")
    order = made.params.get("sampler_order")
    if order is not None and len(set(order)) < FULL_SAMPLER_ORDER:
        raise MissingFullSamplerOrder(f"sampler_order must name {FULL_SAMPLER_ORDER} samplers, each once.")


def stored_contract(request: TextRequest) -> dict[str, Any]:
    """What of the request is kept for its jobs, beside the prompt."""
    sizes = {"max_context_length": request.max_context_length, "max_length": request.max_length}
    contract: dict[str, Any] = {"params": {**SAMPLER_DEFAULTS, **request.params, **sizes}}
    if request.softprompt is not None:
        contract["softprompt"] = request.softprompt
    return contract | {ONE_BY_ONE: True} if request.disable_batching else contract


def text_payload(prompt: str, contract: Mapping[str, Any]) -> dict[str, Any]:
    """The payload of a text job; bridges read the soft prompt from inside it."""
    payload = {"prompt": prompt, "n": 1, **contract["params"]}
    return payload | {"softprompt": contract["softprompt"]} if "softprompt" in contract else payload
