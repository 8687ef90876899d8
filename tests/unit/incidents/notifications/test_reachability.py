"""Reasons why no message can reach a person, in words, and what to do about it."""

from __future__ import annotations

import pytest

from incidents.domain.notifications.reachability import MethodStatus, why_unreachable

WORKS = MethodStatus("phone")
BROKEN = MethodStatus("chat", failed="404")
UNTESTED = MethodStatus("pager", verified=False)
NO_SERVER = MethodStatus("account", missing="no mail server is configured")


@pytest.mark.parametrize("others", [(), (BROKEN,), (UNTESTED, NO_SERVER)])
def test_one_method_that_works_is_enough(others: tuple[MethodStatus, ...]) -> None:
    assert why_unreachable((*others, WORKS)) is None


@pytest.mark.parametrize(
    ("method", "reason", "remedy"),
    [
        (BROKEN, "the last deliveries to chat failed (404)", "correct it and send a test"),
        (UNTESTED, "pager has never been tested", "send a test"),
        (NO_SERVER, "no mail server is configured", "configure it, or add another contact method"),
        (MethodStatus("a", readable=False, failed="x"), "encrypted under another", "restore the key"),
    ],
)
def test_a_method_that_does_not_work_has_a_reason_and_a_remedy(
    method: MethodStatus, reason: str, remedy: str
) -> None:
    found = why_unreachable([method])
    assert found is not None
    assert reason in found.reason
    assert found.remedy.startswith(remedy)


def test_without_methods_one_is_to_be_added() -> None:
    assert str(why_unreachable([])).startswith("no contact method: add a phone number")


def test_several_problems_are_listed_once_each() -> None:
    found = why_unreachable([BROKEN, UNTESTED, NO_SERVER, NO_SERVER])
    assert found is not None
    assert found.reason.count(";") == 2
    assert found.reason.endswith("no mail server is configured")
