"""The figures of a process and its children, in the form that Prometheus scrapes."""

import os

from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest, multiprocess

MULTIPROCESS_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""prometheus_client's own: the folder through which the processes behind one port share their figures."""


def exposition() -> tuple[bytes, str]:
    """Return the figures and their content type."""
    registry: CollectorRegistry = REGISTRY
    if MULTIPROCESS_VARIABLE in os.environ:
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry), CONTENT_TYPE_LATEST
