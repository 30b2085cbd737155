"""The two counters and the fit check."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.chat_worker_example.chat import Json
from tools.chat_worker_example.counting import PromptFit, PromptOverflow, byte_bound


def call_of(*texts: str, **fields: object) -> Json:
    return {"messages": [{"role": "user", "content": text} for text in texts], "max_tokens": 10, **fields}


@given(st.lists(st.text(), min_size=1, max_size=5), st.integers(0, 1000))
def test_the_bound_is_never_below_one_token_a_byte_of_every_message(texts: list[str], overhead: int) -> None:
    text_bytes = sum(len(text.encode()) for text in texts)
    markup_bytes = len("<|im_start|>user\n<|im_end|>\n") * len(texts)
    assert byte_bound(call_of(*texts), overhead) >= text_bytes + markup_bytes + overhead


def test_text_outside_ascii_counts_by_its_bytes() -> None:
    assert byte_bound(call_of("日本"), 0) - byte_bound(call_of(""), 0) == len("日本".encode())


def test_a_lone_surrogate_is_counted_and_not_a_crash() -> None:
    assert byte_bound(call_of("\ud83c"), 0) - byte_bound(call_of(""), 0) == 3


@pytest.mark.parametrize("field", ["tools", "response_format"])
def test_tools_and_schemas_count_towards_the_bound(field: str) -> None:
    extra = {"padding": "x" * 100}
    assert byte_bound(call_of("hi", **{field: extra}), 0) >= byte_bound(call_of("hi"), 0) + 100


def test_sampling_does_not_count_towards_the_bound() -> None:
    assert byte_bound(call_of("hi", stop=["x" * 100], temperature=0.5), 0) == byte_bound(call_of("hi"), 0)


async def test_a_prompt_and_its_reply_may_fill_the_context_to_the_last_token() -> None:
    call = call_of("hi")
    room = byte_bound(call, 7) + 10
    assert await PromptFit(context=room, overhead=7).check(call) == room - 10
    with pytest.raises(PromptOverflow) as overflow:
        await PromptFit(context=room - 1, overhead=7).check(call)
    assert (overflow.value.prompt, overflow.value.reply, overflow.value.context) == (room - 10, 10, room - 1)


class Counter:
    """An exact counter with a fixed answer that knows how often it was asked."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        self.asked = 0

    async def __call__(self, call: Json) -> int:
        self.asked += 1
        return self.tokens


async def test_the_exact_counter_is_not_asked_where_the_bound_already_fits() -> None:
    counter = Counter(1)
    await PromptFit(context=1000, overhead=0, count_exactly=counter).check(call_of("hi"))
    assert counter.asked == 0


async def test_the_exact_counter_saves_a_conversation_that_the_bound_would_refuse() -> None:
    counter = Counter(60)
    fit = PromptFit(context=70, overhead=0, count_exactly=counter)
    assert await fit.check(call_of("word " * 20)) == 60
    counter.tokens = 61
    with pytest.raises(PromptOverflow):
        await fit.check(call_of("word " * 20))


@pytest.mark.parametrize("field", ["tools", "response_format"])
async def test_a_preamble_that_the_bound_cannot_see_goes_to_the_exact_counter(field: str) -> None:
    fit = PromptFit(context=1000, overhead=0, count_exactly=Counter(5000))
    with pytest.raises(PromptOverflow):
        await fit.check(call_of("hi", **{field: {"type": "x"}}))
