"""The register page: a form, then the key, once (wire reference 2.9)."""

from flask import Blueprint, Response, request

from app.api import contract_schemas
from app.api.callers import read_caller
from app.api.operations import Operation, documented
from app.api.pages import page
from app.api.services import services
from app.domain.errors import AddressBanned, BadRequest, RegistrationClosed, TooManyCalls
from app.domain.rate_limits import spoken
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
        answers={200: "text/html", 400: "text/html", 403: "text/html", 429: "text/html"},
    )
)
def register() -> Response:
    """Make an account and show its key; the form again, with the reason, where that cannot be."""
    uses = services()
    calling = read_caller(request, uses.passkeys)
    try:
        made = uses.register(_username(), calling.address)
    except (BadRequest, RegistrationClosed, AddressBanned) as refusal:
        return _page(refusal.http_status, problem=refusal.message, username=_username())
    return _page(made=made)


@blueprint.errorhandler(TooManyCalls)
def _too_many(refusal: TooManyCalls) -> Response:
    """Show the form with the time after which it can be sent again; what was typed stays."""
    wait = refusal.retry_after_seconds or 1
    asked = "accounts were asked for" if request.method == "POST" else "calls came"
    problem = f"Too many {asked} from this address. Try again in {spoken(wait)}."
    response = _page(refusal.http_status, problem=problem, username=_username())
    response.headers["Retry-After"] = str(wait)
    return response


def _username() -> str:
    return request.form.get("username", "")


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
