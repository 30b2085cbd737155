"""How many billions of parameters a model has, by a bundled table or by its name (native API N5)."""

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

import orjson

UNKNOWN_BILLIONS = 1.0
"""Size of a model that neither the table nor its name tells (wire reference 4.1)."""

MAX_BILLIONS = 2000.0
"""Largest size that a name is believed: a worker chooses its model's name, and the size prices it."""

_PREFIX = re.compile(r"^(?:koboldcpp|aphrodite|tabbyapi|llamacpp|vllm|ollama)/")
_QUANTISATION = re.compile(
    r"[-_.](?:i?q\d[a-z0-9_]*|f16|f32|bf16|fp16|fp8|int[48]|[48]bit|\d(?:\.\d+)?bpw|gguf|ggml|gptq|awq|exl[23])$"
)
_MIXTURE = re.compile(r"(?<![a-z0-9.])(\d{1,3})x(\d{1,4}(?:\.\d{1,3})?)b(?![a-z0-9])")
_BILLIONS = re.compile(r"(?<![a-z0-9.])(\d{1,4}(?:\.\d{1,3})?)b(?![a-z0-9])")
_MILLIONS = re.compile(r"(?<![a-z0-9.])(\d{1,4}(?:\.\d{1,3})?)m(?![a-z0-9])")


def billions(model: str, overrides: Mapping[str, float] | None = None) -> float:
    """Size of a model in billions of parameters.

    An operator's override of the exact name wins, then the table, then a size in the name
    (`8B`, `8x7B`, `270m`); a name that tells nothing counts as 1.
    """
    if overrides and model in overrides:
        return overrides[model]
    known = known_billions(model)
    return UNKNOWN_BILLIONS if known is None else known


def known_billions(model: str) -> float | None:
    """Size of a model by the table or its name; None when neither tells it."""
    name = _base_name(model)
    known = _table().get(name)
    return known if known is not None else _size_in_name(name)


def is_in_table(model: str) -> bool:
    """Whether the bundled table knows the model."""
    return _base_name(model) in _table()


def _base_name(model: str) -> str:
    """The name in small letters without backend, organisation, owner and quantisation."""
    name = model.lower().partition("::")[0]
    name = _PREFIX.sub("", name).rpartition("/")[2]
    while (shorter := _QUANTISATION.sub("", name)) != name:
        name = shorter
    return name


def _size_in_name(name: str) -> float | None:
    mixture = _MIXTURE.search(name)
    if mixture:
        return _believed(float(mixture[1]) * float(mixture[2]))
    size = _BILLIONS.search(name)
    if size:
        return _believed(float(size[1]))
    size = _MILLIONS.search(name)
    return _believed(float(size[1]) / 1000) if size else None


def _believed(size: float) -> float | None:
    return size if 0 < size <= MAX_BILLIONS else None


@lru_cache(maxsize=1)
def _table() -> dict[str, float]:
    data = orjson.loads(files("app.domain").joinpath("model_sizes.json").read_bytes())
    return {str(name): float(size) for name, size in data.items()}
