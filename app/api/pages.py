"""The pages of the native API: status, its events, the operator's texts, and the files that pages need (O4)."""

from collections.abc import Mapping

import orjson
from flask import Blueprint, Response, request
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

import pages
from app.api import contract_schemas
from app.api.operations import Operation, documented
from app.api.services import services
from app.api.status_view import shown
from app.domain.errors import DeletedUser, NotFound, SharedKeyExpired, UserNotFound

TAG = "pages"
RETRY_MS = 5000
"""How long a browser waits before it comes back for the next look."""

TITLES = {"terms": "Terms", "privacy": "Who reads what", "sponsors": "Sponsors"}

blueprint = Blueprint("pages", __name__)


def page(template: str, status: int = 200, *, current: str = "", **values: object) -> Response:
    """Render a page with what every page has."""
    html = pages.render(template, current=current, through_front=came_through_front(), **values)
    return Response(html, status, dict(pages.HEADERS), content_type=pages.HTML)


def came_through_front() -> bool:
    """Whether a front passed this call on, so that its own pages are at this address too."""
    return "Proxied-For" in request.headers


@blueprint.get("/")
@documented(Operation(tag=TAG, answers={200: "text/html", 503: "text/html"}))
def home() -> Response:
    """Show how the horde is doing, to people who know no more than its address."""
    return _status()


@blueprint.get("/status")
@documented(Operation(tag=TAG, answers={200: "text/html", 503: "text/html"}))
def status() -> Response:
    """Show how the horde is doing, to people."""
    return _status()


@blueprint.post("/status")
@documented(Operation(tag=TAG, body=contract_schemas.KEY_FORM, answers={200: "text/html", 503: "text/html"}))
def status_with_kudos() -> Response:
    """Show the same with the kudos of the key in the form. The key comes in the body, so that no log has it."""
    key = request.form.get("key", "").strip()
    if not key:
        return _status(problem="Type a key first.")
    try:
        account = services().read_user.by_key(key)
    except (UserNotFound, DeletedUser, SharedKeyExpired) as refusal:
        return _status(problem=refusal.message)
    except (OperationalError, PoolTimeout):
        return _status()
    shown_account = {
        "username": account["username"],
        "kudos": f"{account['kudos']:,.0f}",
        "escrow": f"{account['evaluating_kudos']:,.0f}" if account.get("evaluating_kudos") else "",
    }
    return _status(account=shown_account)


@blueprint.get("/status/events")
@documented(Operation(tag=TAG, answers={200: contract_schemas.STATUS_EVENT}))
def events() -> Response:
    """Send one look as an event of the status page; the browser comes back for the next.

    A thread of this process is never held by an open page. A front holds them instead, and sends
    all of them the same look: its own `/status/events`.
    """
    html = pages.render("status_now.html", **shown(services().status_page.read()))
    payload = orjson.dumps({"html": html}).decode()
    return Response(
        f"retry: {RETRY_MS}\nevent: status\ndata: {payload}\n\n",
        content_type="text/event-stream; charset=utf-8",
        headers={"Cache-Control": "no-store"},
    )


@blueprint.get("/terms")
@documented(Operation(tag=TAG, answers={200: "text/html"}))
def terms() -> Response:
    """Show the operator's terms, to people."""
    return _text("terms")


@blueprint.get("/privacy")
@documented(Operation(tag=TAG, answers={200: "text/html"}))
def privacy() -> Response:
    """Show who reads what, to people."""
    return _text("privacy")


@blueprint.get("/sponsors")
@documented(Operation(tag=TAG, answers={200: "text/html"}))
def sponsors() -> Response:
    """Show the operator's sponsors, to people."""
    return _text("sponsors")


@blueprint.get("/pages/<name>")
@documented(Operation(tag=TAG, answers={200: "text/css"}, refuses=(NotFound,)))
def asset(name: str) -> Response:
    """Answer with a style sheet, script or picture that pages need."""
    found = pages.ASSETS.get(name)
    if found is None:
        raise NotFound("No page needs such a file.")
    return Response(found.body, headers=found.headers)


def _status(*, problem: str = "", account: Mapping[str, str] | None = None) -> Response:
    try:
        values, http_status = shown(services().status_page.read()), 200
    except (OperationalError, PoolTimeout):
        values, http_status = {"now": None}, 503
    return page("status.html", http_status, current="Status", problem=problem, account=account, **values)


def _text(name: str) -> Response:
    return page("text.html", title=TITLES[name], html=services().documents.html(name))
