"""The program that decodes images: a process of its own, with limits, that may die (images I4).

    python -m app.adapters.decoder_child MEMORY_BYTES CPU_SECONDS MAX_PIXELS LONGEST_SIDE

It reads images from standard input and answers on standard output, as `decoder_protocol` says.
No other module imports Pillow.
"""

import resource
import struct
import sys
from io import BytesIO
from typing import BinaryIO

from PIL import Image, ImageFile, UnidentifiedImageError

from app.adapters.decoder_protocol import BAD_SHAPE, BROKEN, JPEG, LENGTH, TOO_LARGE
from config.orphans import end_with_parent

FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
QUALITY = 90
MOST_STRETCHED = 200
"""Longest side over shortest. Vision encoders refuse what is narrower."""

_ORIENTATION = 0x0112
_TURNS = {
    2: (Image.Transpose.FLIP_LEFT_RIGHT,),
    3: (Image.Transpose.ROTATE_180,),
    4: (Image.Transpose.FLIP_TOP_BOTTOM,),
    5: (Image.Transpose.TRANSPOSE,),
    6: (Image.Transpose.ROTATE_270,),
    7: (Image.Transpose.TRANSVERSE,),
    8: (Image.Transpose.ROTATE_90,),
}
_FOREIGN = (
    (b"ftypheic", 4, "HEIC"),
    (b"ftypheix", 4, "HEIC"),
    (b"ftypmif1", 4, "HEIF"),
    (b"ftypavif", 4, "AVIF"),
    (b"<svg", 0, "SVG"),
    (b"<?xml", 0, "XML or SVG"),
    (b"%!PS", 0, "EPS"),
    (b"%PDF", 0, "PDF"),
    (b"II*\x00", 0, "TIFF"),
    (b"MM\x00*", 0, "TIFF"),
    (b"BM", 0, "BMP"),
)


class Unusable(Exception):
    """An image that is refused: the answer's first byte, and why."""

    def __init__(self, kind: bytes, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason


def normalised(data: bytes, *, max_pixels: int, longest_side: int) -> bytes:
    """Return the image as a JPEG without metadata, turned upright, flat, and not larger than the limits.

    Only the first frame counts. Raises Unusable, or what Pillow raises for broken data.
    """
    with _opened(data) as image:
        width, height = image.size
        if width * height > max_pixels:
            raise Unusable(
                TOO_LARGE,
                f"it has {width} x {height} pixels, and an image may have {max_pixels / 1e6:g} million.",
            )
        if max(width, height) > MOST_STRETCHED * min(width, height):
            raise Unusable(BAD_SHAPE, f"{width} x {height} pixels is too narrow for a model.")
        turns = _TURNS.get(_orientation(image), ())
        # Of a large JPEG, only as many coefficients are decoded as its smaller copy needs.
        image.draft(None, (2 * longest_side, 2 * longest_side))
        image.load()
        flat = _flattened(image)
        flat.thumbnail((longest_side, longest_side), Image.Resampling.BICUBIC, reducing_gap=2.0)
        for turn in turns:
            flat = flat.transpose(turn)
        out = BytesIO()
        # What an image brought with it (comments, EXIF, profiles) stays behind.
        flat.info.clear()
        flat.save(out, "JPEG", quality=QUALITY)
    return out.getvalue()


def _opened(data: bytes) -> ImageFile.ImageFile:
    if not data:
        raise Unusable(BROKEN, "it is empty.")
    try:
        return Image.open(BytesIO(data), formats=FORMATS)
    except UnidentifiedImageError:
        raise Unusable(BROKEN, f"{_kind_of(data)}. Send PNG, JPEG, WebP or GIF.") from None


def _kind_of(data: bytes) -> str:
    start = data[:64].lstrip()
    for magic, offset, name in _FOREIGN:
        if start[offset : offset + len(magic)] == magic:
            return f"{name} is not supported"
    return "its bytes are no image of a supported format, or damaged"


def _orientation(image: Image.Image) -> int:
    """Return the EXIF orientation; 1 for an image whose EXIF data cannot be read."""
    try:
        return int(image.getexif().get(_ORIENTATION, 1))
    except (SyntaxError, ValueError, TypeError, OSError, struct.error, OverflowError, KeyError, IndexError):
        return 1


def _flattened(image: Image.Image) -> Image.Image:
    """Return the image in RGB or grey, what is transparent in white."""
    if image.has_transparency_data:
        layered = image.convert("RGBA")
        flat = Image.new("RGB", layered.size, "white")
        flat.paste(layered, mask=layered.getchannel("A"))
        return flat
    if image.mode.startswith("I;16"):
        return _upper_bytes(image)
    return image if image.mode in {"L", "RGB"} else image.convert("RGB")


def _upper_bytes(image: Image.Image) -> Image.Image:
    """Return the upper eight of the sixteen bits of each grey value."""
    return Image.frombytes("L", image.size, image.tobytes()[0 if image.mode == "I;16B" else 1 :: 2])


def answer_to(data: bytes, *, max_pixels: int, longest_side: int) -> bytes:
    """Return the answer to one job: whatever is wrong with an image is an answer, too."""
    try:
        return JPEG + normalised(data, max_pixels=max_pixels, longest_side=longest_side)
    except Unusable as error:
        return error.kind + error.reason.encode()
    except MemoryError:
        return TOO_LARGE + b"decoding it takes more memory than an image may use."
    except Exception:  # noqa: BLE001 - Pillow raises nearly anything for hostile bytes, and each means the same
        return BROKEN + b"it is damaged, cut off, or not what it says it is."


def serve(source: BinaryIO, target: BinaryIO, *, cpu_seconds: int, max_pixels: int, longest_side: int) -> None:
    """Answer jobs until the input ends. One that takes too much processor time ends the process."""
    while header := source.read(LENGTH.size):
        data = source.read(LENGTH.unpack(header)[0])
        _limit_processor_time(cpu_seconds)
        answer = answer_to(data, max_pixels=max_pixels, longest_side=longest_side)
        del data
        target.write(LENGTH.pack(len(answer)) + answer)
        target.flush()


def _limit_processor_time(seconds: int) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + seconds + 1, hard))


def main() -> None:
    """Limit this process, then serve."""
    memory, cpu_seconds, max_pixels, longest_side = (int(word) for word in sys.argv[1:5])
    end_with_parent()
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # The limit on pixels is ours, and checked before anything is decoded.
    Image.MAX_IMAGE_PIXELS = None
    Image.preinit()
    serve(
        sys.stdin.buffer, sys.stdout.buffer, cpu_seconds=cpu_seconds, max_pixels=max_pixels, longest_side=longest_side
    )


if __name__ == "__main__":
    main()
