"""Real servers for the tests: one embedded Postgres and one broker per worker process, started when first needed."""

from __future__ import annotations

import gc
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import takewhile
from typing import Final

import psycopg2
import pytest
from django.conf import settings
from django.db import connections
from django.test.utils import setup_databases
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from psycopg2.extensions import cursor as Cursor
from pytest_django import DjangoDbBlocker

from deploy.embedded import Home, start_broker, start_postgres, stop
from tests.databases.clones import Databases
from tests.settings import HOME_OF_TESTS

# No test fails because the machine is busy: how long an example takes is not what properties are about.
# The same dozen examples every time: a change is judged by what it changed. `make soak` looks for new ones, and
# `make check` takes the first three.
hypothesis_settings.register_profile(
    "dossier", deadline=None, max_examples=12, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.register_profile(
    "brief", deadline=None, max_examples=3, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.register_profile(
    "explore", deadline=None, max_examples=400, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.load_profile("dossier")


# Its tests run as those of the package that it is an example of: tests/integration/analyzers/test_plugins.py.
collect_ignore = ["plugins"]


def pytest_configure() -> None:
    """Hardly anything that a collection makes is garbage, and looking for it takes a sixth of the time."""
    gc.disable()


OF_DJANGO: Final = frozenset({
    "_dj_autoclear_mailbox",
    "_django_clear_site_cache",
    "_django_db_marker",
    "_django_isolate_apps",
    "_django_set_urlconf",
    "_django_setup_unittest",
    "_fail_for_invalid_template_variable",
    "_live_server_helper",
    "_template_string_if_invalid_marker",
})  # fmt: skip
"""Fixtures that pytest-django puts around every test. Those without database, mail and marks need none of them, and
they take as long as the median unit test. The database stays blocked all the same, the settings stay those of tests.
"""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Unit tests last, of them the simulated worlds first: what workers take up at the end is short, so that they end
    together. The rest stays shuffled: files that wait for processes and browsers beside files that compute.
    """

    def turn(item: pytest.Item) -> int:
        if "unit" not in item.path.parts:
            return 0
        return 1 if item.get_closest_marker("simulated") else 2

    items.sort(key=turn)
    for item in items:
        if isinstance(item, pytest.Function) and {"unit", "architecture"} & {*item.path.parts}:
            item.fixturenames = [name for name in item.fixturenames if name not in OF_DJANGO]


def pytest_collection_finish() -> None:
    """Imported modules stay: the collector of garbage need not walk over them in every test, nor look for more after
    every 700 objects.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


_ran: dict[str, list[str]] = {}  # the files of each worker, in the order in which they ran


def _files(report: pytest.TestReport) -> list[str]:
    return _ran.setdefault(getattr(report, "worker_id", "main"), [])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    files, file = _files(report), report.nodeid.partition("::")[0]
    if file not in files:
        files.append(file)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say in one line when the browser tests were left out, and with what each failure comes again: a browser test
    with those that ran before it, because they share a database.
    """
    again = set()
    for report in terminalreporter.stats.get("failed", []) + terminalreporter.stats.get("error", []):
        files, file = _files(report), report.nodeid.partition("::")[0]
        before = takewhile(file.__ne__, files if "/browser/" in file else [])
        again.add(" ".join([*(other for other in before if "/browser/" in other), file]))
    seed = config.getoption("randomly_seed", None)
    order = "-p no:randomly" if seed is None else f"--randomly-seed={seed}"
    for those in sorted(again):
        terminalreporter.write_line(f"Again: pytest {order} {those}")
    reasons = {str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])}
    if any("no Chromium" in reason for reason in reasons):
        terminalreporter.write_line(
            "Browser tests skipped: no Chromium here; deploy/install-chromium.sh installs it"
        )


@pytest.fixture(scope="session")
def home() -> Iterator[Home]:
    """The directory of this worker's servers."""
    HOME_OF_TESTS.mkdir(exist_ok=True)  # a benchmark that runs as a soak test may have been there first
    yield Home(HOME_OF_TESTS)
    shutil.rmtree(HOME_OF_TESTS, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres(home: Home) -> Iterator[Home]:
    """A Postgres of this worker's own; durability is off, because nothing here outlives the tests."""
    # No autovacuum: its transactions would hold the log's watermark back at random moments.
    settings = {
        "fsync": "off",
        "full_page_writes": "off",
        "synchronous_commit": "on",
        "shared_buffers": "128MB",
        "autovacuum": "off",
    }
    process = start_postgres(home, settings=settings)
    yield home
    # At once, without the checkpoint of an orderly shutdown: its files are deleted next.
    stop(process, number=signal.SIGQUIT)


@pytest.fixture(scope="session")
def broker(home: Home) -> Iterator[str]:
    """The address of a broker of this worker's own."""
    process = start_broker(home)
    yield home.broker_url
    stop(process)


@pytest.fixture(scope="session")
def django_db_setup(
    postgres: Home,  # noqa: ARG001
    django_test_environment: None,  # noqa: ARG001
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[None]:
    """The migrated database. Unlike pytest-django's own fixture it is made also when only `log_database` asks."""
    with django_db_blocker.unblock():
        setup_databases(verbosity=0, interactive=False, aliases={"default": None})
    yield
    with django_db_blocker.unblock():
        connections.close_all()  # the database goes with its server


@pytest.fixture(scope="session")
def administrator(postgres: Home) -> Iterator[Cursor]:
    """Makes and drops databases: one session for all tests, because each new one costs as much as a query."""
    with closing(psycopg2.connect(host=str(postgres.run), user="dossier", dbname="postgres")) as session:
        session.autocommit = True
        yield session.cursor()


@pytest.fixture(scope="session")
def new_databases(
    django_db_setup: None,  # noqa: ARG001  makes what is cloned
    administrator: Cursor,
    postgres: Home,
) -> Callable[[], Databases]:
    """Databases that are cloned from the migrated one."""
    migrated = str(settings.DATABASES["default"]["NAME"])
    return lambda: Databases(administrator, str(postgres.run), migrated)


@pytest.fixture(scope="session")
def databases(new_databases: Callable[[], Databases]) -> Databases:
    """The databases of this worker."""
    return new_databases()


@pytest.fixture
def log_database(databases: Databases, django_db_blocker: DjangoDbBlocker, postgres: Home) -> Iterator[str]:
    """Followers and the log's trigger work as they do in production, which neither a wrapping transaction nor a flush
    between tests would allow. Threads and processes may connect: its URL.
    """
    with django_db_blocker.unblock(), databases.one() as name:
        yield f"postgresql://dossier@/{name}?host={postgres.run}"
