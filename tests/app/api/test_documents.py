"""The routes of the operator's texts and news (wire reference 2.8)."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from app.services.documents import DOCUMENTS


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_comes_as_html_or_as_it_was_written(client: FlaskClient, name: str) -> None:
    def shown(form: str) -> Any:
        return client.get(f"/api/v2/documents/{name}{form}").get_json()

    assert shown("")["html"].startswith("<h1>")
    assert shown("?format=html") == shown("")
    assert shown("?format=markdown")["markdown"].startswith("# ")


def test_another_document_or_format_is_refused(client: FlaskClient) -> None:
    assert client.get("/api/v2/documents/none").status_code == 404
    refused = client.get("/api/v2/documents/terms?format=pdf")
    told: Any = refused.get_json()
    assert (refused.status_code, list(told["errors"])) == (400, ["format"])


def test_there_are_no_news_where_nobody_wrote_any(client: FlaskClient) -> None:
    answer = client.get("/api/v2/status/news")
    assert (answer.status_code, answer.json) == (200, [])
