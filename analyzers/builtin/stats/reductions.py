"""The reduction that `onset.spans` reads."""

from __future__ import annotations

from datetime import timedelta

from analyzers.contract import Reduction, Sum

SLICE = timedelta(seconds=30)


def over_time(kind: str, *group_by: str, failures: str) -> Reduction:
    """What failed on each path and when, for `spans`; one of `group_by` holds the paths."""
    return Reduction("over_time", kind, group_by, {"failures": Sum(failures)}, slice=SLICE, where=failures)
