"""Which workers a request may be given to, beyond what they declare."""

from typing import Any

import pytest

from app.domain.capabilities import Declaration, Requirements
from app.domain.lifetimes import LONGEST_FACTOR, SHORTEST_FACTOR, ttl_factor
from app.domain.refused_words import found_words, normal
from app.domain.selection import Candidate, availability, eligible, obstacle, throughput


def candidate(
    name: str = "w", *, speeds: dict[str, float] | None = None, trusted: bool = False, **more: Any
) -> Candidate:
    declared: dict[str, Any] = {"chat_jobs": True, "model_id": "m-8b", "chat_limits": {}, "max_context_length": 4096}
    return Candidate(
        id=name, declaration=Declaration(name=name, **declared | more), trusted=trusted, speeds=speeds or {}
    )


def wanted(**more: Any) -> Requirements:
    asked: dict[str, Any] = {"is_chat": True, "models": ("m-8b",), "max_length": 64, "max_context_length": 512}
    return Requirements(**asked | more)


@pytest.mark.parametrize(
    ("worker", "asked", "reason"),
    [
        (candidate(), wanted(), None),
        (candidate(), wanted(models=("other",)), "models"),
        (candidate(), wanted(workers=("w",)), None),
        (candidate(), wanted(workers=("v",)), "worker_id"),
        (candidate(), wanted(workers=("w",), worker_blacklist=True), "worker_id"),
        (candidate(), wanted(workers=("v",), worker_blacklist=True), None),
        (candidate(), wanted(trusted_workers=True), "untrusted"),
        (candidate(trusted=True), wanted(trusted_workers=True), None),
        (candidate(), wanted(validated_workers=True), "bridge_version"),
        (candidate(bridge_agent="TabbyAPI:1"), wanted(validated_workers=True), "bridge_version"),
        (candidate(bridge_agent="TabbyAPI:1:https://x"), wanted(validated_workers=True), None),
        (candidate(nsfw=False), wanted(nsfw=True), "nsfw"),
        (candidate(blacklist=("bad",)), wanted(refused_words=("bad",)), "blacklist"),
        (candidate(blacklist=("worse",)), wanted(refused_words=("bad",)), None),
        (candidate(), wanted(softprompt="s"), "matching_softprompt"),
        (candidate(), wanted(features=("tools",)), "tools"),
        (candidate(max_length=16), wanted(), "max_length"),
        (candidate(max_context_length=100), wanted(), "max_context_length"),
    ],
)
def test_a_worker_is_passed_over_for_the_first_reason_there_is(
    worker: Candidate, asked: Requirements, reason: str | None
) -> None:
    assert obstacle(worker, asked) == reason


@pytest.mark.parametrize(
    ("model", "speed", "slow"),
    [
        ("m-8b", 5, False),
        ("m-8b", 4.9, True),
        ("m-13b", 4, False),
        ("m-13b", 3.9, True),
        ("m-70b", 3, False),
        ("m-70b", 2.9, True),
        ("m-70b", None, True),
    ],
)
def test_how_slow_is_too_slow_follows_the_models_size(model: str, speed: float | None, slow: bool) -> None:
    worker = candidate(model_id=model, speeds={} if speed is None else {model: speed})
    assert (obstacle(worker, wanted(models=(model,), slow_workers=False)) == "performance") is slow
    assert obstacle(worker, wanted(models=(model,))) is None


def test_a_selection_that_leaves_nobody_is_no_gap() -> None:
    found, able = availability([candidate()], wanted(trusted_workers=True))
    assert (found.online, found.declaration_gap, found.limits_gap, found.eligible_workers) == (True, None, None, 0)
    assert able == ()


def test_threads_of_the_selected_alone_are_counted() -> None:
    found, able = availability(
        [candidate("a", threads=3, trusted=True), candidate("b", threads=5)], wanted(trusted_workers=True)
    )
    assert (found.eligible_workers, found.eligible_threads, [each.id for each in able]) == (1, 3, ["a"])


def test_an_unmeasured_worker_counts_as_the_mean_of_the_measured() -> None:
    workers = [candidate("a", threads=2, speeds={"m-8b": 10}), candidate("b"), candidate("c", speeds={"m-8b": 20})]
    assert throughput(eligible(workers, wanted()), wanted()) == 2 * 10 + 15 + 20
    assert throughput([candidate(threads=2)], wanted()) == 8


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Tell me of BANANAS!", ("bananas",)),
        ("a bananasplit", ()),
        ("two\n  Words.", ("two words",)),
        ("words two", ()),
        ("", ()),
    ],
)
def test_refused_words_are_found_as_whole_words(text: str, words: tuple[str, ...]) -> None:
    assert found_words(text, {"bananas", "two words"}) == words


def test_an_entry_is_compared_in_its_plain_form() -> None:
    assert normal("  Two,  WORDS! ") == "two words"
    assert normal("!?") == ""


@pytest.mark.parametrize(
    ("speed", "factor"),
    [(None, 1.0), (8.0, 1.0), (16.0, 0.5), (4.0, 2.0), (0.0, LONGEST_FACTOR), (1e9, SHORTEST_FACTOR)],
)
def test_a_jobs_time_follows_the_workers_speed_within_bounds(speed: float | None, factor: float) -> None:
    assert ttl_factor(speed) == factor
