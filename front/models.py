"""The models that are online, as OpenAI's list (front F3; contract reference 6.1)."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import orjson
from quart import Blueprint, Response

from front import errors
from front.errors import FrontError, Problem
from front.native import NativeApi, Unreachable
from front.responses import json_response
from front.wire import encode

FRESH_SECONDS = 1.0
STALE_SECONDS = 30.0
"""How old a list may be shown while no root answers."""

OWNER = "horde"


@dataclass(frozen=True, slots=True)
class _Listing:
    models: dict[str, dict[str, Any]]
    read_at: float


class ModelCatalog:
    """The list, read at most once a second whoever asks."""

    def __init__(self, native: NativeApi, clock: Callable[[], float] = time.monotonic) -> None:
        self._native = native
        self._clock = clock
        self._listing: _Listing | None = None
        self._refresh: asyncio.Task[_Listing] | None = None
        self._first_seen: dict[str, int] = {}

    async def models(self) -> dict[str, dict[str, Any]]:
        """Every online model by its name, as OpenAI shows one.

        Raises FrontError (502) when no root answers and the last list is old.
        """
        known = self._listing
        if known is not None and self._clock() < known.read_at + FRESH_SECONDS:
            return known.models
        if self._refresh is None or self._refresh.done():
            self._refresh = asyncio.get_running_loop().create_task(self._read())
        try:
            # Shielded: who asked first may leave, the others still wait for it.
            return (await asyncio.shield(self._refresh)).models
        except Unreachable:
            if known is not None and self._clock() < known.read_at + STALE_SECONDS:
                return known.models
            raise FrontError(errors.unreachable()) from None

    async def explain(self, problem: Problem, asked: tuple[str, ...]) -> Problem:
        """The refusal of a model, with close names and what is online (details D21)."""
        try:
            names = sorted(await self.models())
        except FrontError:
            return problem
        return errors.with_online_models(problem, _hint(asked, names), names)

    async def _read(self) -> _Listing:
        answer = await self._native.models()
        entries = _entries(answer.body) if answer.status == 200 else None
        if entries is None:
            raise Unreachable(sent=True)
        self._listing = _Listing({entry["name"]: self._shown(entry) for entry in entries}, self._clock())
        return self._listing

    def _shown(self, entry: dict[str, Any]) -> dict[str, Any]:
        name = entry["name"]
        return {
            "id": name,
            "object": "model",
            "created": self._first_seen.setdefault(name, int(time.time())),
            "owned_by": OWNER,
            "x_horde": {key: value for key, value in entry.items() if key != "name"},
        }


def models_blueprint(catalog: ModelCatalog) -> Blueprint:
    """`GET /v1/models` and `GET /v1/models/{id}`; an id may hold slashes."""
    blueprint = Blueprint("models", __name__)

    @blueprint.get("/v1/models")
    async def list_models() -> Response:
        models = await catalog.models()
        return json_response(encode({"object": "list", "data": [models[name] for name in sorted(models)]}))

    @blueprint.get("/v1/models/<path:name>")
    async def show_model(name: str) -> Response:
        models = await catalog.models()
        if name not in models:
            names = sorted(models)
            raise FrontError(errors.unknown_model(name, _hint((name,), names), names))
        return json_response(encode(models[name]))

    return blueprint


def _hint(asked: tuple[str, ...], names: list[str]) -> str:
    close = [match for name in asked for match in get_close_matches(name, names, n=3, cutoff=0.6) if match != name]
    return f" Did you mean {' or '.join(dict.fromkeys(close))}?" if close else ""


def _entries(body: bytes) -> list[dict[str, Any]] | None:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, list):
        return None
    return [entry for entry in value if isinstance(entry, dict) and isinstance(entry.get("name"), str)]
