"""Image files for tests, made on the spot: good ones of every kind, and hostile ones."""

import base64
import struct
import zlib
from io import BytesIO
from typing import Any

from PIL import Image, PngImagePlugin

RED, GREEN, BLUE, WHITE = (220, 20, 20), (20, 200, 20), (20, 20, 220), (255, 255, 255)


def picture(kind: str = "PNG", size: tuple[int, int] = (64, 48), mode: str = "RGB", **options: Any) -> bytes:
    """A file whose upper half is red and whose lower half is blue."""
    image = Image.new("RGB", size, RED)
    image.paste(BLUE, (0, size[1] // 2, size[0], size[1]))
    return saved(image if mode == "RGB" else image.convert(mode), kind, **options)


def saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    """An image as a file of this kind."""
    out = BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def noise(size: tuple[int, int], kind: str = "JPEG", **options: Any) -> bytes:
    """A file with as much detail as a photograph has."""
    return saved(Image.effect_noise(size, 60).convert("RGB"), kind, **options)


def half_transparent() -> bytes:
    """A PNG whose upper half is red and whose lower half is transparent."""
    image = Image.new("RGBA", (64, 48), (0, 0, 0, 0))
    image.paste((*RED, 255), (0, 0, 64, 24))
    return saved(image, "PNG")


def rotated() -> bytes:
    """A JPEG that says in its EXIF data that it has to be turned: upright, red is on the right."""
    image = Image.open(BytesIO(picture(size=(64, 32))))
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010F] = "a camera's maker"
    return saved(image, "JPEG", exif=exif)


def animated(frames: int = 3, size: tuple[int, int] = (40, 40)) -> bytes:
    """A GIF whose first frame is red and whose others are not."""
    first, *rest = [Image.new("RGB", size, RED if number == 0 else BLUE) for number in range(frames)]
    return saved(first, "GIF", save_all=True, append_images=rest)


def grey_16_bits() -> bytes:
    """A PNG with 16 bits a pixel, from black to white."""
    image = Image.frombytes("I;16", (256, 16), b"".join(struct.pack("<H", x * 257) for x in range(256)) * 16)
    return saved(image, "PNG")


def with_comment(text: str) -> bytes:
    """A PNG with a text chunk."""
    comments = PngImagePlugin.PngInfo()
    comments.add_text("Comment", text)
    return picture("PNG", pnginfo=comments)


def png_of(width: int, height: int) -> bytes:
    """A tiny PNG file, one bit a pixel, of any size."""
    row = b"\x00" + bytes((width + 7) // 8)
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def zip_bomb_chunk() -> bytes:
    """A PNG whose compressed text chunk unpacks to 200 MB."""
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(bytes(2**20)) for _ in range(200)) + packer.flush()
    return _with_chunk(picture("PNG"), _chunk(b"zTXt", b"Comment\x00\x00" + packed))


def data_url(data: bytes, media_type: str = "image/png") -> str:
    """A file as a data URL."""
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def image_part(url: str) -> dict[str, Any]:
    """A part of a message."""
    return {"type": "image_url", "image_url": {"url": url}}


def opened(jpeg: bytes) -> Image.Image:
    """The image in a file."""
    return Image.open(BytesIO(jpeg))


def is_near(pixel: Any, colour: tuple[int, int, int], most: int = 40) -> bool:
    """Whether a pixel has nearly this colour: JPEG changes it a little."""
    given = pixel if isinstance(pixel, tuple) else (pixel,) * 3
    return all(abs(one - other) <= most for one, other in zip(given, colour, strict=True))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _with_chunk(png: bytes, chunk: bytes) -> bytes:
    """A PNG with one more chunk after its header."""
    return png[:33] + chunk + png[33:]
