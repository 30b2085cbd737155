"""Billions of parameters by table, by name and by override."""

import pytest

from app.domain.model_sizes import MAX_BILLIONS, billions


@pytest.mark.parametrize(
    ("model", "size"),
    [
        ("koboldcpp/Demo-8B", 8.0),
        ("meta-llama/Llama-3.1-70B-Instruct", 70.0),
        ("aphrodite/org/Model-24b-v2", 24.0),
        ("Llama-3.1-8B::owner#12", 8.0),
        ("koboldcpp/TinyLlama-1.1B-Chat.Q4_K_M", 1.1),
        ("Qwen2.5-0.5B-Instruct-Q8_0.gguf", 0.5),
        ("gemma-3-270m-it-Q4_K_M", 0.27),
        ("Qwen2.5-14B-Instruct-1M", 14.0),
        ("Qwen3-30B-A3B-Instruct-2507", 30.0),
        ("some-4x7B-merge", 28.0),
        ("psyfighter-2x13b.Q5_K_S", 26.0),
        ("llama-3-8b-4bit", 8.0),
        ("model-13B-GPTQ", 13.0),
        ("model-13B-4.0bpw-exl2", 13.0),
    ],
)
def test_the_size_is_read_from_the_name(model: str, size: float) -> None:
    assert billions(model) == pytest.approx(size)


@pytest.mark.parametrize(
    ("model", "size"),
    [
        ("koboldcpp/Mixtral-8x7B-Instruct-v0.1.Q4_K_M", 46.7),
        ("mistralai/Mixtral-8x22B-Instruct-v0.1", 141.0),
        ("deepseek-ai/DeepSeek-R1", 671.0),
        ("phi-4-Q6_K", 14.7),
    ],
)
def test_a_name_that_tells_too_little_or_wrongly_is_in_the_table(model: str, size: float) -> None:
    assert billions(model) == size


@pytest.mark.parametrize(
    "model",
    ["", "mystery", "model-4bit", "phone-5bank", "A3B", "v0.1-q4_k_m", "m-99999B", "m-0B", "m-999x999b", "bert-base"],
)
def test_a_name_that_tells_nothing_believable_counts_as_one(model: str) -> None:
    assert billions(model) == 1.0


def test_the_operators_override_of_the_exact_name_wins() -> None:
    overrides = {"koboldcpp/Demo-8B": 3.5}
    assert billions("koboldcpp/Demo-8B", overrides) == 3.5
    assert billions("Demo-8B", overrides) == 8.0


def test_no_name_is_believed_to_be_larger_than_the_bound() -> None:
    assert max(billions(f"m-{size}b") for size in range(0, 10_000, 50)) == MAX_BILLIONS
