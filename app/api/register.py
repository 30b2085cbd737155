"""The register page: a form, then the key, once (wire reference 2.9)."""

from flask import Blueprint, Response, request

from app.api import contract_schemas
from app.api.operations import Operation, documented
from app.api.pages import page
from app.api.services import services
from app.domain.errors import BadRequest, RegistrationClosed
from app.services.registration import LONGEST_NAME, SHORTEST_NAME, Registered

blueprint = Blueprint("register", __name__)


@blueprint.get("/register")
@documented(Operation(tag="accounts", answers={200: "text/html"}))
def show_form() -> Response:
    """Show the form."""
    return _page()


@blueprint.post("/register")
@documented(
    Operation(
        tag="accounts",
        body=contract_schemas.REGISTER_FORM,
        answers={200: "text/html", 400: "text/html"},
    )
)
def register() -> Response:
    """Make an account and show its key; the form again, with the reason, for a name that cannot be used."""
    username = request.form.get("username", "")
    try:
        made = services().register(username)
    except (BadRequest, RegistrationClosed) as refusal:
        return _page(refusal.http_status, problem=refusal.message, username=username)
    return _page(made=made)


def _page(status: int = 200, *, problem: str = "", username: str = "", made: Registered | None = None) -> Response:
    return page(
        "register.html",
        status,
        current="Register",
        problem=problem,
        username=username,
        made=made,
        shortest=SHORTEST_NAME,
        longest=LONGEST_NAME,
    )
