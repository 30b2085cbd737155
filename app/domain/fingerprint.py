"""What makes two submits the same operation (native API N1)."""

from app.domain.contract import ChatRequest
from app.domain.json_boundary import digest_of


def fingerprint(request: ChatRequest) -> str:
    """SHA-256 of the request as normalised.

    Equal for bodies that differ in the order of `models` or of JSON keys, in defaults spelt
    out, in the operation key or in `dry_run`.
    """
    return digest_of(request.stored())
