"""The chat models that are online, with the most that any of their workers offers (native-api N1)."""

from typing import Any

from app.domain.capabilities import Declaration
from app.services.online import OnlineWorkers
from app.services.runtime import Runtime


class ListModels:
    """The use case of a model list."""

    def __init__(self, runtime: Runtime, online: OnlineWorkers) -> None:
        self._runtime = runtime
        self._online = online

    def __call__(self) -> list[dict[str, Any]]:
        """Return the online chat models by name. A limit is null where a worker declares none."""
        with self._runtime.database.statements() as transaction:
            pool = self._online.pool(transaction)
        by_model: dict[str, list[Declaration]] = {}
        for declaration in pool.declarations:
            if declaration.chat_jobs and declaration.model_id:
                by_model.setdefault(declaration.model_id, []).append(declaration)
        return [_model(name, serving) for name, serving in sorted(by_model.items())]


def _model(name: str, serving: list[Declaration]) -> dict[str, Any]:
    return {
        "name": name,
        "workers": len(serving),
        "threads": sum(declaration.threads for declaration in serving),
        "max_length": _largest(serving, "max_length"),
        "max_context_length": _largest(serving, "max_context_length"),
        "features": sorted(frozenset().union(*(declaration.features for declaration in serving))),
    }


def _largest(serving: list[Declaration], limit: str) -> int | None:
    values = [declaration.limit(limit) for declaration in serving]
    known = [value for value in values if value is not None]
    return int(max(known)) if len(known) == len(values) else None
