"""Taken, not now, or never: what answers of mail and web servers mean."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.notifications import delivery
from incidents.domain.notifications.delivery import LONGEST_WAIT, WHY_LIMIT
from tests.unit.incidents.incident.cases import NOON


@pytest.mark.parametrize(
    ("code", "kind"), [(250, "taken"), (421, "passing"), (450, "passing"), (550, "refused"), (554, "refused")]
)
def test_a_mail_server_says_by_its_first_digit_whether_to_try_again(code: int, kind: str) -> None:
    assert delivery.smtp(code, "so it is").kind == kind


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (200, "taken"),
        (202, "taken"),
        (301, "refused"),
        (400, "refused"),
        (404, "refused"),
        (408, "passing"),
        (410, "refused"),
        (429, "passing"),
        (500, "passing"),
        (503, "passing"),
    ],
)
def test_a_web_server_says_by_its_status_whether_to_try_again(status: int, kind: str) -> None:
    assert delivery.http(status, {}, "", NOON).kind == kind


@pytest.mark.parametrize(
    ("header", "wait"),
    [
        ("120", timedelta(seconds=120)),
        ("Sat, 21 Nov 2026 12:01:00 GMT", timedelta(minutes=1)),
        ("Sat, 21 Nov 2026 11:00:00 GMT", timedelta(0)),
        ("99999999999", LONGEST_WAIT),
        ("soon", None),
        ("", None),
        ("-5", None),
    ],
)
def test_a_receiver_may_say_when(header: str, wait: timedelta | None) -> None:
    assert delivery.http(429, {"retry-after": header}, "", NOON).retry_after == wait


@given(st.text(max_size=2_000), st.text(max_size=200))
def test_whatever_a_server_says_fits_an_event(text: str, header: str) -> None:
    why = delivery.http(503, {"retry-after": header}, text, NOON).why
    assert len(why) <= WHY_LIMIT
    assert why.isprintable()
