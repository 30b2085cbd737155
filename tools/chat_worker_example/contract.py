"""Trials of the contract that need no feature: what every reply of this backend has to keep."""

from dataclasses import dataclass

from .assembling import Examined
from .backend import BackendError
from .chat import Json, UnusableCompletion, reply_of
from .judging import judge
from .questions import CONVERSATION

REPLY_TOKENS = 16


@dataclass(frozen=True)
class Finding:
    """Whether one part of the contract holds, and what was seen."""

    name: str
    holds: bool
    words: str


async def trials(examined: Examined) -> list[Finding]:
    """Tries a chat, a stream, the reply's length and a stop sequence. Raises BackendError when it is not up."""
    trial = _Trial(examined)
    plain, reply = await trial.ask("chat", {})
    streamed, whole = await trial.ask("stream", {"stream": True, "stream_options": {"include_usage": True}})
    return [plain, streamed, trial.pieces(whole), trial.cut(reply), trial.usage(reply), await trial.stop(reply)]


class _Trial:
    def __init__(self, examined: Examined) -> None:
        self._backend = examined.backend
        self._model = examined.findings.backend_model
        self._seen: list[str] = []

    def _call(self, extra: Json) -> Json:
        asked = {"model": self._model, "messages": CONVERSATION, "max_tokens": REPLY_TOKENS}
        return {**asked, "temperature": 0, "stream": False, **extra}

    async def ask(self, name: str, extra: Json) -> tuple[Finding, Json | None]:
        """One completion, judged as a job's reply would be."""
        call = self._call(extra)
        try:
            completion = await self._backend.complete(call, lambda content, _: self._seen.append(content))
            reply = judge(reply_of(completion), call)
        except (BackendError, UnusableCompletion) as error:
            if isinstance(error, BackendError) and error.status is None:
                raise
            return Finding(name, False, str(error)), None
        usage = reply["usage"] or {}
        words = f"{usage.get('completion_tokens', 'an unknown number of')} tokens, {reply['finish_reason']}"
        return Finding(name, True, words), reply

    def pieces(self, whole: Json | None) -> Finding:
        """A stream's pieces are its reply."""
        text = (whole or {"message": {"content": None}})["message"]["content"] or ""
        same = "".join(self._seen) == text
        pieces = len([piece for piece in self._seen if piece])
        return Finding("stream in pieces", same, f"{pieces} pieces of {len(text)} characters")

    def cut(self, reply: Json | None) -> Finding:
        """A reply has no more tokens than it may have."""
        used = ((reply or {}).get("usage") or {}).get("completion_tokens")
        finish = (reply or {}).get("finish_reason")
        holds = used is not None and used <= REPLY_TOKENS
        return Finding("max_tokens", holds, f"{used} of {REPLY_TOKENS} tokens, finish reason {finish}")

    def usage(self, reply: Json | None) -> Finding:
        """Both counts are reported."""
        usage = (reply or {}).get("usage") or {}
        return Finding("usage", {"prompt_tokens", "completion_tokens"} <= set(usage), f"reported: {usage or 'nothing'}")

    async def stop(self, reply: Json | None) -> Finding:
        """The first words of the reply, given as a stop sequence, do not come."""
        text = (reply or {"message": {"content": None}})["message"]["content"] or ""
        word = text.strip()[:4]
        if not word:
            return Finding("stop", False, "the reply had no text to stop at")
        finding, stopped = await self.ask("stop", {"stop": [word]})
        content = (stopped or {"message": {"content": None}})["message"]["content"] or ""
        holds = finding.holds and word not in content
        return Finding("stop", holds, f"with {word!r} to stop at, {len(content)} characters came")
