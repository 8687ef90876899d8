"""What a run was given, for people to look at: the sums of its window, as rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from analyzers.contract import Paths, Sums
from analyzers.runs.models import Run, StoredWindow
from ingest.queries import load_sums


def kept_sums(run: Run) -> dict[str, Sums] | None:
    """By reduction; None where the window is not kept any more, or never was."""
    kept = StoredWindow.objects.filter(pk=run.window_hash).first() if run.window_hash else None
    return None if kept is None else load_sums(bytes(kept.body))


def sums_as_rows(sums: Sums, most: int | None = None) -> tuple[list[str], list[list[Any]]]:
    """Columns and the first `most` rows (None: all): keys, then values; a set of components is one cell."""
    columns = [*sums.keys, *sums.values]
    cells = [_cells(column) for column in (*sums.keys.values(), *sums.values.values())]
    rows = islice(zip(*cells, strict=True), most) if cells else iter(())
    return columns, [list(row) for row in rows]


def _cells(column: Any) -> Iterator[Any]:
    if isinstance(column, Paths):
        return (" ".join(column[row]) for row in range(len(column)))
    return (one.item() if isinstance(one, np.generic) else one for one in column)
