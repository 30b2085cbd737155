"""Words that a worker refuses, and whether a prompt holds them (native-api N3: blacklist).

A request is screened once, when it comes in, against the words of all online workers; what
was found goes into its requirement class. A pop therefore reads no prompt to find a job.
"""

import re
from collections.abc import Iterable

_WORD = re.compile(r"\w+")


def found_words(text: str, refused: Iterable[str]) -> tuple[str, ...]:
    """Return those of the refused words and phrases that the text holds as whole words, sorted.

    Letters' case does not count.
    """
    spoken = _WORD.findall(text.casefold())
    vocabulary = set(spoken)
    line = f" {' '.join(spoken)} "
    return tuple(sorted({entry for entry in refused if _occurs(entry, vocabulary, line)}))


def refuses(blacklist: Iterable[str], found: Iterable[str]) -> bool:
    """Whether a worker with this blacklist refuses a prompt in which these words were found."""
    return not set(blacklist).isdisjoint(found)


def normal(entry: str) -> str:
    """A blacklist's entry in the form that is compared: small letters, single spaces, no punctuation."""
    return " ".join(_WORD.findall(entry.casefold()))


def _occurs(entry: str, vocabulary: set[str], line: str) -> bool:
    words = entry.split(" ")
    return bool(entry) and vocabulary.issuperset(words) and (len(words) == 1 or f" {entry} " in line)
