"""Image parts: taken out of a conversation at submit, and put back for a worker (images I1, I5).

Inside the horde a part holds the key of its stored image where the client's URL was, so that
image bytes and client URLs are in no row.
"""

import binascii
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.domain.errors import ContractRefusal
from app.domain.images.remote_url import parse_remote_url

MEDIA_TYPES = ("image/png", "image/jpeg", "image/jpg", "image/webp", "image/gif")
"""Media types that a data URL may declare. What the bytes are, the decoder finds out."""

FORMATS = "PNG, JPEG, WebP and GIF"

_STARTS = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")

INVALID_URL = "invalid_image_url"
TOO_LARGE = "image_too_large"
TOO_MANY = "too_many_images"
PARSE_ERROR = "image_parse_error"
FETCH_FAILED = "image_fetch_failed"
UNUSABLE = "image_unusable"
IMAGE_FAULTS = frozenset({INVALID_URL, TOO_LARGE, TOO_MANY, PARSE_ERROR, FETCH_FAILED, UNUSABLE})
"""Codes of everything that can be wrong with an image (images I2): the requester's to mend."""

Json = dict[str, Any]

_DATA = "data:"
_MARKER = ";base64,"


def begins_as_image(start: bytes) -> bool:
    """Whether a file that begins so can be of a format that is taken; what it is, the decoder finds out."""
    return start.startswith(_STARTS) or (start[:4], start[8:12]) == (b"RIFF", b"WEBP")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageLimits:
    """What a submit checks (details D22). `remote` tells whether http and https URLs are fetched at all.

    `allowed_hosts` are `host:port` pairs that the operator lets the horde reach although they are private.
    """

    count: int = 20
    bytes_each: int = 20 * 2**20
    remote: bool = True
    allowed_hosts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenImage:
    """One image as the client sent it: where it stands, and the key that it will be stored under."""

    key: str
    path: str
    url: str = field(repr=False)

    @property
    def is_data(self) -> bool:
        """Whether the bytes came with the request."""
        return self.url.startswith(_DATA)

    def data(self) -> bytes:
        """The bytes of a data URL.

        Raises ContractRefusal when they are not base64.
        """
        try:
            return binascii.a2b_base64(self.url.partition(",")[2], strict_mode=True)
        except (binascii.Error, ValueError):
            raise image_refusal(
                self.path, INVALID_URL, "it is not valid base64. Send standard base64 with its padding."
            ) from None


def lifted(messages: list[Json], folder: str) -> tuple[list[Json], tuple[GivenImage, ...]]:
    """The conversation with keys in place of its images, and the images, which will be stored in `folder`."""
    images: list[GivenImage] = []

    def key_of(path: str, url: str) -> str:
        images.append(GivenImage(key=image_key(folder, len(images)), path=path, url=url))
        return images[-1].key

    return with_urls(messages, key_of), tuple(images)


def with_urls(messages: list[Json], url_of: Callable[[str, str], str]) -> list[Json]:
    """The conversation with another URL in each image part: `url_of` gets the part's path and its URL."""
    return [_message(message, f"messages[{index}]", url_of) for index, message in enumerate(messages)]


def image_keys(messages: list[Json]) -> list[str]:
    """What stands in the image parts, in order: in a stored conversation, the keys of its images."""
    return [part["image_url"]["url"] for message in messages for part in _image_parts(message)]


def check_images(images: tuple[GivenImage, ...], limits: ImageLimits) -> None:
    """Check what costs nothing: count, media types, sizes and the form of URLs.

    Raises ContractRefusal naming the part.
    """
    if len(images) > limits.count:
        raise ContractRefusal(
            f"Invalid 'messages': the request has {len(images)} images and may have {limits.count}.",
            param="messages",
            code=TOO_MANY,
        )
    for image in images:
        _check_image(image, limits)


def image_refusal(path: str, code: str, reason: str) -> ContractRefusal:
    """A 400 about the image at `path`."""
    return ContractRefusal(f"Invalid image at '{path}': {reason}", param=path, code=code)


def image_key(folder: str, index: int) -> str:
    """Key of a normalised image in the object store. It holds nothing of the client's (images I1)."""
    return f"{folder}/{index}.jpg"


def shown_bytes(size: int) -> str:
    """A number of bytes for people."""
    return f"{size / 2**20:.3g} MiB" if size >= 2**20 else f"{size} bytes"


def _check_image(image: GivenImage, limits: ImageLimits) -> None:
    if not image.is_data:
        if not limits.remote:
            raise image_refusal(
                image.path, INVALID_URL, "this horde fetches no images. Send it as data:image/...;base64,..."
            )
        parse_remote_url(image.url, image.path, limits.allowed_hosts)
        return
    media_type = image.url[len(_DATA) : image.url.index(_MARKER)].lower()
    if media_type not in MEDIA_TYPES:
        raise image_refusal(image.path, PARSE_ERROR, f"{media_type[:60]} is not supported. Send {FORMATS}.")
    characters = len(image.url) - image.url.index(_MARKER) - len(_MARKER)
    size = characters * 3 // 4 - image.url[-2:].count("=")
    if size > limits.bytes_each:
        raise image_refusal(
            image.path,
            TOO_LARGE,
            f"it has {shown_bytes(size)}, and an image may have {shown_bytes(limits.bytes_each)}.",
        )


def _message(message: Json, path: str, url_of: Callable[[str, str], str]) -> Json:
    if next(_image_parts(message), None) is None:
        return message
    parts = [
        _with_url(part, f"{path}.content[{index}].image_url.url", url_of) if part["type"] == "image_url" else part
        for index, part in enumerate(message["content"])
    ]
    return message | {"content": parts}


def _with_url(part: Mapping[str, Any], path: str, url_of: Callable[[str, str], str]) -> Json:
    image = part["image_url"]
    return {**part, "image_url": image | {"url": url_of(path, image["url"])}}


def _image_parts(message: Mapping[str, Any]) -> Iterator[Json]:
    content = message.get("content")
    if isinstance(content, list):
        yield from (part for part in content if part["type"] == "image_url")
