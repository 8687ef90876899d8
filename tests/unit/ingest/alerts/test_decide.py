"""Changes by an alert that comes in, by everything that may be known of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from incidents.domain.incident.flapping import FIRINGS
from ingest.alerts.decide import LATE, MOST_REMEMBERED, Known, decide, fired_recently
from ingest.integrations.normalized import Alert

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
LATER, EARLIER = NOON + timedelta(minutes=1), NOON - timedelta(minutes=1)
SOON = LATER + timedelta(minutes=1)


def known(status: str = "firing", **more: Any) -> Known:
    return Known(status, "warning", None, **{"starts_at": NOON, **more})


def said(status: Any = "firing", **more: Any) -> Alert:
    return Alert("k", status, "t", **{"starts_at": NOON, **more})


@pytest.mark.parametrize(
    ("before", "alert", "outcome"),
    [
        (None, said(), "fired"),
        (None, said("resolved", starts_at=None), "ignored"),
        (None, said("resolved"), "resolved"),
        (known("resolved"), said("resolved", starts_at=LATER, resends=True), "resolved"),
        (known("resolved"), said("resolved", starts_at=LATER), "repeated"),
        (None, said("acknowledged"), "ignored"),
        (known(), said(), "repeated"),
        (known(), said(starts_at=LATER), "repeated"),
        (known(), said(severity="critical"), "severity"),
        (known(), said(component="disk/d7"), "component"),
        (known(), said("resolved"), "resolved"),
        (known(), said("resolved", starts_at=None), "resolved"),
        (known(), said("resolved", starts_at=EARLIER), "ignored"),
        (known(), said("acknowledged"), "acknowledged"),
        (known("acknowledged"), said("acknowledged"), "repeated"),
        (known("acknowledged"), said(), "repeated"),
        (known("resolved"), said("resolved"), "repeated"),
        (known("resolved"), said("acknowledged"), "ignored"),
        (known("resolved"), said(), "ignored"),
        (known("resolved"), said(starts_at=LATER), "fired"),
        (known("resolved"), said(starts_at=None), "fired"),
        (known("resolved", starts_at=None), said(), "fired"),
        (known("resolved", expired=True), said(), "fired"),
        (known("resolved", expired=True, settled_until=SOON), said(), "repeated"),
        (known("resolved", expired=True, settled_until=NOON), said(), "fired"),
        # A person said that it is over, and then its sender says so, or that it began anew.
        (known("resolved", expired=True, settled_until=SOON), said("resolved"), "resolved"),
        (known("resolved", expired=True, settled_until=NOON), said("resolved"), "repeated"),
        (known("resolved", expired=True, settled_until=SOON), said(starts_at=LATER), "fired"),
        (known("resolved", expired=True, settled_until=SOON), said(starts_at=None), "repeated"),
    ],
)
def test_what_follows_from_what_is_known(before: Known | None, alert: Alert, outcome: str) -> None:
    assert decide(before, alert, LATER).outcome == outcome


def test_what_is_ignored_says_why() -> None:
    assert decide(None, said("resolved", starts_at=None), LATER).why == "it was not firing"


def test_only_the_last_hour_is_remembered_and_no_more_than_so_often() -> None:
    often = [NOON - timedelta(minutes=90 - n) for n in range(80)]
    assert fired_recently(often, NOON)[0] > NOON - timedelta(hours=1)
    assert len(fired_recently(often, NOON)) == MOST_REMEMBERED
    assert MOST_REMEMBERED >= FIRINGS  # or nothing would ever flap


@pytest.mark.parametrize(
    ("ended", "resends", "outcome"),
    [
        (NOON - LATE, True, "ignored"),
        (NOON - 2 * LATE, True, "fired"),
        (NOON + timedelta(hours=8), True, "fired"),  # by a clock that was set back since
        (NOON - 2 * LATE, False, "ignored"),
    ],
)
def test_a_firing_that_is_said_again_long_after_its_end_goes_on(
    ended: datetime, resends: bool, outcome: str
) -> None:
    before = known("resolved", changed_at=ended)
    assert decide(before, said(resends=resends), NOON).outcome == outcome
