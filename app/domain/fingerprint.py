"""What makes two submits the same operation (native API N1)."""

from dataclasses import asdict

from app.domain.contract import ChatRequest
from app.domain.json_boundary import digest_of
from app.domain.text_request import TextRequest


def fingerprint(request: ChatRequest) -> str:
    """SHA-256 of the request as normalised.

    Equal for bodies that differ in the order of `models` or of JSON keys, in defaults spelt
    out, in the operation key or in `dry_run`.
    """
    return digest_of(request.stored())


def text_fingerprint(request: TextRequest) -> str:
    """The same of a text request, whose order of models is kept: existing clients know no other."""
    return digest_of(asdict(request))
