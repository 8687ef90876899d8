"""The part of `console` with servers and browsers: what Chromium says of each page, and 200 open consoles."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.acceptance.stack import free_port, wait_for
from tests.benchmarks.apart import Row
from tests.benchmarks.console import CHANGES, LOADS, PASSWORD, PEOPLE, REAL, WATCHERS
from tests.browser.chromium import FLAGS, chromium
from tests.places import ROOT

# Largest paint in ms, ms that tasks of more than 50 ms took beyond these, and the sum of layout shifts.
VITALS = """
() => new Promise((done) => {
  const seen = { paint: 0, blocked: 0, shift: 0 };
  const watch = (type, add) =>
    new PerformanceObserver((list) => list.getEntries().forEach(add)).observe({ type, buffered: true });
  watch("largest-contentful-paint", (one) => { seen.paint = one.startTime; });
  watch("longtask", (one) => { seen.blocked += Math.max(0, one.duration - 50); });
  watch("layout-shift", (one) => { if (!one.hadRecentInput) seen.shift += one.value; });
  setTimeout(() => done(seen), 1500);
})
"""
# When the row of an incident says that it is acknowledged, in ms since the epoch.
SHOWN = """
(id) => new Promise((done) => {
  const look = () => {
    const row = document.querySelector(`tr[data-id="${id}"]`);
    if (!row || row.matches(".acknowledged")) { observer.disconnect(); requestAnimationFrame(() => done(Date.now())); }
  };
  const observer = new MutationObserver(look);
  observer.observe(document.body, { subtree: true, childList: true, attributes: true });
  look();
})
"""


def browser_rows(ticket: int) -> list[Row]:
    """Rows of figures; none, said so, without a Chromium."""
    program = chromium()
    if program is None:
        return [{"name": "in a browser", "value": 0, "unit": "", "bar": None, "note": "no Chromium here"}]
    with _served() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        context, *others = [_signed_in(browser, address, name) for name in PEOPLE]
        pages = {"inbox": "/", "search": "/?q=t77", "ticket": f"/incidents/{ticket}"}
        rows = [row for name, path in pages.items() for row in _vitals(context, name, address + path)]
        rows += _watched(context, others, address)
        browser.close()
        return rows


@contextmanager
def _served() -> Iterator[str]:
    """Pages and live updates in processes as `manage.py up` starts them; the address of the pages."""
    port = free_port()
    environment = {**os.environ, "PORT": str(port), "DOSSIER_EVENTS_PORT": str(port + 1)}
    granian = [sys.executable, "-W", "ignore", "-m", "granian", "--host", "127.0.0.1", "--no-ws"]
    granian += ["--workers-kill-timeout", "1"]  # else streams that are open keep it from ending
    web = ["--port", str(port), "--interface", "asginl", "--workers", "2"]
    events = ["--port", str(port + 1), "--interface", "asgi", "--workers", "1"]
    commands = [
        [*granian, *web, "deploy.web:application"],
        [*granian, *events, "deploy.asgi:application"],
    ]
    # What they say goes where this process complains; what it writes itself is read as the figures.
    started = [
        subprocess.Popen(one, cwd=ROOT, env=environment, stdout=sys.stderr, stderr=sys.stderr)
        for one in commands
    ]
    try:
        address = f"http://localhost:{port}"
        wait_for(lambda: _answers(f"{address}/accounts/login/"), 120, "pages")
        wait_for(lambda: _answers(f"http://localhost:{port + 1}/healthz"), 120, "live updates")
        yield address
    finally:
        for process in started:
            process.terminate()
            process.wait(20)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=2):
            return True
    except OSError:
        return False


def _signed_in(browser: Browser, address: str, name: str) -> BrowserContext:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto(f"{address}/accounts/login/")
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{address}/")
    page.close()
    return context


def _vitals(context: BrowserContext, name: str, address: str) -> Iterator[Row]:
    seen: dict[str, list[float]] = {"paint": [], "blocked": [], "shift": []}
    for _ in range(LOADS):
        page = context.new_page()
        page.goto(address)
        for what, value in page.evaluate(VITALS).items():
            seen[what].append(value)
        page.close()
    words = {"paint": ("largest paint", "ms"), "blocked": ("blocked", "ms"), "shift": ("layout shift", "")}
    for what, values in seen.items():
        note = f"median of {LOADS}, {min(values):.3g} to {max(values):.3g}; files of the console in the cache"
        yield {
            "name": f"{name} in Chromium: {words[what][0]}",
            "value": round(statistics.median(values), 4),
            "unit": words[what][1],
            "bar": "<= 0.1" if what == "shift" else None,
            "note": note,
        }


BUSY = 6
"""Times that a console asks for what a busy server puts off."""


# Many open consoles
# ----------------------------------------------------------------------------------------------------------
@dataclass
class Watcher(threading.Thread):
    """A console without a screen: listens, and on a change asks for its news; when each answer was there.

    Where the server is busy it asks again when it was told to, as the console does."""

    address: str
    cookie: str
    after: str
    ready: threading.Event = field(default_factory=threading.Event)
    fetched: list[float] = field(default_factory=list)
    again: int = 0

    def __post_init__(self) -> None:
        super().__init__(daemon=True)

    __hash__ = threading.Thread.__hash__

    def run(self) -> None:
        live = json.loads(self._get("/live"))
        place = urlsplit(live["url"])
        stream = http.client.HTTPConnection(str(place.hostname), place.port, timeout=120)
        stream.request("GET", f"{place.path}?{urlencode({'token': live['token'], 'after': self.after})}")
        answer = stream.getresponse()
        assert answer.status == 200, answer.read()
        self.ready.set()
        for line in answer:
            if line.startswith(b"data: ") and (changed := json.loads(line[6:]).get("id")):
                time.sleep(0.15)  # as the console gathers
                self._get(f"/inbox/rows?row={changed}")
                self.fetched.append(time.time())

    def _get(self, path: str) -> bytes:
        request = urllib.request.Request(self.address + path, headers={"Cookie": self.cookie})
        for _ in range(BUSY):
            try:
                with urllib.request.urlopen(request, timeout=60) as response:
                    return bytes(response.read())
            except urllib.error.HTTPError as refused:
                if refused.code != 503:
                    raise
                self.again += 1
                time.sleep(float(refused.headers["Retry-After"]) * (1 + random.random()))
        raise AssertionError(f"{path} was refused {BUSY} times")


def _watched(context: BrowserContext, others: Sequence[BrowserContext], address: str) -> list[Row]:
    from incidents import commands
    from ingest.queries import Context, watermark

    cookies = [
        "; ".join(f"{one.get('name')}={one.get('value')}" for one in each.cookies()) for each in others
    ]
    opened = [
        commands.open_incident(
            commands.Report(f"Watched {turn}", severity="critical", component=f"tor/watched-{turn}"),
            Context("key:monitoring"),
        )
        for turn in range(CHANGES)
    ]
    watchers = [
        Watcher(address, cookie, str(watermark()))
        for _, cookie in zip(range(WATCHERS - REAL), itertools.cycle(cookies), strict=False)
    ]
    for one in watchers:
        one.start()
    for one in watchers:
        assert one.ready.wait(60), "a console did not connect"
    pages = [_listening(context, address) for _ in range(REAL)]
    took: list[float] = []
    lag: list[float] = []
    for id_ in [one.incident.id for one in opened]:
        waiting = [page.evaluate_handle(f"({{ shown: ({SHOWN})('{id_}') }})") for page in pages]
        before = [len(one.fetched) for one in watchers]
        commands.acknowledge(id_, Context("user:bob"))
        committed = time.time()
        took += [float(one.evaluate("(it) => it.shown")) / 1000 - committed for one in waiting]
        wait_for(
            lambda before=before: all(len(one.fetched) > n for one, n in zip(watchers, before, strict=True)),  # type: ignore[misc]
            60,
            "every console",
        )
        lag.append(max(one.fetched[-1] for one in watchers) - committed)
    put_off = f"; {sum(one.again for one in watchers)} answers put off by a busy server"
    return [
        _figure("pixels", took, f"from the commit, of {REAL} in Chromium beside {WATCHERS - REAL} others"),
        _figure("the last of all has its answer", lag, f"of {WATCHERS - REAL}, {CHANGES} changes{put_off}"),
    ]


def _listening(context: BrowserContext, address: str) -> Page:
    page = context.new_page()
    page.goto(address)
    page.locator(".live[data-state=live]").wait_for(timeout=60_000)
    return page


def _figure(what: str, values: list[float], note: str) -> Row:
    words = f"median; longest {max(values):.2f} s; {note}"
    return {
        "name": f"{WATCHERS} open consoles: {what}",
        "value": round(statistics.median(values), 3),
        "unit": "s",
        "bar": None,
        "note": words,
    }
