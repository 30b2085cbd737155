"""The kinds of backend, each with what it has beyond OpenAI's routes. One class a kind; KINDS is the table.

A fact here is never trusted by itself: a counter is compared with the usage of a real
completion, a feature has to show, and a context is tried with a conversation beyond it.
"""

import aiohttp

from .backend import Backend, BackendError, size
from .chat import Json

JSON_GUARANTEES = frozenset({"json_object_enforced", "json_schema_enforced"})
TOOL_GUARANTEES = frozenset({"tool_choice_enforced", "tool_choice_auto_faithful"})


class LlamaCpp(Backend):
    """llama.cpp's own server: renders and tokenizes a call on request, and samples under a grammar."""

    kind = "llama.cpp"
    enforces = JSON_GUARANTEES | TOOL_GUARANTEES

    async def recognised(self) -> bool:
        """It owns the models that it lists."""
        return await owns_models(self, "llamacpp")

    async def context(self, model: str) -> int | None:
        """The share of one slot."""
        settings = (await self.read("/props")).get("default_generation_settings")
        return size(settings.get("n_ctx")) if isinstance(settings, dict) else None

    async def count_tokens(self, call: Json) -> int:
        """Two routes: the template, then the tokenizer."""
        rendered = await self.ask("/apply-template", call)
        text = {"content": rendered.get("prompt"), "add_special": True, "parse_special": True}
        return _length(await self.ask("/tokenize", text), "/tokenize")


class Vllm(Backend):
    """vLLM: tells its context, counts conversations with their tools, and decodes under a structure."""

    kind = "vllm"
    enforces = JSON_GUARANTEES | TOOL_GUARANTEES

    async def recognised(self) -> bool:
        """It owns the models that it lists."""
        return await owns_models(self, "vllm")

    async def count_tokens(self, call: Json) -> int:
        """One route takes the conversation itself."""
        asked = {name: call[name] for name in ("model", "messages", "tools") if call.get(name)}
        return _length(await self.ask("/tokenize", asked), "/tokenize")


class KoboldCpp(Backend):
    """koboldcpp: tells its context; renders nothing on request, so prompts are bounded by their bytes."""

    kind = "koboldcpp"

    async def recognised(self) -> bool:
        """It names itself."""
        return (await self.read("/api/extra/version")).get("result") == "KoboldCpp"

    async def context(self, model: str) -> int | None:
        """What it was started with."""
        return size((await self.read("/api/extra/true_max_context_length")).get("value"))


class TabbyApi(Backend):
    """TabbyAPI: tells its context and counts conversations, without their tools."""

    kind = "tabbyapi"

    async def recognised(self) -> bool:
        """It owns the models that it lists."""
        return await owns_models(self, "tabbyapi")

    async def context(self, model: str) -> int | None:
        """What the loaded model was given."""
        parameters = (await self.read("/v1/model")).get("parameters")
        return size(parameters.get("max_seq_len")) if isinstance(parameters, dict) else None

    async def count_tokens(self, call: Json) -> int:
        """The encoder takes messages in place of a text."""
        return _length(await self.ask("/v1/token/encode", {"text": call["messages"]}), "/v1/token/encode")


class Ollama(Backend):
    """Ollama: tells the context of a model once it is loaded, samples JSON under a grammar, and trims in silence."""

    kind = "ollama"
    enforces = JSON_GUARANTEES

    async def recognised(self) -> bool:
        """It alone has this pair of routes."""
        return "version" in await self.read("/api/version") and "models" in await self.read("/api/ps")

    async def context(self, model: str) -> int | None:
        """What the running model was loaded with."""
        running = (await self.read("/api/ps")).get("models")
        entries = [entry for entry in running if isinstance(entry, dict)] if isinstance(running, list) else []
        named = (entry for entry in entries if model in (entry.get("name"), entry.get("model")))
        return next((size(entry.get("context_length")) for entry in named), None)


Kind = LlamaCpp | Vllm | KoboldCpp | TabbyApi | Ollama
KINDS: tuple[type[Kind], ...] = (LlamaCpp, Vllm, KoboldCpp, TabbyApi, Ollama)
"""In the order in which they are looked for: koboldcpp answers some of Ollama's routes too."""


async def owns_models(backend: Backend, owner: str) -> bool:
    """Whether a server says that the models it lists are its own."""
    return any(str(entry.get("owned_by")).lower() == owner for entry in await backend.models())


async def connect(session: aiohttp.ClientSession, url: str, kind: str = "auto", api_key: str | None = None) -> Backend:
    """The backend at this address, as the kind that is asked for or recognised.

    Raises BackendError when it does not answer.
    """
    for known in KINDS:
        backend = known(session, url, api_key)
        if kind == known.kind or (kind == "auto" and await _answers_as(backend)):
            return backend
    return Backend(session, url, api_key)


async def _answers_as(backend: Kind) -> bool:
    try:
        return await backend.recognised()
    except BackendError as error:
        if error.status is None or error.status == 503:
            raise
        return False


def _length(answer: Json, path: str) -> int:
    tokens = answer.get("tokens")
    if not isinstance(tokens, list):
        raise BackendError(f"{path} answered without tokens", status=200)
    return len(tokens)
