"""The chart library as one file of our own origin: Vega, Vega-Lite and vega-embed, bundled by vl-convert.

Third-party code is installed, never copied in: the wheel holds it, a child process bundles it once per
version (about five seconds) and the file is kept under DOSSIER_HOME. Its name carries the version, so
browsers may keep it for ever. vega-embed brings the expression interpreter that a page without `eval` needs.
"""

from __future__ import annotations

import fcntl
import gzip
import os
import subprocess
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path

from django.conf import settings

_BUNDLE = "import sys, vl_convert; sys.stdout.write(vl_convert.javascript_bundle())"
PATIENCE = 60  # seconds


class ChartBundleError(RuntimeError):
    """The bundle could not be made; pages show the charts' data as tables."""


@cache
def bundle_name() -> str:
    return f"vega-{version('vl-convert-python')}.js"


def bundle() -> Path:
    """The bundle, gzipped; made when it is not there. Processes that ask meanwhile wait for it."""
    cached: Path = settings.HOME.root / "charts" / f"{bundle_name()}.gz"
    if cached.exists():
        return cached
    cached.parent.mkdir(parents=True, exist_ok=True)
    with (cached.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not cached.exists():
            _make(cached)
    return cached


def _make(cached: Path) -> None:
    # In a child: the bundler brings a JavaScript engine whose memory would stay with a server process.
    made = subprocess.run([sys.executable, "-c", _BUNDLE], capture_output=True, timeout=PATIENCE, check=False)
    if made.returncode or len(made.stdout) < 100_000:
        raise ChartBundleError(made.stderr.decode(errors="replace")[-2000:])
    part = cached.with_suffix(f".{os.getpid()}")
    part.write_bytes(gzip.compress(made.stdout, mtime=0))
    part.replace(cached)
