"""Figures by model: each request counts once, and hostile names cannot make series without end."""

from operator import add

from app.domain.model_labels import ANY_MODEL, MOST_MODELS, OTHER_MODELS, counted_for, folded, named


def test_a_request_counts_for_the_first_of_its_models_that_is_served() -> None:
    assert counted_for(("a", "b", "c"), {"b", "c"}) == "b"


def test_a_request_whose_models_nobody_serves_counts_for_the_first() -> None:
    assert counted_for(("a", "b"), set()) == "a"


def test_a_request_without_a_model_counts_for_any() -> None:
    assert counted_for((), {"a"}) == ANY_MODEL


def test_the_models_of_the_greatest_weight_keep_their_names() -> None:
    assert named({"small": 1, "great": 3, "even": 2, "also": 2}, 3) == {"great", "also", "even"}


def test_models_beyond_the_most_are_joined_and_nothing_is_lost() -> None:
    values = {f"model-{number}": 1.0 for number in range(3 * MOST_MODELS)}
    shown = folded(values, named(values), add)
    assert len(shown) == MOST_MODELS + 1
    assert shown[OTHER_MODELS] == 2 * MOST_MODELS
    assert sum(shown.values()) == len(values)


def test_joined_ages_are_the_greatest() -> None:
    assert folded({"a": 5.0, "b": 9.0, "c": 7.0}, {"a"}, max) == {"a": 5.0, OTHER_MODELS: 9.0}
