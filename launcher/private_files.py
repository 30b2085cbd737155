"""Files that only their owner may read."""

import os
from pathlib import Path

import orjson


def write_private_json(path: Path, content: object) -> None:
    """Replace a file with this JSON, whole or not at all, readable by its owner only."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
