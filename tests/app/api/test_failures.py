"""A failure that nobody foresaw, as a client sees it (wire reference, section 8, row 6)."""

import pytest
from flask.testing import FlaskClient

from app.services.performance import Performance


def test_row_06_a_browser_may_read_that_something_failed(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_self: Performance) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(Performance, "figures", fail)
    answer = client.get("/api/v2/status/performance", headers={"Origin": "https://lite.example"})
    assert answer.status_code == 500
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert answer.json == {"message": "Internal Server Error", "rc": "InternalError", "param": None, "metadata": None}
