"""What the decoder and its parent say to each other: a length of four bytes, then so many bytes."""

import struct

LENGTH = struct.Struct(">I")

JPEG, TOO_LARGE, BAD_SHAPE, BROKEN = b"J", b"L", b"S", b"P"
"""First byte of an answer: before a JPEG, or before the sentence that says what is wrong with the image."""
