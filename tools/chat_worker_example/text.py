"""Text from a backend, made fit for JSON and for the horde."""

HIGH_SURROGATES = range(0xD800, 0xDC00)


def mend(text: str) -> str:
    """Joins the halves of characters that a backend split over two pieces; a lone half becomes U+FFFD.

    JSON may carry half of a surrogate pair, and a backend that streams byte by byte does.
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def whole_characters(text: str) -> int:
    """How much of an unfinished text can be sent: all but a half whose other half may still come."""
    return len(text) - (bool(text) and ord(text[-1]) in HIGH_SURROGATES)
