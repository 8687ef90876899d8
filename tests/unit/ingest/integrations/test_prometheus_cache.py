"""Alerts that were read before are known by their bytes, and are what reading them in full gives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.integrations import prometheus
from ingest.integrations.normalized import Alert, InvalidPayloadError, Parsed

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
SLOW: dict[str, Any] = {"labels": {"alertname": "Slow", "disk": "d1"}, "startsAt": "2026-01-31T11:00:00Z"}


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    prometheus._known.clear()
    yield
    prometheus._known.clear()


def read(*items: Any) -> Parsed | str:
    try:
        return prometheus.alerts(json.dumps(items).encode(), NOW)
    except InvalidPayloadError as bad:
        return str(bad)


def only(item: Any) -> Alert:
    parsed = read(item)
    assert isinstance(parsed, Parsed)
    (alert,) = parsed.alerts
    return alert


TIMES = st.sampled_from(
    ["2026-01-31T11:00:00Z", "2026-01-31T13:00:00+01:00", "2026-02-01T00:00:00Z", "0001-01-01T00:00:00Z", "", "now"]
)  # fmt: skip
TEXTS = st.dictionaries(
    st.sampled_from(["alertname", "instance", "summary", ""]), st.sampled_from(["", "a", "é\n", "http://a"])
)
ITEM = st.fixed_dictionaries(
    {"labels": TEXTS},
    optional={
        "annotations": TEXTS | st.none(),
        "startsAt": TIMES | st.none(),
        "endsAt": TIMES | st.integers(),
        "generatorURL": st.sampled_from(["http://p/g", "", "x y"]) | st.none(),
        "fingerprint": st.just("0"),
    },
)


@given(items=st.lists(ITEM, max_size=3))
def test_a_body_is_the_same_in_full_new_and_known(items: list[Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prometheus, "remembered", lambda *_: None)
        in_full = read(*items)
    assert read(*items) == in_full
    assert read(*items) == in_full


def test_a_known_alert_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    only(SLOW)
    monkeypatch.setattr(prometheus, "build", lambda *_, **__: pytest.fail("it was read again"))
    assert only(SLOW).labels == SLOW["labels"]


@pytest.mark.parametrize(("minutes", "status"), [(5, "firing"), (-5, "resolved")])
def test_the_end_of_a_known_alert_is_that_of_its_last_body(minutes: int, status: str) -> None:
    only(SLOW)
    end = NOW + timedelta(minutes=minutes)
    alert = only({**SLOW, "endsAt": end.isoformat()})
    assert (alert.status, alert.expires_at) == (status, end if status == "firing" else None)


def test_no_more_alerts_are_remembered_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "MOST", 3)
    for number in range(10):
        only({"labels": {"alertname": str(number)}})
    assert 1 <= len(prometheus._known) <= 3


def test_a_long_alert_is_not_remembered() -> None:
    only({"labels": {"alertname": "x" * prometheus.LONGEST}})
    assert prometheus._known == {}
