"""Browser tests share servers and a database, and leave neither rows nor settings to each other."""

from __future__ import annotations

import pytest

from incidents.incident.models import IncidentRow
from incidents.teams.models import Team
from tests.browser.conftest import Console
from tests.browser.content import open_ticket


@pytest.mark.parametrize("turn", ["first", "second"])
def test_a_test_finds_nothing_of_another_one(console: Console, turn: str) -> None:
    assert not IncidentRow.objects.exists()
    assert not Team.objects.filter(slug="left").exists()
    page = console.open("/")
    open_ticket(f"Left by the {turn}")
    Team.objects.create(slug="left", name="Left")
    page.reload()
    page.get_by_text(f"Left by the {turn}").wait_for()
