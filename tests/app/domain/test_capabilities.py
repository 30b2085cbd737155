"""Coverage of a request by a declaration, and the gaps over all online workers."""

from typing import Any

import pytest

from app.domain.capabilities import Availability, Coverage, Limit, LimitGap, covers, gaps, largest_limit

OVERFLOW = "prompt_overflow_refused"


def test_a_declaration_that_meets_everything_is_complete(declared: Any, required: Any) -> None:
    coverage = covers(declared(), required())
    assert coverage == Coverage(model=True)
    assert coverage.complete


@pytest.mark.parametrize(
    ("members", "changed", "coverage"),
    [
        ({"model_id": "other"}, {}, Coverage(model=False)),
        ({"chat_jobs": False}, {}, Coverage(model=False)),
        ({"chat_features": []}, {}, Coverage(model=True, missing=(OVERFLOW,))),
        (
            {"chat_features": ["tools"]},
            {"features": ("reasoning", "tools")},
            Coverage(model=True, missing=("reasoning",)),
        ),
        ({}, {"images": 1}, Coverage(model=True, missing=("image_transports",))),
        (
            {"image_transports": ["messages_url"]},
            {"images": 1},
            Coverage(model=True, missing=("image_transports",)),
        ),
        ({}, {"max_length": 513}, Coverage(model=True, limit=LimitGap("max_length", 513, 512))),
        (
            {"chat_limits": {"max_length": 100}},
            {"max_length": 101},
            Coverage(model=True, limit=LimitGap("max_length", 101, 100)),
        ),
        (
            {"max_context_length": 999},
            {},
            Coverage(model=True, limit=LimitGap("max_context_length", 1000, 999)),
        ),
        (
            {"chat_limits": {"max_images": 1}, "image_transports": ["url"]},
            {"images": 2},
            Coverage(model=True, limit=LimitGap("max_images", 2, 1)),
        ),
        (
            {"chat_limits": {"max_tools": 4}},
            {"tools": 5},
            Coverage(model=True, limit=LimitGap("max_tools", 5, 4)),
        ),
        (
            {"chat_limits": {"tools_max_temperature": 0.5}},
            {"tools": 1, "tools_temperature": 1.0},
            Coverage(model=True, limit=LimitGap("tools_max_temperature", 1.0, 0.5)),
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_coverage_tells_what_is_missing(
    declared: Any, required: Any, members: dict[str, Any], changed: dict[str, Any], coverage: Coverage
) -> None:
    found = covers(declared(**members), required(**changed))
    assert found == coverage
    assert not found.complete


@pytest.mark.parametrize(
    ("members", "changed"),
    [
        ({"chat_features": [OVERFLOW, "tools", "reasoning"]}, {"features": (OVERFLOW, "tools")}),
        ({"image_transports": ["base64"]}, {"images": 20}),
        ({"image_transports": ["url"], "chat_limits": {"max_images": 2}}, {"images": 2}),
        ({"chat_limits": {"tools_max_temperature": 0}}, {"tools": 0}),
        ({"chat_limits": {"max_length": 4096}}, {"max_length": 4096}),
        ({"model_id": "b"}, {"models": ("a", "b")}),
        ({}, {"workers": ("somebody-else",), "trusted_workers": True}),
    ],
    ids=lambda value: str(value)[:60],
)
def test_coverage_is_complete_up_to_the_limit_and_leaves_selection_alone(
    declared: Any, required: Any, members: dict[str, Any], changed: dict[str, Any]
) -> None:
    assert covers(declared(**members), required(**changed)).complete


@pytest.mark.parametrize(
    ("members", "models", "served"),
    [
        ({"models": ["t"]}, ("t",), True),
        ({"models": ["t", "u"]}, ("u", "v"), True),
        ({"models": ["t"]}, (), True),
        ({"models": ["t"]}, ("m",), False),
        ({"models": ["t"], "prompt_jobs": False}, ("t",), False),
        ({"models": ["t"], "max_length": 100}, ("t",), False),
    ],
)
def test_a_text_job_goes_by_the_text_side_of_the_declaration(
    declared: Any, required: Any, members: dict[str, Any], models: tuple[str, ...], served: bool
) -> None:
    text = required(is_chat=False, features=(), models=models)
    assert covers(declared(chat_limits={"max_length": 1}, **members), text).complete is served


def test_no_chat_worker_of_the_model_is_offline(declared: Any, required: Any) -> None:
    workers = [declared(model_id="other"), declared(chat_jobs=False)]
    assert gaps(workers, required()) == Availability(online=False)


def test_eligible_workers_and_all_their_threads_are_counted(declared: Any, required: Any) -> None:
    workers = [
        declared(threads=3),
        declared(threads=4, nsfw=False),
        declared(threads=5, max_length=100),
        declared(threads=6, chat_features=[]),
        declared(threads=7, model_id="other"),
    ]
    assert gaps(workers, required()) == Availability(online=True, eligible_workers=2, eligible_threads=7)


@pytest.mark.parametrize(
    ("features", "missing"),
    [
        ([[]], [{"name": OVERFLOW, "workers": 0}, {"name": "tools", "workers": 0}]),
        ([[OVERFLOW], [OVERFLOW]], [{"name": "tools", "workers": 0}]),
        ([[OVERFLOW], []], [{"name": "tools", "workers": 0}]),
        ([[OVERFLOW], ["tools"]], [{"name": OVERFLOW, "workers": 1}, {"name": "tools", "workers": 1}]),
        ([[OVERFLOW], [OVERFLOW], ["tools"]], [{"name": OVERFLOW, "workers": 2}, {"name": "tools", "workers": 1}]),
    ],
)
def test_a_declaration_gap_names_what_no_single_worker_has(
    declared: Any, required: Any, features: list[list[str]], missing: list[dict[str, Any]]
) -> None:
    workers = [declared(chat_features=names) for names in features]
    assert gaps(workers, required(features=(OVERFLOW, "tools"))) == Availability(
        online=True, declaration_gap={"missing": missing}
    )


def test_a_missing_image_transport_is_a_declaration_gap(declared: Any, required: Any) -> None:
    worker = declared(chat_features=[OVERFLOW, "images"])
    found = gaps([worker], required(images=1, features=("images", OVERFLOW)))
    assert found.declaration_gap == {"missing": [{"name": "image_transports", "workers": 0}]}


def test_a_declaration_gap_comes_before_a_limits_gap(declared: Any, required: Any) -> None:
    found = gaps([declared(chat_features=[])], required(max_length=9999))
    assert found.declaration_gap is not None
    assert found.limits_gap is None


@pytest.mark.parametrize(
    ("workers", "changed", "gap"),
    [
        (
            [{"max_length": 100}, {"max_length": 300}],
            {"max_length": 400},
            {"limit": "max_length", "asked": 400, "largest": 300},
        ),
        (
            [{"max_length": 9999, "max_context_length": 2000}, {"max_context_length": 3000}],
            {"max_context_length": 4000},
            {"limit": "max_context_length", "asked": 4000, "largest": 3000},
        ),
        (
            [{"chat_limits": {"tools_max_temperature": 0.7}}],
            {"tools": 1, "tools_temperature": 1.5},
            {"limit": "tools_max_temperature", "asked": 1.5, "largest": 0.7},
        ),
        (
            [
                {"chat_limits": {"max_length": 100, "max_tools": 1}},
                {"max_context_length": 900, "chat_limits": {"max_length": 9999}},
            ],
            {"tools": 2},
            {"limit": "max_context_length", "asked": 1000, "largest": 900},
        ),
        (
            [{"max_length": 600, "chat_features": []}, {"max_length": 100}],
            {"max_length": 500},
            {"limit": "max_length", "asked": 500, "largest": 100},
        ),
    ],
)
def test_a_limits_gap_names_the_limit_that_no_capable_worker_reaches(
    declared: Any, required: Any, workers: list[dict[str, Any]], changed: dict[str, Any], gap: dict[str, Any]
) -> None:
    found = gaps([declared(**members) for members in workers], required(**changed))
    assert found == Availability(online=True, limits_gap=gap)


@pytest.mark.parametrize(
    ("workers", "largest"),
    [
        ([], None),
        ([{"max_length": 100}, {"max_length": 300}], 300),
        ([{"max_length": 100, "chat_limits": {"max_length": 700}}], 700),
        ([{"max_length": 900, "chat_features": []}, {"max_length": 300}], 300),
        ([{"max_length": 900, "model_id": "other"}], None),
        ([{"max_length": 900, "max_context_length": 1}], 900),
    ],
)
def test_the_largest_reply_is_that_of_the_workers_with_the_features(
    declared: Any, required: Any, workers: list[dict[str, Any]], largest: int | None
) -> None:
    assert largest_limit([declared(**members) for members in workers], required(), Limit.MAX_LENGTH) == largest
