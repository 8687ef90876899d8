"""A web process that answers over a test's own database."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.web import Web


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that end what their module shares come last: it need not be started once more for those after them."""
    items.sort(key=lambda item: item.get_closest_marker("last") is not None)


@pytest.fixture
def web_processes() -> int:
    """Number of web processes; a module whose senders have to meet several says so with a fixture of this name."""
    return 1


@pytest.fixture
def web(log_database: str, broker: str, web_processes: int) -> Iterator[Web]:
    del broker
    with tempfile.TemporaryDirectory() as directory:
        web = Web(log_database, Path(directory) / "web.log", web_processes)
        web.start()
        yield web
        web.close()
