"""In which order roots are asked."""

from front.roots import FIRST_REST_SECONDS, LONGEST_REST_SECONDS, Roots


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_roots_are_asked_in_turn() -> None:
    roots = Roots(("a", "b", "c"), Clock())
    assert [roots.in_turn()[0] for _ in range(6)] == ["b", "c", "a", "b", "c", "a"]


def test_a_root_that_gave_no_answer_is_asked_last_until_it_has_rested() -> None:
    clock = Clock()
    roots = Roots(("a", "b"), clock)
    roots.failed("a")
    assert [roots.in_turn() for _ in range(4)] == [("b", "a")] * 4
    clock.now += FIRST_REST_SECONDS
    assert "a" in {roots.in_turn()[0] for _ in range(2)}


def test_one_call_tries_a_root_that_has_rested_and_others_do_not_wait_for_it() -> None:
    clock = Clock()
    roots = Roots(("a", "b"), clock)
    roots.failed("a")
    clock.now += FIRST_REST_SECONDS
    assert [roots.in_turn()[0] for _ in range(6)].count("a") == 1


def test_a_root_that_stays_dead_is_tried_ever_more_rarely() -> None:
    clock = Clock()
    roots = Roots(("a", "b"), clock)
    roots.failed("a")
    failed, rests = clock.now, list[float]()
    while len(rests) < 8:
        clock.now += 0.5
        if roots.in_turn()[0] == "a":
            rests.append(clock.now - failed)
            roots.failed("a")
            failed = clock.now
    assert rests == sorted(rests)
    assert rests[0] < 3
    assert LONGEST_REST_SECONDS <= rests[-1] <= LONGEST_REST_SECONDS + 1


def test_many_calls_that_fail_together_count_once() -> None:
    clock = Clock()
    roots = Roots(("a", "b"), clock)
    for _ in range(10):
        roots.failed("a")
    clock.now += FIRST_REST_SECONDS
    assert "a" in {roots.in_turn()[0] for _ in range(2)}


def test_a_root_that_answers_takes_its_turn_again() -> None:
    roots = Roots(("a", "b"), Clock())
    roots.failed("a")
    roots.answered("a")
    assert {roots.in_turn()[0] for _ in range(2)} == {"a", "b"}


def test_while_none_answers_all_are_asked() -> None:
    roots = Roots(("a", "b"), Clock())
    roots.failed("a")
    roots.failed("b")
    assert {frozenset(roots.in_turn()) for _ in range(3)} == {frozenset("ab")}
    assert {roots.in_turn()[0] for _ in range(2)} == {"a", "b"}
