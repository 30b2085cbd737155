"""The default no-ops that the front removes before the shared rules (details D2).

By key and value, and fixed: what changes an answer (tools, response_format, image
parts) is never in it. The native route refuses the same keys.
"""

from collections.abc import Mapping

NO_OPS: tuple[tuple[str, object], ...] = (
    ("n", 1),
    ("logprobs", False),
    ("store", False),
    ("service_tier", "auto"),
    ("service_tier", "default"),
    ("modalities", ["text"]),
    ("verbosity", "medium"),
    ("logit_bias", {}),
)
"""Each key with the value that means the same as leaving it out."""


def without_no_ops(body: Mapping[str, object]) -> dict[str, object]:
    """The body without the members that the front drops."""
    return {key: value for key, value in body.items() if not _is_no_op(key, value)}


def _is_no_op(key: str, value: object) -> bool:
    # The types are compared too: in Python `True == 1` and `0 == False`, in JSON they differ.
    return any(key == name and type(value) is type(default) and value == default for name, default in NO_OPS)
