"""The figures of a process and its children, in the form that Prometheus scrapes."""

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    disable_created_metrics,
    generate_latest,
    multiprocess,
)
from prometheus_client.registry import Collector

from config.shared_figures import shares_figures

# A second series for each counter that says since when it counts: nobody asks for it, and stores pay for it.
disable_created_metrics()  # type: ignore[no-untyped-call]

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def method_label(method: str) -> str:
    """The method as a label: what a client makes up is one value and not as many as there are words."""
    return method if method in METHODS else "other"


def begin_at_zero(counter: Counter, *labels: str | tuple[str, ...]) -> None:
    """Show a counter at 0 for these labels: what first appears at 1 has not risen, for who computes rates."""
    for each in labels:
        counter.labels(*((each,) if isinstance(each, str) else each))


def exposition(*live: Collector) -> tuple[bytes, str]:
    """Return the figures and their content type; `live` are read now, by the process that is asked.

    What processes count is added up over all that share a folder. A live figure is of the whole
    horde, so it is read once, whichever process answers.
    """
    asked = CollectorRegistry()
    for collector in live:
        asked.register(collector)
    counted: CollectorRegistry = REGISTRY
    if shares_figures():
        counted = CollectorRegistry()
        multiprocess.MultiProcessCollector(counted)  # type: ignore[no-untyped-call]
    return generate_latest(counted) + generate_latest(asked), CONTENT_TYPE_LATEST
