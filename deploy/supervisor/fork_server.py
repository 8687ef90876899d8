"""Preparation of a process before it imports the code of its forks."""

from __future__ import annotations

import os
from contextlib import suppress

from django.conf import settings

from deploy import privileges


def prepare() -> None:
    """Have counters of all processes meet in files, and numeric libraries start no threads.

    From here on root touches nothing in a home that is another user's. Raises PrivilegeError.
    """
    privileges.act_as_owner(settings.HOME.root)
    metrics = settings.HOME.root / "metrics"
    with suppress(OSError):  # said when the home is claimed
        metrics.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(metrics)
    # There is about one process a core; pools of threads in each would only get in each other's way.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")
