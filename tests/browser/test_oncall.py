"""People on call in a real browser: seen, taken over, and given back."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from typing import Any
from urllib.request import Request, urlopen
from zoneinfo import ZoneInfo

from django.contrib.auth import get_user_model
from playwright.sync_api import expect

from incidents.oncall.models import Calendar, OnCallSchedule
from tests.browser.conftest import Console
from tests.browser.test_alerts import pictured


def test_a_person_takes_over_and_gives_back(console: Console) -> None:
    for name in ("bob", "charlie"):
        get_user_model().objects.get_or_create(username=name)
    week: dict[str, Any] = {
        "name": "primary",
        "people": ["bob", "charlie"],
        "start": "2026-01-05T09:00",
        "turn": "1w",
    }
    nights: dict[str, Any] = {
        "name": "nights",
        "people": ["charlie"],
        "start": "2026-01-05T09:00",
        "turn": "1d",
    }
    nights |= {"times": [{"days": ["sat"], "from": "20:00", "to": "08:00"}]}
    made = OnCallSchedule.objects.create(
        slug="gpu", name="GPU fleet", time_zone="America/New_York", layers=[week, nights]
    )
    made.holidays.add(
        Calendar.objects.create(
            slug="us", name="US", text="", spans=[["2026-11-26", "2026-11-27", "Thanksgiving"]]
        )
    )
    OnCallSchedule.objects.create(slug="gap", name="Abandoned", layers=[{**week, "end": "2026-02-01T09:00"}])
    page = console.open("/on-call")
    expect(page.get_by_role("heading", name="GPU fleet")).to_be_visible()
    pictured(page, "on-call")
    page.get_by_role("link", name="Take over: GPU fleet").click()
    page.get_by_label("Reason").first.fill("Bob is at the dentist")
    page.get_by_role("button", name="Take over").click()
    expect(page.get_by_text("alice is on call until")).to_be_visible()
    pictured(page, "on-call-schedule")
    page.get_by_role("button", name="End: alice").click()
    expect(page.get_by_text("No overrides.")).to_be_visible()
    today = datetime.now(ZoneInfo("America/New_York")).date()
    monday = today + timedelta(days=7 - today.weekday())
    tuesday, wednesday, thursday = (monday + timedelta(days=n) for n in (1, 2, 3))
    page.goto(f"{console.address}/on-call/gpu?view=hours&from={monday}")
    page.locator(f'td[data-at="{tuesday}T10:00"]').hover()
    page.mouse.down()
    page.locator(f'td[data-at="{tuesday}T12:00"]').hover()
    page.mouse.up()
    expect(page.get_by_label("From")).to_have_value(f"{tuesday}T10:00")
    expect(page.get_by_label("Until")).to_have_value(f"{tuesday}T13:00")
    expect(page.get_by_label("Reason").first).to_be_focused()
    page.locator(f'td[data-at="{wednesday}T10:00"]').focus()
    for key in ("Escape", "ArrowDown", "Shift+ArrowRight", "Enter"):
        page.keyboard.press(key)
    expect(page.get_by_label("From")).to_have_value(f"{wednesday}T11:00")
    expect(page.get_by_label("Until")).to_have_value(f"{thursday}T12:00")
    page.keyboard.type("Flight")
    pictured(page, "on-call-hours")
    page.keyboard.press("Enter")
    expect(page.get_by_text("alice is on call for 1 d 1 h")).to_be_visible()
    for address, name in (
        ("/settings/schedules", "on-call-settings"),
        ("/settings/schedules/gpu", "on-call-edit"),
    ):
        page.goto(console.address + address)
        pictured(page, name)
    assert console.problems == []


def test_the_first_steps_wait_for_a_sender_and_show_what_it_sent(console: Console) -> None:
    page = console.open("/welcome?step=sender")
    page.get_by_label("Any JSON or form").check()
    page.get_by_role("button", name="Create key").click()
    expect(page.get_by_text("Waiting for the first alert from generic")).to_be_visible()
    [address] = set(re.findall(r"/integrations/generic/dsr_[\w-]+", page.content()))
    body = json.dumps({"title": "Disk d7 is slow", "key": "d7"}).encode()
    with urlopen(Request(console.address + address, body, {"Content-Type": "application/json"}), timeout=10):
        pass
    expect(page.get_by_text("“Disk d7 is slow”")).to_be_visible(timeout=15_000)
    pictured(page, "welcome-sender")
    page.goto(f"{console.address}/welcome?step=sample")
    page.get_by_role("button", name="Find the failure").click()
    expect(page.get_by_text("The analyzer named the injected failure")).to_be_visible(timeout=30_000)
    pictured(page, "welcome-sample")
