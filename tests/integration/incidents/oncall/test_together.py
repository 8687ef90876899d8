"""Schedules with others at the same time, and in the file of all configuration."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
import yaml
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connections

from incidents.domain.oncall.overrides import Stretch
from incidents.oncall import commands, queries
from incidents.oncall.models import Calendar, OnCallSchedule, Override
from ingest.queries import Context, configured

pytestmark = pytest.mark.usefixtures("log_database")
PEOPLE = ("alice", "bob", "charlie")
LAYER = {"name": "primary", "people": ["alice"], "start": "2026-01-05T09:00", "turn": "1w"}
FILE = """
calendars:
- slug: public
  name: Public holidays
  text: |
    BEGIN:VCALENDAR
    VERSION:2.0
    PRODID:x
    BEGIN:VEVENT
    UID:1
    DTSTART;VALUE=DATE:20201225
    RRULE:FREQ=YEARLY
    SUMMARY:Christmas
    END:VEVENT
    END:VCALENDAR
schedules:
- slug: disks
  name: Disks
  team: storage
  time_zone: Europe/Berlin
  holidays: [public]
  layers:
  - name: primary
    people: [alice, bob]
    start: "2026-01-05T09:00"
    turn: 1w
    times:
    - {days: [mon, tue], from: "08:00", to: "18:00"}
"""


@pytest.fixture(autouse=True)
def people(log_database: str) -> None:  # noqa: ARG001
    for name in PEOPLE:
        get_user_model().objects.create(username=name)


def test_of_many_who_take_over_at_once_none_is_lost_and_the_last_one_counts() -> None:
    OnCallSchedule.objects.create(slug="storage", name="Storage", layers=[LAYER])
    now = datetime.now(UTC)

    def take_over(number: int) -> None:
        person, end = PEOPLE[number % 3], now + timedelta(hours=1)
        commands.override("storage", person, None, end, f"number {number}", now, Context(f"user:{person}"))
        connections.close_all()

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(take_over, range(48)))
    made = list(Override.objects.select_related("person"))
    assert len({one.made_at for one in made}) == 48
    assert queries.on_call("storage", now) == (made[-1].person.get_username(),)


def test_a_swap_and_its_taking_back_at_once_leave_both_parts_or_none() -> None:
    OnCallSchedule.objects.create(
        slug="storage", name="Storage", layers=[{**LAYER, "people": ["alice", "bob"], "turn": "1d"}]
    )
    now = datetime.now(UTC)
    one, other = (queries.shifts("storage", now, now + timedelta(days=5))[place] for place in (1, 2))
    first, second = (Stretch(shift.person, shift.start, shift.end) for shift in (one, other))
    made = commands.swap("storage", first, second, "concert", now, Context("user:alice"))
    swap = str(made[0].swap)

    def take_back(_: int) -> bool:
        try:
            commands.take_back_swap("storage", swap, now, Context("user:bob"))
        except commands.OverrideNotFoundError:
            return False
        finally:
            connections.close_all()
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(take_back, range(8))) == 1
    assert len(configured("swap", f"storage/{swap}")) == 2


def applied(file: Path, text: str) -> str:
    file.write_text(text)
    out = StringIO()
    call_command("config", "apply", str(file), stdout=out)
    return out.getvalue()


def test_schedules_and_calendars_stand_in_the_file_of_all_configuration(tmp_path: Path) -> None:
    file = tmp_path / "dossier.yaml"
    assert applied(file, FILE).endswith("2 changes made.\n")
    assert applied(file, FILE) == "Nothing to change.\n"
    assert Calendar.objects.get().spans[-1][2] == "Christmas"
    call_command("config", "export", str(file), stdout=StringIO())
    ours = {
        kind: told
        for kind, told in yaml.safe_load(file.read_text()).items()
        if kind in ("calendars", "schedules")
    }
    assert applied(file, yaml.safe_dump(ours)) == "Nothing to change.\n"


def test_a_schedule_that_is_wrong_in_that_file_leaves_everything_as_it_was(tmp_path: Path) -> None:
    with pytest.raises(
        CommandError, match=r"line 26: schedules\[1\].layers\[1\].turn: must be hours, days or weeks"
    ):
        applied(tmp_path / "dossier.yaml", FILE.replace("turn: 1w", "turn: 1 month"))
    assert not Calendar.objects.exists()
