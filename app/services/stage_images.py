"""Takes a request's images out of its messages and puts them where a task will find them (images I1, details D10).

The request thread checks, copies and stores; it never decodes an image. Bytes and the URLs
of a client go into one staged object, and into no row.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import orjson

from app.domain.contract import ChatRequest
from app.domain.errors import StorageUnavailable
from app.domain.images.parts import GivenImage, ImageLimits, check_images, image_keys, lifted
from app.services.runtime import Runtime
from config.fault_points import FaultPoint, reach

PREFIX = "media/"
"""Everything of the horde's in the bucket; what a lifecycle rule may name."""

STAGED = "incoming"
OFFLOADED = "messages.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMedia:
    """What a request has in the store when it is stored itself. Without `sources` it waits to be offloaded."""

    folder: str
    sources: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifted:
    """A request without its images, and what they hold."""

    chat: ChatRequest
    folder: str
    images: tuple[GivenImage, ...] = ()
    contents: Mapping[str, bytes] = field(default_factory=dict, repr=False)


class StageImages:
    """The part of a submit that concerns images."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        settings = runtime.settings
        self._limits = ImageLimits(
            count=settings.image_limit,
            bytes_each=settings.image_limit_bytes,
            remote=settings.image_fetch,
            allowed_hosts=settings.fetchable_hosts,
        )

    def lifted(self, chat: ChatRequest) -> Lifted:
        """Take the images out, with every check that needs no decoding.

        Raises ContractRefusal naming the part, or StorageUnavailable where there is no store.
        """
        folder = f"{PREFIX}{uuid4().hex}"
        messages, images = lifted(chat.messages, folder)
        if not images:
            return Lifted(chat=chat, folder=folder)
        check_images(images, self._limits)
        if not self._runtime.store.is_configured:
            raise StorageUnavailable("This horde has no store for images. Leave the images out, or ask its operator.")
        contents = {image.key: image.data() if image.is_data else image.url.encode() for image in images}
        return Lifted(chat=replace(chat, messages=messages), folder=folder, images=images, contents=contents)

    def staged(self, given: Lifted, messages: list[dict[str, Any]]) -> NewMedia | None:
        """Stage the images that these messages kept; None for a request that needs no store.

        Raises StorageUnavailable.
        """
        if not given.images:
            large = self._is_large(messages)
            return NewMedia(folder=given.folder) if large else None
        kept = set(image_keys(messages))
        sources, pieces, offset = [], [], 0
        for image in given.images:
            if image.key not in kept:
                continue
            content = given.contents[image.key]
            sources.append(
                {
                    "key": image.key,
                    "path": image.path,
                    "remote": not image.is_data,
                    "offset": offset,
                    "size": len(content),
                }
            )
            pieces.append(content)
            offset += len(content)
        if sources:
            body, store = b"".join(pieces), self._runtime.store
            self._runtime.gate.call(lambda: store.put(staged_key(given.folder), body, "application/octet-stream"))
            reach(FaultPoint.IMAGES_STAGED)
            return NewMedia(folder=given.folder, sources=sources)
        return None

    def discard(self, media: NewMedia) -> None:
        """Delete what was staged for a request that was refused. What is left is collected as an orphan."""
        if not media.sources:
            return
        store = self._runtime.store
        with contextlib.suppress(StorageUnavailable):
            self._runtime.gate.call(lambda: store.delete([staged_key(media.folder)]))

    def _is_large(self, messages: list[dict[str, Any]]) -> bool:
        most = self._runtime.settings.offload_bytes
        return most is not None and self._runtime.store.is_configured and len(orjson.dumps(messages)) > most


def staged_key(folder: str) -> str:
    """Key of what a submit staged."""
    return f"{folder}/{STAGED}"


def fetched_key(source: Mapping[str, Any]) -> str:
    """Key of what a remote image's URL led to."""
    return f"{source['key']}.fetched"


def is_to_be_fetched(source: Mapping[str, Any]) -> bool:
    """Whether the image is only known by its URL yet."""
    return bool(source["remote"]) and not source.get("fetched", False)


def offloaded_key(folder: str) -> str:
    """Key of a conversation that is stored whole."""
    return f"{folder}/{OFFLOADED}"


def all_keys(folder: str, sources: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every key that a request can have in the store."""
    fetched = [fetched_key(source) for source in sources if source["remote"]]
    return [staged_key(folder), offloaded_key(folder), *fetched, *(str(source["key"]) for source in sources)]
