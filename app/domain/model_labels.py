"""Which model a queued request counts for in figures, with few enough names for a store of series (operations O4)."""

from collections.abc import Callable, Collection, Mapping, Sequence

MOST_MODELS = 100
"""Models with a name of their own in figures. Workers name models as they like, so more must not become series."""

ANY_MODEL = "any"
"""Stands for the model of requests that name none."""

OTHER_MODELS = "other"
"""Stands for all models beyond the most."""


def counted_for(models: Sequence[str], served: Collection[str]) -> str:
    """The one model that a request counts for: the first of its models that somebody serves, else the first.

    One and not each, so that the models' figures add up to the queue.
    """
    if not models:
        return ANY_MODEL
    return next((model for model in models if model in served), models[0])


def named(weights: Mapping[str, float], most: int = MOST_MODELS) -> frozenset[str]:
    """The models that keep their names: those of the greatest weight, of equals the first by name."""
    return frozenset(sorted(weights, key=lambda model: (-weights[model], model))[:most])


def folded(
    values: Mapping[str, float], names: Collection[str], join: Callable[[float, float], float]
) -> dict[str, float]:
    """The values by name, those of unnamed models joined into one."""
    result: dict[str, float] = {}
    for model, value in values.items():
        label = model if model in names else OTHER_MODELS
        result[label] = join(result[label], value) if label in result else value
    return result
