"""What a task process makes once."""

from threading import Barrier, Thread

from tasks.once import Once


def test_threads_that_call_together_get_the_same_thing_made_once() -> None:
    made: list[object] = []
    meeting = Barrier(8)

    def make() -> object:
        made.append(object())
        return made[-1]

    once, got = Once(make), list[object]()

    def call() -> None:
        meeting.wait()
        got.append(once())

    threads = [Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert got == made * 8


def test_what_is_forgotten_while_another_thread_makes_it_is_made_anew() -> None:
    once = Once(object)
    first = once()
    with once._making:
        once.forget()
        assert once() is not first
