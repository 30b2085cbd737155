"""How problems are said."""

import orjson
import pytest

from app.domain.errors import ContractRefusal, HordeError, KudosCapExceeded
from front import errors
from front.errors import FrontError, Problem
from script.docs.generated import subclasses

ERRORS: list[type[HordeError]] = sorted(subclasses(HordeError), key=lambda error: error.rc)


def test_the_envelope_always_has_its_five_keys() -> None:
    assert orjson.loads(Problem(404, "x", "m").envelope()) == {
        "error": {"message": "m", "type": "invalid_request_error", "param": None, "code": "x", "metadata": None}
    }


@pytest.mark.parametrize(("seconds", "shown"), [(0, 1), (0.5, 1), (7.9, 7), (60, 60), (3600, 60)])
def test_retry_after_stays_within_what_clients_obey(seconds: float, shown: int) -> None:
    assert errors.clamp_retry_after(seconds) == shown


def test_a_problem_after_the_submit_stops_automatic_retries() -> None:
    error = FrontError(errors.unreachable())
    assert "x-should-retry" not in error.problem.headers()
    assert error.after_submit().problem.headers()["x-should-retry"] == "false"


def test_a_refusal_of_the_shared_rules_keeps_message_param_and_code() -> None:
    refusal = ContractRefusal("words", param="messages[0]", code="invalid_type", status=404)
    problem = errors.from_horde_error(refusal)
    assert (problem.status, problem.code, problem.message, problem.param) == (
        404,
        "invalid_type",
        "words",
        "messages[0]",
    )
    assert errors.from_horde_error(KudosCapExceeded("dear")).status == 400


@pytest.mark.parametrize("given", [None, "soon", "-1", "Wed, 21 Oct 2015 07:28:00 GMT"])
def test_a_retry_after_that_is_no_number_is_left_out(given: str | None) -> None:
    assert errors.from_native(503, {"rc": "x"}, given).headers() == {}


def test_close_names_and_a_long_list_are_said_briefly() -> None:
    names = [f"model-{number:02}" for number in range(25)]
    message = errors.with_online_models(Problem(503, "x", "No."), " Did you mean model-01?", names).message
    assert message.startswith("No. Did you mean model-01? Online: model-00,")
    assert message.endswith("model-19 and 5 more.")
    assert (
        errors.with_online_models(Problem(503, "x", "No."), "", []).message == "No. No chat model is online right now."
    )


@pytest.mark.parametrize("error", ERRORS)
def test_every_code_of_the_native_api_has_a_status_that_clients_know(error: type[HordeError]) -> None:
    known = {400, 401, 402, 403, 404, 405, 409, 410, 413, 415, 422, 423, 429, 502, 503}
    problem = errors.from_native(error.status, {"rc": error.rc, "message": "m"}, None)
    assert problem.status in known
    assert problem.status == 402 if error.rc.startswith(("KudosUpfront", "SharedKey")) else True
    assert set(orjson.loads(problem.envelope())["error"]) == {"message", "type", "param", "code", "metadata"}
