"""The OpenAPI document: it is valid, it holds every route, and every answer in these tests fits it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import validate

from app.api.document import described, public_rules
from app.api.operations import ATTRIBUTE
from app.domain.contract.readers import READERS
from app.domain.reports import ReportKind
from app.domain.text_request import SAMPLERS
from app.services.reports import Reports
from tests.app.api.conftest import Call
from tests.app.services.conftest import World


@pytest.fixture
def document(client: FlaskClient) -> Any:
    return client.get("/api/openapi.json").json


def references(value: Any) -> Iterator[str]:
    """Every reference in a part of the document."""
    if isinstance(value, dict):
        yield from (value["$ref"],) if "$ref" in value else ()
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from references(item)


def test_it_is_valid_openapi_3_1(document: Any) -> None:
    validate(document)
    assert document["openapi"].startswith("3.1")


def test_every_native_route_says_beside_itself_what_it_takes_and_answers(client: FlaskClient) -> None:
    app = client.application
    silent = [rule.rule for rule, _ in public_rules(app) if not hasattr(app.view_functions[rule.endpoint], ATTRIBUTE)]
    assert silent == []
    assert len(list(described(app))) > 30


def test_the_alias_and_a_fronts_own_routes_have_no_place_in_it(document: Any) -> None:
    paths = set(document["paths"])
    assert "/api/v2/generate/chat/async" in paths
    assert not [path for path in paths if path.startswith(("/v2", "/internal"))]


def test_the_chat_body_has_the_contracts_members(document: Any) -> None:
    body = document["paths"]["/api/v2/generate/chat/async"]["post"]["requestBody"]["content"]["application/json"]
    assert set(body["schema"]["properties"]) == {"model", "models", *READERS}


def test_the_text_body_has_every_sampler_with_its_bounds(document: Any) -> None:
    body = document["paths"]["/api/v2/generate/text/async"]["post"]["requestBody"]["content"]["application/json"]
    params = body["schema"]["properties"]["params"]["properties"]
    assert set(SAMPLERS) <= set(params)
    assert params["top_k"] == {"type": "integer", "minimum": 0, "maximum": 200}
    assert params["max_length"] == {"type": "integer", "minimum": 16, "maximum": 4096}


def test_every_operation_has_a_summary_and_says_how_it_fails(document: Any) -> None:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"].endswith("."), (method, path)
            assert "503" in operation["responses"], (method, path)


def test_all_that_is_referred_to_is_there(document: Any) -> None:
    named = {reference.rpartition("/")[2] for reference in references(document)}
    assert named == set(document["components"]["schemas"])


@pytest.mark.parametrize(
    "path",
    [
        "/workers",
        "/users",
        "/status/heartbeat",
        "/status/performance",
        "/status/models?type=text",
        "/status/modes",
        "/stats/text/totals",
        "/stats/text/models",
        "/find_user",
        "/limits",
        "/generate/chat/models",
        "/workers/messages",
    ],
)
def test_answers_are_what_it_says(world: World, get: Call, document: Any, path: str) -> None:
    world.pop(prompt_jobs=True)
    operation = document["paths"][f"/api/v2{path.partition('?')[0]}"]["get"]
    schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
    OAS31Validator(schema | {"components": document["components"]}).validate(get(path, world.owner_key))


def test_reports_are_what_it_says(world: World, get: Call, document: Any, worker_id: str, moderator_key: str) -> None:
    Reports(world.runtime).make(world.requester_key, ReportKind.WORKER, worker_id, "It answers in rhymes.")
    operation = document["paths"]["/api/v2/reports"]["get"]
    schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
    found = get("/reports", moderator_key)
    assert len(found) == 1
    OAS31Validator(schema | {"components": document["components"]}).validate(found)


def test_a_person_reads_it_on_a_page_that_fetches_nothing_from_elsewhere(client: FlaskClient) -> None:
    page = client.get("/api")
    assert page.status_code == 200
    assert "default-src 'self'" in page.headers["Content-Security-Policy"]
    assert "://" not in page.text
    for name in ("swagger-ui.css", "swagger-ui-bundle.js"):
        assert f"/api/ui/{name}" in page.text
        asset = client.get(f"/api/ui/{name}")
        assert asset.status_code == 200
        asset.close()
    assert 'data-document="/api/openapi.json"' in page.text


@pytest.mark.parametrize("name", ["missing.js", "..%2f__init__.py", "LICENSE"])
def test_nothing_else_of_the_pages_package_is_served(client: FlaskClient, name: str) -> None:
    assert client.get(f"/api/ui/{name}").status_code == 404


def test_the_service_says_who_it_is(client: FlaskClient) -> None:
    info = json.loads(client.get("/.well-known/serviceinfo").text)
    assert info["version"] == "0.2"
    assert info["api"]["aihorde"]["base_url"] == "http://localhost/api/v2"
