"""Every page: axe finds nothing, in light and in dark; it fits a phone, has one heading, and no policy is broken."""

from __future__ import annotations

import pytest

from tests.browser import content
from tests.browser.conftest import Console
from tests.browser.looking import addresses, sticks_out, violations

NARROWEST = 360
OF_ACCOUNTS = ["/accounts/password/change/", "/accounts/2fa/"]


@pytest.mark.parametrize("path", [*addresses(), *OF_ACCOUNTS])
def test_a_page_keeps_nobody_out(console: Console, path: str) -> None:
    page = console.open(path)
    assert page.locator("h1").count() == 1
    assert violations(page) == []
    page.emulate_media(color_scheme="dark")
    assert violations(page, "color-contrast") == []
    page.set_viewport_size({"width": NARROWEST, "height": 800})
    assert not sticks_out(page)


def test_a_ticket_with_evidence_keeps_nobody_out(console: Console) -> None:
    number = content.report_finding()
    content.opinions_on(number)
    page = console.open(f"/incidents/{number}")
    assert violations(page) == []
    page.emulate_media(color_scheme="dark")
    assert violations(page, "color-contrast") == []
