"""What of a stream was posted, what was said of it, and whether both go together (front F4, details D6). Pure.

Workers may follow each other in one stream. Said is said: a later generation is relayed
only beyond the said text that it repeats, and the final reply must begin with what was said.
"""

from dataclasses import dataclass, field

from app.domain.progress_entries import ProgressEntry

_DAMAGED = "\N{REPLACEMENT CHARACTER}"


class Diverged(Exception):
    """A text does not begin with what the client has already."""


@dataclass(slots=True)
class Voice:
    """One of the two texts of a stream: the content, or the reasoning."""

    said: str = ""
    ready: str = ""
    _repeated: int = 0
    _torn: bool = False

    @property
    def agreed(self) -> str:
        """The part of the said text that the current generation posted too."""
        return self.said[: self._repeated]

    def accept(self, delta: str) -> None:
        """Take what was posted.

        Raises Diverged.
        """
        if missing := len(self.said) - self._repeated:
            again, delta = delta[:missing], delta[missing:]
            if not self.said.startswith(again, self._repeated):
                raise Diverged
            self._repeated += len(again)
        if not delta or self._torn:
            return
        if delta[0] == _DAMAGED and self.ready.endswith(_DAMAGED):
            # Halves of one character, posted apart, are damaged each; the final reply has it whole.
            self.ready = self.ready[:-1]
            self._torn = True
        else:
            self.ready += delta

    def say(self, length: int) -> str:
        """The next text for the client."""
        piece, self.ready = self.ready[:length], self.ready[length:]
        self.said += piece
        self._repeated += len(piece)
        return piece

    def drop(self) -> None:
        """What is not said comes from a generation that is over."""
        self.ready = ""

    def begin(self) -> None:
        """What follows is posted from the beginning."""
        self.ready = ""
        self._repeated = 0
        self._torn = False

    def rest_of(self, final: str) -> str:
        """What the final text has beyond the said one.

        Raises Diverged.
        """
        if not final.startswith(self.said):
            raise Diverged
        return final[len(self.said) :]


@dataclass(slots=True)
class Transcript:
    """The relay of one request over all its generations.

    `model` is the one that writes. Where it must be known, text without it waits for the reply.
    """

    content: Voice = field(default_factory=Voice)
    reasoning: Voice = field(default_factory=Voice)
    generation_id: str | None = None
    needs_model: bool = False
    model: str | None = None
    _next_seq: int = 0
    _incomplete: bool = False
    _past: frozenset[str] = frozenset()

    def accept(self, entry: ProgressEntry) -> None:
        """Take one entry of the stream, also one that came before, or late, or after a loss.

        Raises Diverged.
        """
        if entry.generation_id in self._past:
            return
        if entry.generation_id != self.generation_id or entry.seq == 0:
            self._begin(entry)
        if entry.ended:
            self._past |= {entry.generation_id}
            self.content.drop()
            self.reasoning.drop()
        elif entry.seq == self._next_seq and not self._incomplete:
            self._next_seq += 1
            self.reasoning.accept(entry.reasoning_delta)
            self.content.accept(entry.delta)
        elif entry.seq is not None and entry.seq > self._next_seq:
            # Text was lost: what follows has no place until the final reply fills the hole.
            self._incomplete = True

    def relayed(self) -> dict[str, str] | None:
        """What a cancel says of the current generation (details D15); None when nothing was said of it."""
        content, reasoning = self.content.agreed, self.reasoning.agreed
        if self.generation_id is None or not (content or reasoning):
            return None
        return {"generation_id": self.generation_id, "content": content, "reasoning_content": reasoning}

    def _begin(self, first: ProgressEntry) -> None:
        """Start from the first post: of another generation, or of this one again after Redis forgot it."""
        if self.generation_id not in {None, first.generation_id}:
            self._past |= {str(self.generation_id)}
        self.generation_id, self.model = first.generation_id, first.model
        self._next_seq, self._incomplete = 0, self.needs_model and first.model is None
        self.content.begin()
        self.reasoning.begin()
