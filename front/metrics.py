"""What a front process counts, for `/metrics` (operations O4)."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from config.metrics import method_label

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

LATENCY_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
"""Bounds of the latency histogram: from an instant backend to a request that waits for its deadline."""


class FrontMetrics:
    """Counters of one process, in a registry of their own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "horde_front_requests", "Chat requests by outcome.", ["outcome"], registry=self._registry
        )
        self._signals = Counter("horde_front_signals", "Signals received.", ["channel"], registry=self._registry)
        self._submit_retries = Counter(
            "horde_front_submit_retries", "Submits repeated because their answer was lost.", registry=self._registry
        )
        self._pops = Counter("horde_front_pops", "Answered pops.", ["result"], registry=self._registry)
        for result in ("job", "empty"):
            self._pops.labels(result)
        self._releases = Counter(
            "horde_front_releases", "Jobs given back because their worker had gone.", registry=self._registry
        )
        self._latency = Histogram(
            "horde_front_chat_seconds",
            "From the request's arrival to the end of its answer.",
            ["outcome"],
            buckets=LATENCY_SECONDS,
            registry=self._registry,
        )
        self._calls = Histogram(
            "horde_front_seconds",
            "From a call's arrival to the end of its answer.",
            ["route", "method", "status"],
            buckets=LATENCY_SECONDS,
            registry=self._registry,
        )
        self._progress_reads = Counter(
            "horde_front_progress_reads",
            "Reads of what workers post; one serves many streams.",
            registry=self._registry,
        )
        self._progress_entries = Counter(
            "horde_front_progress_entries", "Entries of progress streams that were read.", registry=self._registry
        )
        self._broken_streams = Counter(
            "horde_front_broken_streams", "Streams ended by an error event.", ["code"], registry=self._registry
        )
        self.streams = Gauge("horde_front_open_streams", "Streams that are open.", registry=self._registry)

    def gauge(self, name: str, help_text: str, value: Callable[[], float]) -> None:
        """Show a number that something else keeps."""
        Gauge(f"horde_front_{name}", help_text, registry=self._registry).set_function(value)

    def chat_ended(self, outcome: str, seconds: float) -> None:
        """A chat request ended."""
        self._requests.labels(outcome).inc()
        self._latency.labels(outcome).observe(seconds)

    def call_ended(self, route: str, method: str, status: int | None, seconds: float) -> None:
        """A call of any route ended; without a status when its client left before one."""
        shown = "none" if status is None else str(status)
        self._calls.labels(route, method_label(method), shown).observe(seconds)

    def signal(self, channel: str) -> None:
        """A signal arrived on a channel of this kind."""
        self._signals.labels(channel).inc()

    def submit_retried(self) -> None:
        """A submit went out once more."""
        self._submit_retries.inc()

    def pop_answered(self, *, with_job: bool) -> None:
        """A pop was answered."""
        self._pops.labels("job" if with_job else "empty").inc()

    def job_released(self) -> None:
        """A job went back because its worker had gone."""
        self._releases.inc()

    def progress_read(self, entries: int) -> None:
        """Progress streams were read."""
        self._progress_reads.inc()
        self._progress_entries.inc(entries)

    def stream_broke(self, code: str) -> None:
        """A stream ended by an error event."""
        self._broken_streams.labels(code).inc()

    def render(self) -> bytes:
        """The exposition text."""
        return generate_latest(self._registry)
