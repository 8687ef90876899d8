"""From the last failing row accepted by the endpoint to the incident on the screen, on the real set of processes.

Ten times a ToR of the demo's region stops. Its failures go through the public endpoint, then one confirmed placement
whose time ends the window; the clock starts when the failures are acknowledged. It stops when the incident API shows
the incident, and when a browser with the inbox open has announced it, was asked to show it and does (where there is a
Chromium).

    python -m tests.benchmarks.visible
"""

from __future__ import annotations

import os
import shutil
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page, sync_playwright

from analyzers.simulators.region import stamp, unit_name
from deploy.demo.sender import Sender
from deploy.demo.world import Demo
from deploy.embedded import Home
from tests.acceptance.stack import Stack

TRIALS = 10
BEGIN = 240  # minute of the demo's world after all stories, from which on it is healthy
HEALTHY = 120  # minutes before the first trial
CATCH_UP = 15  # seconds for the windows of the healthy time
APART = 10  # minutes of data time between two trials: two windows
PATIENCE = 60.0  # seconds
PASSWORD = "correct horse battery staple"


def main() -> list[dict[str, Any]]:
    """Rows of name, value, unit, bar and note. Takes about two minutes."""
    home = Home(Path(os.environ.get("DOSSIER_HOME", ".dossier")).absolute() / "bench" / "visible")
    home.forget()
    home.root.mkdir(parents=True)
    stack = Stack(home.root, "up")
    try:
        stack.start()
        return _measure(stack)
    finally:
        stack.stop()
        home.forget()
        stack.said_in.unlink(missing_ok=True)


def _measure(stack: Stack) -> list[dict[str, Any]]:
    key = stack.manage("create_key", "bench", "--scope", "telemetry", "--scope", "incidents:read")
    sender = Sender(stack.address, key.split()[-1], threading.Event())
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    demo = Demo(now - timedelta(minutes=BEGIN + HEALTHY + APART * (TRIALS + 1)))
    for batch in [
        *demo.inventory(),
        *(batch for n in range(BEGIN, BEGIN + HEALTHY) for batch in demo.minute(n)),
    ]:
        sender.post_rows(batch.kind, batch.rows, batch.name)
    time.sleep(CATCH_UP)
    with _browser(stack) as page:
        took = [_trial(sender, demo, n, tor, page) for n, tor in enumerate(_busiest(demo))]
    rows = [_row("last failing row accepted to incident in the API", [api for api, _ in took])]
    seen = [shown for _, shown in took if shown is not None]
    return rows + ([_row("last failing row accepted to incident in a browser", seen)] if seen else [])


def _busiest(demo: Demo) -> list[str]:
    tors = demo.fleet.of_kind("tor")
    return sorted(tors, key=lambda tor: -int(demo.fleet.carries(tor).sum()))[:TRIALS]


def _trial(sender: Sender, demo: Demo, trial: int, tor: str, page: Page | None) -> tuple[float, float | None]:
    """Seconds until the API and until the browser shows the incident of `tor`."""
    minute = BEGIN + HEALTHY + APART * trial
    units = np.flatnonzero(demo.fleet.carries(tor))
    moments = np.linspace(minute + 0.5, minute + 4.5, len(units))
    failures = [
        {"time": stamp(demo.start, at), "unit": unit_name(unit), "symptom": "lost"}
        for at, unit in zip(moments.tolist(), units.tolist(), strict=True)
    ]
    sender.post_rows("unit_failure", failures, f"failures-{trial}")
    began = time.perf_counter()
    _pass_time(sender, demo, minute + 5.6)
    api: list[float] = []
    asking = threading.Thread(target=_ask, args=(sender, tor, began, api))
    asking.start()
    shown = None
    if page is not None:
        page.locator(".arrivals button").click(
            timeout=PATIENCE * 1000
        )  # what arrives is announced, no row jumps
        page.get_by_text(tor).first.wait_for(timeout=PATIENCE * 1000)
        shown = time.perf_counter() - began
    asking.join()
    _pass_time(sender, demo, minute + 10)
    time.sleep(2)
    return api[0], shown


def _pass_time(sender: Sender, demo: Demo, minute: float) -> None:
    """Confirm a placement at that minute: the data clock of the region goes on."""
    row = {**demo.world.placement[0], "time": stamp(demo.start, minute)}
    sender.post_rows("placement", [row], f"time-{minute}")


def _ask(sender: Sender, tor: str, began: float, took: list[float]) -> None:
    while time.perf_counter() - began < PATIENCE:
        if any(ticket["component"] == tor for ticket in sender.get("/api/v1/incidents")["results"]):
            break
        time.sleep(0.05)
    took.append(time.perf_counter() - began)


@contextmanager
def _browser(stack: Stack) -> Iterator[Page | None]:
    """The inbox in a browser, logged in; None without a Chromium."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        yield None
        return
    stack.environment["DJANGO_SUPERUSER_PASSWORD"] = PASSWORD
    stack.manage("createsuperuser", "--noinput", "--username", "alice", "--email", "alice@dossier.example")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.goto(f"{stack.address}/accounts/login/")
        page.fill("input[name=login]", "alice")
        page.fill("input[name=password]", PASSWORD)
        page.press("input[name=password]", "Enter")
        page.wait_for_url(f"{stack.address}/")
        yield page
        browser.close()


def _row(name: str, seconds: list[float]) -> dict[str, Any]:
    note = f"median of {len(seconds)}; {min(seconds):.2f} to {max(seconds):.2f} s"
    return {
        "name": name,
        "value": round(statistics.median(seconds), 3),
        "unit": "s",
        "bar": "<= 10",
        "note": note,
    }


if __name__ == "__main__":
    for row in main():
        print(row)
