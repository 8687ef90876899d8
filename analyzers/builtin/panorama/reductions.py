"""The reduction of panorama: how often each observer reported each status of a subject, by second."""

from __future__ import annotations

from datetime import timedelta

from analyzers.contract import Count, Input, Reduction

SLICE = timedelta(seconds=1)

INPUT = Input(
    "observation",
    (
        Reduction(
            "seen",
            kind="observation",
            group_by=("observer", "subject", "context", "status"),
            aggregates={"times": Count()},
            slice=SLICE,
        ),
    ),
)
