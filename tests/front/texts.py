"""Texts in any script, with the emoji that break most easily."""

from itertools import pairwise

from hypothesis import strategies as st

EMOJI = (
    "👩\u200d👩\u200d👧\u200d👦",
    "🏳\ufe0f\u200d🌈",
    "👍🏽",
    "🇫🇷",
    "1\ufe0f\u20e3",
    "❤\ufe0f\u200d🔥",
    "🧑🏿\u200d🚀",
)

_WORDS = (
    "Hello ",
    "мир ",
    "漢字",
    "مرحبا ",
    "नमस्ते ",
    "cafe\u0301 ",
    "\u0e01\u0e33",
    "한국어",
    "\n\n",
    "a\u2028b",
    "data: [DONE]\n\n",
    "42 ",
)


def texts(largest: int = 12) -> st.SearchStrategy[str]:
    """Texts without lone surrogates, which no post has."""
    piece = st.one_of(
        st.sampled_from(EMOJI), st.sampled_from(_WORDS), st.text(st.characters(codec="utf-8"), max_size=5)
    )
    return st.lists(piece, max_size=largest).map("".join)


@st.composite
def split_texts(draw: st.DrawFn, largest: int = 12) -> tuple[str, list[str]]:
    """A text, and the posts of a worker that cuts it anywhere, also inside an emoji."""
    text = draw(texts(largest))
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    bounds = [0, *cuts, len(text)]
    return text, [text[start:end] for start, end in pairwise(bounds)]
