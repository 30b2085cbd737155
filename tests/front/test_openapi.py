"""The front's document is valid, and whole."""

import re
from typing import Any

from openapi_spec_validator import validate
from quart import Quart

from config.settings import FrontSettings
from front.context import build_front
from front.factory import create_app
from front.openapi import document
from front.passthrough import PATHS

ELSEWHERE = {*PATHS, *(f"{prefix}/v2/generate/text/{name}" for prefix in ("/api", "") for name in ("pop", "async"))}
"""Routes of the native API, which are in its document."""


def test_the_document_is_valid_openapi() -> None:
    validate(document())


def test_every_route_of_the_fronts_own_is_in_the_document() -> None:
    gate: Any = create_app(build_front(FrontSettings(_env_file=None, redis_url="redis://x")))
    app: Quart = gate._app
    own = {rule.rule for rule in app.url_map.iter_rules()} - ELSEWHERE
    assert {re.sub(r"<path:name>|<request_id>", "{id}", path).replace("<name>", "{name}") for path in own} == set(
        document()["paths"]
    )
