"""The pages that people see: templates, and the files that come with them.

Both faces render from here, so that their pages look alike and neither needs the other. Nothing
in here knows where figures come from.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

FOLDER = "/pages/"
"""Where both faces serve the files."""

KEPT_SECONDS = 31_536_000
"""How long a browser keeps a file: its address changes with what is in it."""

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
"""What every page is sent with: nothing from elsewhere, no script in the page, and nothing kept."""

SWAGGER_HEADERS: Mapping[str, str] = {
    **HEADERS,
    "Content-Security-Policy": (
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "object-src 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
}
"""The same for a page of Swagger UI, which styles its elements one by one."""

HTML = "text/html; charset=utf-8"

_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file that pages need: its bytes, their type, and the address that names this version of it."""

    body: bytes
    content_type: str
    address: str

    @property
    def headers(self) -> dict[str, str]:
        """What it is sent with."""
        return {
            "Content-Type": self.content_type,
            "Cache-Control": f"public, max-age={KEPT_SECONDS}, immutable",
            "X-Content-Type-Options": "nosniff",
        }


def _read_assets() -> dict[str, Asset]:
    found = {}
    for file in (files(__name__) / "assets").iterdir():
        kind = _TYPES.get(file.name.rpartition(".")[2])
        if kind is not None:
            body = file.read_bytes()
            found[file.name] = Asset(body, kind, f"{FOLDER}{file.name}?v={sha256(body).hexdigest()[:12]}")
    return found


ASSETS: Mapping[str, Asset] = _read_assets()
"""The files by name."""


def _address(name: str) -> str:
    return ASSETS[name].address


_environment = Environment(
    loader=PackageLoader(__name__),
    autoescape=select_autoescape(),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_environment.globals["asset"] = _address


def render(template: str, **values: object) -> str:
    """Return a page, or a part of one. Values are escaped, wherever they stand."""
    return _environment.get_template(template).render(**values)
