"""What every page comes with: small files of its own, and nothing from elsewhere."""

import re
from pathlib import Path

import pytest
from jinja2 import UndefinedError

import pages

LARGEST_BYTES = 10_000
TEMPLATES = sorted((Path(pages.__file__).parent / "templates").glob("*.html"))


@pytest.mark.parametrize("name", sorted(pages.ASSETS))
def test_every_file_is_small(name: str) -> None:
    assert 0 < len(pages.ASSETS[name].body) < LARGEST_BYTES


def test_an_address_changes_with_what_is_in_the_file() -> None:
    addresses = {asset.address for asset in pages.ASSETS.values()}
    assert len(addresses) == len(pages.ASSETS)
    assert all(re.fullmatch(r"/pages/[a-z]+\.[a-z]+\?v=[0-9a-f]{12}", address) for address in addresses)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_no_page_has_a_script_or_style_of_its_own_or_anything_from_elsewhere(template: Path) -> None:
    text = template.read_text()
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\bsrc=)|://", text)


def test_values_are_shown_as_text() -> None:
    html = pages.render("connect.html", base="<b>", current="", through_front=True)
    assert "&lt;b&gt;/v1" in html
    assert "<b>" not in html


def test_a_value_that_is_missing_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        pages.render("text.html", title="x")
