"""Needs of several tests: installed, or listening."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from analyzers import registry
from deploy.observability import health
from tests.integration.analyzers.runs.cases import TALLY, install_plugin
from tests.integration.incidents.notifications.cases import (
    SETUP,
    HookSink,
    MailSink,
    hook_server,
    mail_server,
)
from tests.integration.incidents.oncall.cases import make_people


@pytest.fixture(autouse=True)
def secrets_looked_at_again() -> None:
    """The banner of secrets that cannot be decrypted is kept some seconds: it must not speak of another test's."""
    health._looked.clear()


@pytest.fixture
def tally(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The analyzer `tally`, installed for one test."""
    install_plugin(tmp_path, "tally", TALLY)
    monkeypatch.syspath_prepend(tmp_path)
    registry.refresh()
    yield
    registry.refresh()


@pytest.fixture
def mails(settings: Settings) -> Iterator[MailSink]:
    """A mail server that takes what it is sent.

    The settings are changed by their fixture alone: `override_settings` beside it would be undone in another order.
    """
    with mail_server() as (sink, port):
        for name, value in {**SETUP, "EMAIL_PORT": port}.items():
            setattr(settings, name, value)
        yield sink


@pytest.fixture
def hooks(settings: Settings) -> Iterator[HookSink]:
    """A web server that takes what it is sent."""
    settings.OUTBOUND_ALLOWED_NETWORKS = SETUP["OUTBOUND_ALLOWED_NETWORKS"]
    with hook_server() as sink:
        yield sink


@pytest.fixture
def people_of_schedules(db: None) -> None:  # noqa: ARG001
    make_people()
