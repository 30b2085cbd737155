"""Which limits a route has, and how fine a process counts."""

import pytest

from app.domain.rate_limits import Limit, LimitName, limits_of_route


@pytest.mark.parametrize(
    ("method", "route", "names"),
    [
        ("GET", "/find_user", {LimitName.DEFAULT}),
        ("GET", "/status/heartbeat", set()),
        ("HEAD", "/status/modes", {LimitName.MODES}),
        ("GET", "/generate/text/status/<>", {LimitName.STATUS}),
        ("POST", "/generate/text/pop", {LimitName.WORKER_CALLS}),
        ("POST", "/generate/chat/progress/<>", set()),
        ("POST", "/internal/statuses", set()),
        ("GET", "/healthz", set()),
        ("PUT", "/sharedkeys", {LimitName.SHARED_KEYS}),
        ("PATCH", "/sharedkeys/<>", {LimitName.DEFAULT}),
        ("POST", "/kudos/transfer", {LimitName.TRANSFERS_SECOND, LimitName.TRANSFERS_HOUR}),
        ("POST", "/register", {LimitName.REGISTER_MINUTE, LimitName.REGISTER_HOUR, LimitName.REGISTER_DAY}),
        ("POST", "/reports", {LimitName.REPORTS}),
        ("GET", "/register", {LimitName.DEFAULT}),
    ],
)
def test_a_route_has_its_limits(method: str, route: str, names: set[LimitName]) -> None:
    assert set(limits_of_route(method, route, anonymous=False)) == names


@pytest.mark.parametrize("face", ["text", "chat"])
def test_those_who_use_the_anonymous_key_share_a_larger_limit(face: str) -> None:
    route = f"/generate/{face}/async"
    own, everybodys = (set(limits_of_route("POST", route, anonymous=anonymous)) for anonymous in (False, True))
    assert own ^ everybodys == {LimitName.SUBMIT_KEY, LimitName.SUBMIT_ANONYMOUS}


@pytest.mark.parametrize(("name", "seconds"), [("modes_per_minute", 60), ("transfers_per_hour", 3600)])
def test_a_window_is_as_long_as_the_name_says(name: str, seconds: int) -> None:
    assert LimitName(name).seconds == seconds


@pytest.mark.parametrize(("calls", "part"), [(1, 1), (19, 1), (60, 3), (600, 30)])
def test_a_process_tells_of_a_twentieth_of_a_limit(calls: int, part: int) -> None:
    assert Limit(LimitName.DEFAULT, calls).part == part
