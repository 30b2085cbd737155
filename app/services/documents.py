"""The horde's terms, privacy notice, sponsors and news, as its operator wrote them (wire reference 2.8).

Files of DOCUMENTS_FOLDER win over what is here: `terms.md`, `privacy.md`, `sponsors.md`, and
`news.json`, an array of news. They are read anew by each call, so an edit needs no restart.
"""

from importlib.resources import files
from pathlib import Path

import structlog
from markdown_it import MarkdownIt
from pydantic import BaseModel, TypeAdapter, ValidationError

from app.domain.errors import NotFound

DOCUMENTS = ("terms", "privacy", "sponsors")

log = structlog.get_logger(__name__)


class NewsItem(BaseModel):
    """One piece of news."""

    title: str
    newspiece: str
    date_published: str
    importance: str = "Information"
    tags: list[str] = []
    more_info_urls: list[str] = []


_NEWS = TypeAdapter(list[NewsItem])


class Documents:
    """The operator's texts."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        # Without HTML of its own, whoever may write the texts still cannot run a script in a page.
        self._markdown = MarkdownIt("commonmark", {"html": False})

    def markdown(self, name: str) -> str:
        """Return a document as it was written.

        Raises NotFound when there is no such document.
        """
        if name not in DOCUMENTS:
            raise NotFound(f"No such document. There are {', '.join(DOCUMENTS)}.")
        own = self._own(f"{name}.md")
        return files("app.services").joinpath("texts", f"{name}.md").read_text() if own is None else own

    def html(self, name: str) -> str:
        """Return a document as HTML.

        Raises NotFound when there is no such document.
        """
        return str(self._markdown.render(self.markdown(name)))

    def news(self) -> list[dict[str, object]]:
        """Return the news as they stand in the file; none while it cannot be read."""
        own = self._own("news.json")
        if own is None:
            return []
        try:
            return [item.model_dump() for item in _NEWS.validate_json(own)]
        except ValidationError as error:
            log.warning("news.unreadable", problem=str(error))
            return []

    def _own(self, name: str) -> str | None:
        if self._folder is None:
            return None
        try:
            return (self._folder / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            log.warning("document.unreadable", name=name, problem=str(error))
            return None
