"""Seals noted outside of the database: one line of JSON each in a file, the newest last.

Whoever can rewrite the whole log, seals included, cannot rewrite what stands elsewhere. So `verify_log` demands the
newest seal that was noted.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ingest.log import clock
from ingest.log.types import Event


def text_of(seal: Event) -> str:
    """`log@7:HASH`, as `verify_log --expect` takes it."""
    return f"{seal.stream}@{seal.version}:{seal.hash.hex()}"


def note(file: Path, seal: Event) -> dict[str, Any]:
    """Append the seal to the file, on disk when this returns; the line. Raises OSError."""
    line = {"noted_at": clock.now().isoformat(timespec="seconds"), "seal": text_of(seal)}
    with file.open("a") as out:
        out.write(json.dumps(line) + "\n")
        out.flush()
        os.fsync(out.fileno())
    return line


def newest(file: Path) -> str | None:
    """The seal noted last, None where there is none. A line that was cut by a crash is passed over."""
    try:
        lines = file.read_text().splitlines()
    except FileNotFoundError:
        return None
    for line in reversed(lines):
        try:
            return str(json.loads(line)["seal"])
        except (ValueError, KeyError, TypeError):
            continue
    return None
