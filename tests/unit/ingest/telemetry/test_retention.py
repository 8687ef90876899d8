"""Retention of the kinds."""

from datetime import UTC, datetime, timedelta

import pytest
from django.conf import LazySettings

from ingest.telemetry.decode.columns import microseconds
from ingest.telemetry.kinds import KINDS
from ingest.telemetry.store.tables import bounds, retention_of, whole_for

DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def _days(settings: LazySettings) -> None:
    settings.TELEMETRY_RETENTION, settings.TELEMETRY_SPARSE_RETENTION = 30 * DAY, 400 * DAY


@pytest.mark.parametrize(
    ("kind", "days"), [("probe", 30), ("topology", 30), ("outage", 400), ("uptime", 400)]
)
def test_what_reports_ask_for_by_the_month_is_kept_longer(kind: str, days: int) -> None:
    assert retention_of(KINDS[kind]) == days * DAY


def test_the_longer_retention_is_never_the_shorter(settings: LazySettings) -> None:
    settings.TELEMETRY_RETENTION = 1000 * DAY
    assert retention_of(KINDS["outage"]) == 1000 * DAY


def test_an_endpoint_takes_what_is_kept() -> None:
    now = datetime(2026, 11, 21, tzinfo=UTC)
    assert bounds(KINDS["outage"], now).earliest == microseconds(now - 400 * DAY)


@pytest.mark.parametrize(
    ("kinds", "days"),
    [(("outage", "topology"), 400), (("unit_failure", "placement"), 30), (("outage", "probe"), 30), ((), 30)],
)
def test_windows_are_whole_as_far_back_as_all_their_kinds(kinds: tuple[str, ...], days: int) -> None:
    assert whole_for(kinds) == days * DAY
