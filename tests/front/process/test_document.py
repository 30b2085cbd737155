"""The front keeps to its own document, whatever is sent to it (issue: fuzzing)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from front.openapi import document
from tests.front.process.conftest import QUICK
from tests.front.process.front_process import FrontProcess, running_front
from tests.front.process.scripted_native import ScriptedNative, finished_at_once
from tests.support.services import RunningService

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
# The events of a status page have no end; tests/front/process/test_pages.py reads them.
schema = schemathesis.openapi.from_dict(document()).exclude(path="/status/events")


@pytest.fixture(scope="module")
def answering(
    native_server: ScriptedNative, valkey: RunningService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FrontProcess]:
    """A front before a horde that answers at once."""
    native_server.reset()
    folder: Path = tmp_path_factory.mktemp("front")
    with running_front(folder, native_server.url, valkey.service.url, **QUICK) as front:
        yield front


@pytest.mark.slow
@pytest.mark.timeout(300)
@schema.parametrize()
@settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
)
def test_every_answer_is_within_the_document(
    case: "Case[Any]", answering: FrontProcess, native: ScriptedNative
) -> None:
    native.initial = finished_at_once()
    case.call_and_validate(base_url=answering.url, checks=CHECKS, timeout=10)


def test_the_document_is_served(front: FrontProcess) -> None:
    assert requests.get(f"{front.url}/openapi.json", timeout=10).json() == document()
