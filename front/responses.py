"""Answers of the front, built from bytes."""

from collections.abc import Mapping

from quart import Response

from front.errors import Problem

JSON = "application/json"


def json_response(body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer of encoded JSON."""
    response = Response(body, status=status, content_type=JSON)
    response.headers.update(headers or {})
    return response


def openai_problem(problem: Problem) -> Response:
    """A problem in OpenAI's envelope."""
    return json_response(problem.envelope(), problem.status, problem.headers())


def native_problem(problem: Problem) -> Response:
    """A problem as native clients and workers read it."""
    return json_response(problem.native_body(), problem.status, problem.headers())
