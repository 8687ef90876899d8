"""What several tests need: installed, or listening."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from analyzers import registry
from tests.integration.analyzers.runs.cases import TALLY, install_plugin
from tests.integration.incidents.notifications.cases import HookSink, MailSink, hook_sink, mail_sink
from tests.integration.incidents.oncall.cases import make_people


@pytest.fixture
def tally(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The analyzer `tally`, installed for one test."""
    install_plugin(tmp_path, "tally", TALLY)
    monkeypatch.syspath_prepend(tmp_path)
    registry.refresh()
    yield
    registry.refresh()


@pytest.fixture
def mails() -> Iterator[MailSink]:
    """A mail server that takes what it is sent."""
    with mail_sink() as sink:
        yield sink


@pytest.fixture
def hooks() -> Iterator[HookSink]:
    """A web server that takes what it is sent."""
    with hook_sink() as sink:
        yield sink


@pytest.fixture
def people_of_schedules(db: None) -> None:  # noqa: ARG001
    make_people()
