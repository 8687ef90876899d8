"""Seals noted outside of the database: one line of JSON each in a file, the newest last.

Whoever can rewrite the whole log, seals included, cannot rewrite what stands elsewhere. So `verify_log` demands the
newest seal that was noted. A line may hold a timestamp of its seal (`ingest.log.timestamps`).
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path

from ingest.db import database
from ingest.log.types import Event


def text_of(seal: Event) -> str:
    """`log@7:HASH`, as `verify_log --expect` takes it."""
    return f"{seal.stream}@{seal.version}:{seal.hash.hex()}"


def note(file: Path, seal: str, timestamp: bytes | None = None) -> None:
    """Append the seal, in the words of `text_of`, to the file, on disk when this returns. Raises OSError."""
    line = {"noted_at": database.now().isoformat(timespec="seconds"), "seal": seal}
    if timestamp is not None:
        line["timestamp"] = base64.b64encode(timestamp).decode()
    with file.open("a") as out:
        out.write(json.dumps(line) + "\n")
        out.flush()
        os.fsync(out.fileno())


def newest(file: Path) -> str | None:
    """The seal noted last, None where there is none. A line that was cut by a crash is passed over."""
    return next((seal for seal, _ in reversed(list(lines(file)))), None)


def timestamped(file: Path) -> list[tuple[str, bytes]]:
    """The seals that an authority gave a timestamp, and its answers, the newest last."""
    return [(seal, answer) for seal, answer in lines(file) if answer is not None]


def lines(file: Path) -> Iterator[tuple[str, bytes | None]]:
    try:
        texts = file.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return
    for text in texts:
        try:
            line = json.loads(text)
            answer = line.get("timestamp")
            yield str(line["seal"]), None if answer is None else base64.b64decode(answer)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
