"""The operator's texts and news."""

from pathlib import Path

import orjson
import pytest

from app.domain.errors import NotFound
from app.services.documents import DOCUMENTS, Documents

ITEM = {"title": "New model", "newspiece": "It is here.", "date_published": "2026-01-31"}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_each_document_has_a_text_without_an_operators_and_the_operators_wins(name: str, tmp_path: Path) -> None:
    documents = Documents(tmp_path)
    assert documents.markdown(name) == Documents(None).markdown(name) != ""
    (tmp_path / f"{name}.md").write_text("# Ours\n\n<script>x</script>")
    assert documents.markdown(name).startswith("# Ours")
    assert documents.html(name) == "<h1>Ours</h1>\n<p>&lt;script&gt;x&lt;/script&gt;</p>\n"


@pytest.mark.parametrize("name", ["", "news", "../../etc/passwd", "terms.md"])
def test_there_are_no_other_documents(name: str, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        Documents(tmp_path).markdown(name)


def test_news_are_what_the_file_says_and_none_while_it_cannot_be_read(tmp_path: Path) -> None:
    documents = Documents(tmp_path)
    assert documents.news() == Documents(None).news() == []
    (tmp_path / "news.json").write_bytes(orjson.dumps([ITEM]))
    assert documents.news() == [ITEM | {"importance": "Information", "tags": [], "more_info_urls": []}]
    for unreadable in (b"[", b'[{"title": 1}]', b"\xff"):
        (tmp_path / "news.json").write_bytes(unreadable)
        assert documents.news() == []
