"""The shape of one entry of a request's retained progress stream (details D6, ADR 0024).

The native API writes entries, the front reads them; both go through here. An entry
is either text that a worker posted or the marker that its generation ended early.
"""

from collections.abc import Mapping
from dataclasses import dataclass

_GENERATION = "gen"
_SEQUENCE = "seq"
_DELTA = "delta"
_REASONING_DELTA = "reasoning_delta"
_MODEL = "model"
_ENDED = "ended"
_ENDED_VALUE = "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressEntry:
    """What one generation posted at one step, or that it ended without a reply.

    Entries of several generations may follow each other in one stream, so each names its own.
    A marker has no sequence number and no text. A first entry, whose `seq` is 0, names the model that writes.
    """

    generation_id: str
    seq: int | None = None
    delta: str = ""
    reasoning_delta: str = ""
    model: str | None = None
    ended: bool = False

    def encode(self) -> dict[str, str]:
        """Fields of the entry as Redis keeps them; what is empty is left out."""
        fields = {_GENERATION: self.generation_id}
        if self.seq is not None:
            fields[_SEQUENCE] = str(self.seq)
        if self.delta:
            fields[_DELTA] = self.delta
        if self.reasoning_delta:
            fields[_REASONING_DELTA] = self.reasoning_delta
        if self.model is not None:
            fields[_MODEL] = self.model
        if self.ended:
            fields[_ENDED] = _ENDED_VALUE
        return fields

    @classmethod
    def decode(cls, fields: Mapping[str, str] | Mapping[bytes, bytes]) -> "ProgressEntry":
        """Read an entry's fields, as bytes or text.

        Raises ValueError for fields that are no entry.
        """
        read = {_text(name): _text(value) for name, value in fields.items()}
        if not read.get(_GENERATION):
            raise ValueError("a progress entry names its generation")
        ended = read.get(_ENDED) == _ENDED_VALUE
        seq = int(read[_SEQUENCE]) if _SEQUENCE in read else None
        if seq is None and not ended:
            raise ValueError("a progress entry has a sequence number unless it is the ended marker")
        return cls(
            generation_id=read[_GENERATION],
            seq=seq,
            delta=read.get(_DELTA, ""),
            reasoning_delta=read.get(_REASONING_DELTA, ""),
            model=read.get(_MODEL),
            ended=ended,
        )


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
