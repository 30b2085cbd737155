"""The sizes of a request: lowered to what is online, and shortened where the client allows it."""

from typing import Any

from app.domain.flattening import flatten
from app.domain.sizing import fitted_to, sized

LONG = [
    {"role": "system", "content": "s"},
    {"role": "user", "content": "a" * 3000},
    {"role": "assistant", "content": "b" * 3000},
    {"role": "user", "content": "now"},
]
SHORT = [LONG[0], LONG[3]]
FIT = {"context_fit": "truncate_oldest"}


def test_context_is_what_is_said_and_what_may_be_answered(chat: Any) -> None:
    asked = sized(chat(messages=LONG), 100)
    assert asked.requirements.max_context_length == asked.context_tokens + 100


def test_the_clients_own_context_wins(chat: Any) -> None:
    assert sized(chat(messages=LONG, horde={"max_context_length": 7}), 100).requirements.max_context_length == 7


def test_a_named_length_is_lowered_with_a_warning_and_a_default_without(chat: Any, declared: Any) -> None:
    worker = declared(max_length=50, max_context_length=9000)
    named = fitted_to([worker], sized(chat(max_tokens=100), 100))
    left_out = fitted_to([worker], sized(chat(), 100))
    assert named.requirements.max_length == left_out.requirements.max_length == 50
    assert "from 100 to 50" in named.warnings[0]
    assert left_out.warnings == ()


def test_a_conversation_that_is_too_long_stays_whole_unless_the_client_allows_less(chat: Any, declared: Any) -> None:
    fitting = fitted_to([declared(max_length=100, max_context_length=1000)], sized(chat(messages=LONG), 100))
    assert fitting.chat.messages == LONG
    assert fitting.requirements.max_context_length > 1000


def test_the_oldest_turns_fall_with_a_warning_where_the_client_allows_it(chat: Any, declared: Any) -> None:
    worker = declared(max_length=100, max_context_length=1000)
    fitting = fitted_to([worker], sized(chat(messages=LONG, horde=FIT), 100))
    assert fitting.chat.messages == SHORT
    assert fitting.prompt == flatten(SHORT)
    assert fitting.requirements.max_context_length <= 1000
    assert "oldest 2 messages" in fitting.warnings[0]


def test_nothing_falls_for_a_worker_that_takes_it_whole_or_when_nobody_serves(chat: Any, declared: Any) -> None:
    asked = sized(chat(messages=LONG, horde=FIT), 100)
    workers = [declared(max_context_length=1000), declared(max_context_length=9000)]
    assert fitted_to(workers, asked).chat.messages == LONG
    assert fitted_to([], asked).chat.messages == LONG


def test_a_context_that_the_client_gave_is_trusted_while_it_fits_and_dropped_with_the_turns(
    chat: Any, declared: Any
) -> None:
    worker = declared(max_length=100, max_context_length=1000)
    fits = fitted_to([worker], sized(chat(messages=LONG, horde=FIT | {"max_context_length": 900}), 100))
    assert (fits.chat.messages, fits.requirements.max_context_length) == (LONG, 900)
    exceeds = fitted_to([worker], sized(chat(messages=LONG, horde=FIT | {"max_context_length": 5000}), 100))
    assert exceeds.chat.messages == SHORT
    assert exceeds.requirements.max_context_length < 1000


def test_what_is_still_too_long_shows_as_a_limit(chat: Any, declared: Any) -> None:
    worker = declared(max_length=100, max_context_length=1000)
    last = [*LONG[:3], {"role": "user", "content": "c" * 6000}]
    fitting = fitted_to([worker], sized(chat(messages=last, horde=FIT), 100))
    assert fitting.chat.messages == [LONG[0], last[3]]
    assert fitting.requirements.max_context_length > 1000
