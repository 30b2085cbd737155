"""The routes of the operator's texts and news (wire reference 2.8)."""

import pytest
from flask.testing import FlaskClient

from app.services.documents import DOCUMENTS


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_comes_as_html_or_as_it_was_written(client: FlaskClient, name: str) -> None:
    path = f"/api/v2/documents/{name}"
    assert client.get(path).json["html"].startswith("<h1>")
    assert client.get(f"{path}?format=html").json == client.get(path).json
    assert client.get(f"{path}?format=markdown").json["markdown"].startswith("# ")


def test_another_document_or_format_is_refused(client: FlaskClient) -> None:
    assert client.get("/api/v2/documents/none").status_code == 404
    refused = client.get("/api/v2/documents/terms?format=pdf")
    assert (refused.status_code, list(refused.json["errors"])) == (400, ["format"])


def test_there_are_no_news_where_nobody_wrote_any(client: FlaskClient) -> None:
    answer = client.get("/api/v2/status/news")
    assert (answer.status_code, answer.json) == (200, [])
