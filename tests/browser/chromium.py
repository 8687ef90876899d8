"""The system's Chromium, as tests, benchmarks and pictures start it."""

from __future__ import annotations

import shutil

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first that is installed. The shell is the same engine without windows, and needs two thirds of the time."""


def chromium() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)
