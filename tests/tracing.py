"""Files of the product that a piece of work runs through: `make trace`, and the test that holds the figures."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import FrameType
from typing import Any

from tests.places import ROOT

LAYERS = ("deploy", "frontend", "incidents", "analyzers", "ingest")


@dataclass(slots=True)
class Stage:
    """The files whose functions a stage called, in the order of the first call. Imports do not count."""

    name: str
    files: dict[str, None] = field(default_factory=dict)
    calls: int = 0


@contextmanager
def traced(name: str) -> Iterator[Stage]:
    """Record the calls of this thread, and of threads that it starts."""
    stage, imports = Stage(name), threading.local()

    def seen(frame: FrameType, event: str, _argument: Any) -> None:
        if event not in ("call", "return"):
            return
        if frame.f_code.co_name == "<module>":
            imports.depth = getattr(imports, "depth", 0) + (1 if event == "call" else -1)
        elif event == "call" and not getattr(imports, "depth", 0) and (file := product_file(frame)):
            stage.files.setdefault(file)
            stage.calls += 1

    threading.setprofile(seen)
    sys.setprofile(seen)
    try:
        yield stage
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def product_file(frame: FrameType) -> str | None:
    return _relative(frame.f_code.co_filename)


@cache
def _relative(name: str) -> str | None:
    if not name.startswith(f"{ROOT}/"):
        return None
    file = name[len(str(ROOT)) + 1 :]
    return file if file.partition("/")[0] in LAYERS else None


def report(title: str, stages: list[Stage]) -> str:
    """The files of each stage in the order of their first call; * marks one that no stage before had."""
    lines = [f"{title}: {len(distinct(stages))} files"]
    known: set[str] = set()
    for stage in stages:
        lines.append(f"  {stage.name}: {len(stage.files)} files, {stage.calls} calls")
        lines += [f"    {' ' if file in known else '*'} {file}" for file in stage.files]
        known |= set(stage.files)
    return "\n".join(lines)


def distinct(stages: list[Stage]) -> set[str]:
    return {file for stage in stages for file in stage.files}
