"""Where a text may be cut so that what a reader sees as one character arrives whole (front F4)."""

from wcwidth import grapheme_boundary_before, iter_graphemes

_GOES_ON = ("\u200d\N{GRINNING FACE}", "\N{GRINNING FACE}", "\N{REGIONAL INDICATOR SYMBOL LETTER A}")
"""What an emoji can go on with: joined to the end of a text, each shows whether that end may be half of one."""

_FIRST_EMOJI = "\N{COPYRIGHT SIGN}"
_KEYCAPS = frozenset("0123456789#*")
_DAMAGED = "\N{REPLACEMENT CHARACTER}"
_TAIL = 64
"""Code points at the end that are looked at: far more than any emoji has."""


def cut_at(text: str, wanted: int) -> int:
    """The last place up to `wanted` code points at which `text` may be cut, but at least one whole cluster."""
    if wanted >= len(text):
        return len(text)
    boundary = int(grapheme_boundary_before(text, wanted + 1))
    return boundary or len(next(iter_graphemes(text)))


def closed_length(text: str, *, keycaps: bool) -> int:
    """Code points of `text` before an end that may be half of an emoji, or half of a character torn in two.

    `keycaps`: a digit at the end counts as half of a keycap, which it seldom is.
    """
    last = text[-1:]
    if last == _DAMAGED:
        return len(text) - 1
    if last in _KEYCAPS:
        return len(text) - 1 if keycaps else len(text)
    if last < _FIRST_EMOJI:
        return len(text)
    start = int(grapheme_boundary_before(text, len(text)))
    cluster = text[max(start, len(text) - _TAIL) :]
    return start if _may_go_on(cluster) else len(text)


def _may_go_on(cluster: str) -> bool:
    if cluster[:1] in _KEYCAPS:
        return not cluster.endswith("\u20e3")
    return any(len(list(iter_graphemes(cluster + more))) == 1 for more in _GOES_ON)
