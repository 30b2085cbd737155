"""The bars of the horde's speed and memory, in one place: what is measured, by which bench, and what it may be."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar. A figure meets it from below (`at_most`) or from above; its ratio is to `baseline`.

    `peer` is a program that its bench needs beside the project's own. Where that is not installed
    the bar is not measured, and nothing is held against the horde.
    """

    name: str
    bench: str
    what: str
    limit: float
    unit: str
    baseline: str = ""
    at_most: bool = True
    peer: str = ""

    def is_met(self, value: float) -> bool:
        """Whether a figure meets it."""
        return value <= self.limit if self.at_most else value >= self.limit

    @property
    def shown(self) -> str:
        """The bar for people."""
        return f"{'≤' if self.at_most else '≥'} {self.limit:g} {self.unit}".rstrip()


def _least(name: str, bench: str, what: str, limit: float, unit: str, baseline: str = "") -> Bar:
    return Bar(name, bench, what, limit, unit, baseline, at_most=False)


HELLO = "bare hello of the same server"
ORIGINAL = "the original horde"

BARS = (
    Bar("added_p50", "roundtrip", "whole horde, 1 client, instant backend: p50", 20, "ms", HELLO),
    Bar("added_p95", "roundtrip", "whole horde, 1 client, instant backend: p95", 40, "ms", HELLO),
    _least("completions", "roundtrip", "completions, 32 clients, events off", 95, "/s", HELLO),
    _least("completions_watched", "roundtrip --flower", "completions, 32 clients, Flower watching", 80, "/s", HELLO),
    Bar("statements", "roundtrip", "SQL statements a completion", 16, ""),
    Bar("messages", "roundtrip", "Celery messages a completion", 2, ""),
    Bar("submit_p50", "text_cycle", "submit a request: p50", 4.5, "ms", HELLO),
    _least("submit_rate", "text_cycle", "submits of one web process", 300, "/s", HELLO),
    Bar("empty_pop_p50", "text_cycle", "empty pop: p50", 3, "ms", HELLO),
    _least("empty_pop_rate", "text_cycle", "empty pops of one web process", 600, "/s", HELLO),
    Bar("status_p50", "text_cycle", "status while waiting: p50", 2, "ms", HELLO),
    _least("status_rate", "text_cycle", "status reads of one web process", 800, "/s", HELLO),
    Bar("status_statements", "text_cycle", "SQL statements of a status read", 1, ""),
    Bar("pop_p50", "pop_depth", "pop with a job, at every depth: p50", 5, "ms", "bare claim"),
    Bar("pop_growth", "pop_depth", "pop, deepest ÷ shallowest", 1.5, ""),
    Bar("pop_statements", "pop_depth", "SQL statements of a pop", 8, ""),
    Bar("verdict_p50", "verdict", "worker submit → verdict in the response: p50", 8, "ms", "Celery no-op round trip"),
    Bar("popped_p50", "held_pop", "queued → popped through a held pop: p50", 6, "ms", "Redis publish → receive"),
    Bar("popped_p95", "held_pop", "queued → popped through a held pop: p95", 15, "ms"),
    Bar("held_kilobytes", "held_pop", "a held pop in the front", 48, "kB"),
    Bar("idle_queue", "held_pop", "idle cost of 10 000 queued", 0.02, "of a core"),
    Bar("post_p50", "streams", "progress post → client, pacing off: p50", 5, "ms", "Redis XADD → XREAD"),
    Bar("post_p95", "streams", "progress post → client, pacing off: p95", 15, "ms"),
    Bar("stream_kilobytes", "streams", "an open stream in the front", 60, "kB"),
    _least("posts", "progress", "progress posts of one web process", 900, "/s", HELLO),
    Bar("wait_kilobytes", "waits", "an open wait in the front", 60, "kB", "bare Hypercorn stream"),
    Bar("wait_connections", "waits", "Redis connections of the front", 8, ""),
    Bar("wait_idle", "waits", "open waits, idle: front", 5, "% of a core"),
    Bar("wait_answered", "waits", "all open waits answered", 20, "s"),
    Bar("contract_4k", "contract", "contract check, 4 kB body with 3 tools", 1, "ms", "json.loads"),
    Bar("contract_1m", "contract", "contract check, 1 MB body", 30, "ms", "json.loads"),
    _least("image_png", "images", "images, 4 MP PNG", 0.8, "of Pillow alone"),
    _least("image_jpeg", "images", "images, 12 MP JPEG", 0.8, "of Pillow alone"),
    Bar("busy_account", "settlement", "settlement, one busy account ÷ many", 1.2, ""),
    _least("cycle_times", "text_cycle", "text: full cycle", 20, "× the original horde"),
    _least("async_times", "text_cycle", "text: async", 20, "× the original horde"),
    _least("pop_times", "text_cycle", "text: pop with a job, depth 10 000", 20, "× the original horde"),
    _least("status_times", "text_cycle", "text: status, depth 10 000, 1 and 8 connections", 20, "× the original horde"),
    _least("status_times_32", "text_cycle", "text: status, depth 10 000, 32 connections", 10, "× the original horde"),
    _least("submit_times", "text_cycle", "text: submit", 15, "× the original horde"),
    _least("empty_pop_times", "text_cycle", "text: empty pop", 15, "× the original horde"),
    Bar("growth", "growth", "1 million ended requests, 4 million entries ÷ empty", 1.2, ""),
    Bar("scale", "scale", "CPU a completion, 3 web, 2 front, 4 Celery ÷ one each", 1.25, ""),
    Bar("flooded", "flood", "other clients' p95 under a flood ÷ quiet", 1.2, ""),
    Bar("peer_added", "peers", "whole horde ÷ LiteLLM's proxy, 1 client: added p50", 1, "", peer="LiteLLM"),
)
"""Every bar. Where a bench tells several figures of one name, the worst counts."""

BENCHES = tuple(dict.fromkeys(bar.bench for bar in BARS))
"""The benches that the bars need, with their arguments, in the order in which they run."""
