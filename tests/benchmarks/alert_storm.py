"""A storm that is held: one more alert, the inbox, the incident and every read while 30,000 and 100,000 alerts fire.

Beside it Alertmanager with the same alerts, whose `GET /api/v2/alerts/groups` is what its own page reads. The whole
set of processes runs: alerts come through HTTP, become members of an incident, and live updates go on.

    nice python -m tests.benchmarks.alert_storm

With STORM_PICTURES=DIRECTORY the pages are kept as Chromium showed them.
"""

from __future__ import annotations

import http.cookiejar
import json
import os
import shutil
import statistics
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from deploy.embedded import Home
from tests.acceptance.stack import Stack, wait_for
from tests.senders.daemons import ALERTMANAGER, alertmanager, missing

LEVELS = (30_000, 100_000)
BATCH = 500
POSTS, PAGES, GROUPS = 60, 200, 3
PASSWORD = "correct horse battery staple"
Row = dict[str, Any]
Send = Callable[[bytes], None]


def main() -> list[Row]:
    """Rows of name, value, unit, bar and a note. Takes about four minutes on two quiet cores."""
    if told := missing(ALERTMANAGER):
        raise RuntimeError(told)
    with ExitStack() as running:
        home = Home(Path(os.environ.get("DOSSIER_HOME", ".dossier")).absolute() / "bench" / "alert_storm")
        home.forget()
        home.root.mkdir(parents=True)
        running.callback(home.forget)
        stack = Stack(home.root, "up")
        running.callback(stack.said_in.unlink, missing_ok=True)
        running.callback(stack.stop)
        stack.start()
        directory = Path(running.enter_context(tempfile.TemporaryDirectory()))
        # Its own default, five minutes: with less it goes through all of its alerts while ours are measured.
        other = running.enter_context(alertmanager(directory, [{"name": "nobody"}], "5m"))
        return list(_Storm(stack, other).rows())


class _Storm:
    """Dossier and Alertmanager with the same alerts."""

    def __init__(self, stack: Stack, other: str) -> None:
        self.stack, self.other, self.firing = stack, other, 0
        scopes = ("--scope", "alerts", "--scope", "incidents:read")
        self.key = stack.manage("create_key", "storm", *scopes)
        self.end = (datetime.now(UTC) + timedelta(hours=6)).isoformat()
        stack.environment["DJANGO_SUPERUSER_PASSWORD"] = PASSWORD
        stack.manage(
            "createsuperuser", "--noinput", "--username", "alice", "--email", "alice@dossier.example"
        )
        self.browser = _signed_in(stack)

    def rows(self) -> Iterator[Row]:
        for level in LEVELS:
            first, grown = self.firing, level - self.firing
            ours = self._grow(first, level, self._to_dossier)
            began = time.perf_counter()
            wait_for(lambda level=level: self._members() >= level, 600, "the incident")  # type: ignore[misc]
            behind = time.perf_counter() - began
            self.firing = level
            theirs = self._grow(first, level, self._to_alertmanager)
            note = f"{grown / ours:,.0f} alerts/s from one sender, Alertmanager {grown / theirs:,.0f}"
            yield row(f"last of {level:,} alerts accepted to all in their incident", behind, "s", None, note)
            yield from self._reads(level)
        yield from self._pages_in_chromium()
        began = time.perf_counter()
        said = self.stack.manage("rebuild_projections")
        assert "nothing differed" in said, said
        yield row("read models built anew from the log", time.perf_counter() - began, "s", None, said)

    def _grow(self, begin: int, end: int, send: Send) -> float:
        began = time.perf_counter()
        for first in range(begin, end, BATCH):
            send(json.dumps([self._alert(n) for n in range(first, min(first + BATCH, end))]).encode())
        return time.perf_counter() - began

    def _alert(self, number: int) -> dict[str, Any]:
        labels = {
            "alertname": "HostDown",
            "instance": f"h{number}:9100",
            "severity": "critical",
            "job": "node",
        }
        summary = f"h{number} does not answer"
        return {
            "labels": labels,
            "annotations": {"summary": summary, "description": "No answer for five minutes."},
            "endsAt": self.end,
            "generatorURL": "http://prometheus:9090/graph?g0.expr=up",
        }

    def _to_dossier(self, body: bytes) -> None:
        read(f"{self.stack.address}/api/v2/alerts", self.key, body)

    def _to_alertmanager(self, body: bytes) -> None:
        read(f"{self.other}/api/v2/alerts", "", body)

    def _members(self) -> int:
        found = self.stack.get("/api/v1/incidents", self.key)["results"]
        return max((one["alerts"] for one in found), default=0)

    def _reads(self, level: int) -> Iterator[Row]:
        address = self.stack.address
        posts = {
            send: [timed(lambda n=n, send=send: send(self._one_more(level, n))) for n in range(POSTS)]  # type: ignore[misc]
            for send in (self._to_dossier, self._to_alertmanager)
        }
        ours, theirs = (p95(posts[send]) for send in (self._to_dossier, self._to_alertmanager))
        told = f"p95 of {POSTS}; Alertmanager {theirs:.3f} s"
        yield row(f"one more alert while {level:,} fire", ours, "s", "< 1", told)
        groups = [timed(lambda: read(f"{self.other}/api/v2/alerts/groups", "")) for _ in range(GROUPS)]
        whole = statistics.median(groups)
        page = p95([timed(lambda: self.browser(f"{address}/")) for _ in range(PAGES)])
        told = f"p95 {page:.3f} s of the page, {whole:.2f} s all groups of Alertmanager"
        yield row(f"the inbox while {level:,} fire", whole / page, "x", ">= 20", told)
        listed = p95([timed(lambda: read(f"{address}/api/v1/incidents", self.key)) for _ in range(PAGES)])
        told = f"p95 {listed:.3f} s of /api/v1/incidents"
        yield row(f"the list of incidents while {level:,} fire", whole / listed, "x", ">= 20", told)
        for name, path in (
            ("the incident's page", "/incidents/1"),
            ("its last page of alerts", f"/incidents/1?alerts={(level - 1) // 100 * 100}"),
        ):
            took = p95([timed(lambda path=path: self.browser(address + path)) for _ in range(PAGES)])  # type: ignore[misc]
            yield row(f"{name} with {level:,} alerts", took, "s", "< 1", f"p95 of {PAGES}")
        for name, path in (("alerts", "/api/v2/alerts"), ("groups", "/api/v2/alerts/groups")):
            sizes: list[int] = []

            def whole_list(path: str = path, sizes: list[int] = sizes) -> None:
                sizes.append(len(read(address + path, self.key)))

            took = timed(whole_list)
            note = f"{took:.2f} s and {sizes[0] / 1e6:.0f} MB; Alertmanager's groups {whole:.2f} s"
            yield row(f"all {name} as Alertmanager lists them, {level:,}", whole / took, "x", None, note)

    def _one_more(self, level: int, number: int) -> bytes:
        return json.dumps([self._alert(10_000_000 + level + number)]).encode()

    def _pages_in_chromium(self) -> Iterator[Row]:
        program = (
            shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        )
        if program is None:
            return
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=program, args=["--no-sandbox", "--disable-gpu"]
            )
            page = browser.new_page()
            page.goto(f"{self.stack.address}/accounts/login/")
            page.fill("input[name=login]", "alice")
            page.fill("input[name=password]", PASSWORD)
            page.press("input[name=password]", "Enter")
            page.wait_for_url(f"{self.stack.address}/")
            for name, path in (("inbox", "/"), ("ticket", "/incidents/1")):
                took = [timed(lambda path=path: page.goto(self.stack.address + path)) for _ in range(5)]  # type: ignore[misc]
                if pictures := os.environ.get("STORM_PICTURES"):
                    page.screenshot(path=Path(pictures) / f"{name}.png")
                note = f"median of 5 with {LEVELS[-1]:,} alerts, until all is loaded"
                yield row(f"the {name} in Chromium", statistics.median(took), "s", "< 1", note)
            browser.close()


def _signed_in(stack: Stack) -> Callable[[str], bytes]:
    """Reads pages as Alice."""
    jar = http.cookiejar.CookieJar()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    login = f"{stack.address}/accounts/login/"
    opener.open(login).read()
    token = next(cookie.value for cookie in jar if cookie.name == "csrftoken")
    form = {"login": "alice", "password": PASSWORD, "csrfmiddlewaretoken": token}
    with opener.open(urllib.request.Request(login, urllib.parse.urlencode(form).encode())) as answer:
        assert answer.url == f"{stack.address}/", answer.url

    def page(address: str) -> bytes:
        with opener.open(address, timeout=120) as answer:
            assert "/login/" not in answer.url
            return bytes(answer.read())

    return page


def read(address: str, key: str, body: bytes | None = None) -> bytes:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    request = urllib.request.Request(address, body, {**headers, "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as answer:
        return bytes(answer.read())


def timed(do: Callable[[], object]) -> float:
    began = time.perf_counter()
    do()
    return time.perf_counter() - began


def p95(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=20, method="inclusive")[-1]


def row(name: str, value: float, unit: str, bar: str | None, note: str) -> Row:
    return {"name": name, "value": round(value, 3), "unit": unit, "bar": bar, "note": note}


if __name__ == "__main__":
    for one in main():
        bar = f"   (bar {one['bar']})" if one["bar"] else ""
        print(f"{one['name']:<60} {one['value']:>10,} {one['unit']}{bar}  {one['note']}")
