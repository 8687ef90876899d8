"""Real Chromium against real servers: pages under granian, live updates in their process, a real database."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.db import connection, connections
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright
from psycopg2.extensions import cursor as Cursor
from pytest_django import DjangoDbBlocker

from deploy.embedded import Home, stop
from tests.browser.chromium import FLAGS, chromium
from tests.databases.clones import lead_to, transaction
from tests.databases.snapshot import Snapshot
from tests.places import ROOT

PASSWORD = "correct horse battery staple"
START = 180  # seconds
# Playwright keeps an event loop in this thread, which makes Django refuse queries that block nobody here.
ALLOWED = "DJANGO_ALLOW_ASYNC_UNSAFE"
expect.set_options(timeout=20_000)  # a busy machine is slow, and what comes at once is not waited for


def pytest_itemcollected(item: pytest.Item) -> None:
    """Without a browser these tests skip, saying so once; with REQUIRE_BROWSER=1 they fail instead.

    Called for the tests below this directory only.
    """
    item.add_marker("browser")
    if chromium() is None and os.environ.get("REQUIRE_BROWSER") != "1":
        item.add_marker(pytest.mark.skip(reason="no Chromium here; deploy/install-chromium.sh installs it"))


@dataclass
class Console:
    """A running console with its own database."""

    address: str
    events: subprocess.Popen[bytes]
    context: BrowserContext
    problems: list[str] = field(default_factory=list)

    def open(self, path: str) -> Page:
        """A new page of Alice's, who is signed in; what the browser complains about goes to `problems`."""
        page = self.watched(self.context.new_page())
        page.goto(self.address + path)
        return page

    def watched(self, page: Page) -> Page:
        def note(message: ConsoleMessage) -> None:
            if message.type in ("error", "warning"):
                self.problems.append(f"{page.url}: {message.text}")

        page.on("console", note)
        page.on("pageerror", lambda error: self.problems.append(f"{page.url}: {error.stack or error}"))
        return page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = chromium()
    if path is None:
        pytest.fail("REQUIRE_BROWSER=1, but there is no Chromium; deploy/install-chromium.sh installs it")
    with sync_playwright() as playwright:
        chosen = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chosen
        chosen.close()


@pytest.fixture(scope="session")
def shared_database(
    django_db_setup: None,  # noqa: ARG001  the migrated template
    django_db_blocker: DjangoDbBlocker,
    administrator: Cursor,
) -> str:
    """A database of all browser tests of a worker, in which transactions commit: the servers are other processes."""
    template, name = str(settings.DATABASES["default"]["NAME"]), f"b_{uuid.uuid4().hex[:12]}"
    with django_db_blocker.unblock():
        connections.close_all()
        administrator.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY file_copy')
    return name


@pytest.fixture(scope="module")
def database(shared_database: str, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The tests of a module read and write what the servers do."""
    template = connection.settings_dict["NAME"]
    with django_db_blocker.unblock():
        connections.close_all()
        lead_to(shared_database)
        os.environ[ALLOWED] = "true"
        try:
            yield shared_database
        finally:
            del os.environ[ALLOWED]
            connections.close_all()
            connection.settings_dict["NAME"] = template


@pytest.fixture(scope="module")
def signed_in_only(signed_in: BrowserContext, shared_database: str, postgres: Home) -> Snapshot:
    """The database when Alice has signed in, and nothing else has happened."""
    del signed_in
    with transaction(str(postgres.run), shared_database) as cursor:
        return Snapshot(cursor)


@pytest.fixture(autouse=True)
def left_as_found(
    signed_in_only: Snapshot, signed_in: BrowserContext, shared_database: str, postgres: Home
) -> Iterator[None]:
    """No test leaves anything to the next one: no row, no fold of an incident page."""
    yield
    signed_in.clear_cookies(name="folds")
    # Sequences go on: no number is given twice, so that caches of the servers stay right.
    with transaction(str(postgres.run), shared_database) as cursor:
        signed_in_only.restore_rows(cursor)
    lead_to(shared_database)


@pytest.fixture(scope="session")
def served(shared_database: str, postgres: Home, home: Home) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The address of the pages, and the process of live updates."""
    port, events_port = _free_port(), _free_port()
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "deploy.settings",
        "DATABASE_URL": f"postgresql://dossier@/{shared_database}?host={postgres.run}",
        "DOSSIER_HOME": str(home.root),
        "DOSSIER_SECRET_KEY": settings.SECRET_KEY,
        "DOSSIER_LOG_LEVEL": "WARNING",
        "PORT": str(port),
        "DOSSIER_EVENTS_PORT": str(events_port),
    }
    granian = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "granian",
        "--host",
        "127.0.0.1",
        "--no-ws",
        "--workers",
        "1",
        # As `manage.py up` starts it: a worker with a live stream open would wait for its end, ten seconds a module.
        "--workers-kill-timeout",
        "1",
    ]
    commands = [
        [
            *granian,
            "--port",
            str(port),
            "--interface",
            "asginl",
            "tests.browser.pages:application",
        ],
        [*granian, "--port", str(events_port), "--interface", "asgi", "deploy.asgi:application"],
    ]
    said = home.root / "browser-tests.log"
    with said.open("wb") as log:
        web, events = (
            subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
            for command in commands
        )
    try:
        _wait_for(f"http://localhost:{port}/accounts/login/", web, said)
        _wait_for(f"http://localhost:{events_port}/healthz", events, said)
        yield f"http://localhost:{port}", events
    finally:
        for process in (web, events):
            stop(process, number=signal.SIGTERM, patience=10)


@pytest.fixture(scope="module")
def signed_in(
    database: str,  # noqa: ARG001
    served: tuple[str, subprocess.Popen[bytes]],
    browser: Browser,
    shared_database: str,
    postgres: Home,
) -> Iterator[BrowserContext]:
    """Alice's browser profile, after she has signed in by the form."""
    address, _ = served
    with transaction(str(postgres.run), shared_database) as cursor:
        before = Snapshot(cursor)
    for name in ("alice", "bob"):
        hashed = PBKDF2PasswordHasher().encode(PASSWORD, "salt", 1000)
        get_user_model().objects.update_or_create(
            username=name, defaults={"password": hashed, "is_staff": name == "alice"}
        )
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    page = context.new_page()
    sign_in(page, address, PASSWORD)
    page.wait_for_url(f"{address}/")
    page.close()
    yield context
    context.close()
    with transaction(str(postgres.run), shared_database) as cursor:
        before.restore_rows(cursor)
    # Beside Playwright's event loop Django keeps connections of its own; none may outlive the database.
    connections.close_all()


@pytest.fixture
def console(served: tuple[str, subprocess.Popen[bytes]], signed_in: BrowserContext) -> Iterator[Console]:
    """The console of this module; fails the test when the browser logged an error or a policy violation."""
    address, events = served
    one = Console(address, events, signed_in)
    yield one
    for page in signed_in.pages:
        page.close()
    assert one.problems == []


def sign_in(page: Page, address: str, password: str) -> None:
    page.goto(f"{address}/accounts/login/")
    page.get_by_label("User name").fill("alice")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START
    while True:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, OSError) as error:
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"{address} does not answer: {error}\n{log.read_text()[-3000:]}")
            time.sleep(0.1)
