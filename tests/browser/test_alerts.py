"""Alerts, silences and integrations in a real browser: what a person on call does with them."""

from __future__ import annotations

import os
import re
from pathlib import Path

from playwright.sync_api import Page, expect

from incidents import queries
from incidents.follower import follower
from ingest.alerts.deliveries import Delivery
from ingest.alerts.store import receive
from ingest.integrations.normalized import Alert, Parsed
from tests.browser.conftest import Console
from tests.browser.looking import sticks_out
from tests.following import follow_to_the_end


def send(*alerts: Alert) -> None:
    receive(Parsed(alerts), Delivery("prometheus-dc1", "alertmanager-api", "application/json", b'{"a": 1}'))
    follow_to_the_end(follower())


def disk(name: str, rule: str, status: str = "firing") -> Alert:
    """An alert of a rule; each test has its own rule, so that its alerts are an incident of their own."""
    return Alert(
        name,
        "resolved" if status == "resolved" else "firing",
        f"Disk {name} is slow",
        severity="error",
        group=rule,
        component=f"disk/{name}",
        description="Reads take longer than 50 ms.",
        labels={"alertname": rule, "disk": name, "rack": "r12"},
        links=({"href": "https://runbooks.example/disk", "text": "Runbook"},),
    )


def pictured(page: Page, name: str) -> None:
    """In every form that people see it in; kept where SCREENSHOTS names a folder."""
    folder = os.environ.get("SCREENSHOTS")
    for form, width, scheme in (
        ("light", 1280, "light"),
        ("dark", 1280, "dark"),
        ("medium", 900, "light"),
        ("narrow", 390, "light"),
    ):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        if folder:
            page.screenshot(path=Path(folder) / f"{name}-{form}.png", full_page=True)
        assert not sticks_out(page)
    page.set_viewport_size({"width": 1280, "height": 900})


def test_a_ticket_lists_its_alerts_and_changes_by_itself(console: Console) -> None:
    send(*(disk(name, "DiskSlow") for name in ("d7", "d8", "d9")))
    send(disk("d9", "DiskSlow", "resolved"))
    number = queries.list_incidents(limit=1).items[0].incident.number
    page = console.open(f"/incidents/{number}")
    alerts = page.get_by_role("region", name="Alerts")
    expect(alerts).to_contain_text("2 of 3 firing")
    alerts.get_by_text("3 labels").first.click()
    expect(alerts.get_by_text("rack=r12").first).to_be_visible()
    pictured(page, "incident")
    expect(page.locator(".live")).to_have_attribute("data-state", "live")
    send(disk("d8", "DiskSlow", "resolved"))
    expect(alerts).to_contain_text("1 of 3 firing")
    pictured(console.open("/"), "inbox")


def test_what_a_tickets_alerts_have_in_common_is_silenced_and_heard_again(console: Console) -> None:
    send(disk("e1", "DiskBusy"), disk("e2", "DiskBusy"))
    number = queries.list_incidents(limit=1).items[0].incident.number
    page = console.open(f"/incidents/{number}")
    page.get_by_role("link", name="Silence these alerts…").click()
    expect(page.get_by_label("Matchers")).to_have_value(re.compile('rack="r12"'))
    page.get_by_label("Reason").fill("Rack 12 is rebuilt")
    page.get_by_label("30 min", exact=True).check()
    page.get_by_role("button", name="Silence", exact=True).click()
    expect(page.locator("[data-silenced]")).to_contain_text("Silenced until")
    inbox = console.open("/")
    inbox.set_viewport_size({"width": 390, "height": 844})
    assert inbox.evaluate("document.documentElement.scrollWidth") <= 390
    inbox.set_viewport_size({"width": 1280, "height": 900})
    send(disk("f1", "DiskBusy"))
    page = console.open("/silences")
    expect(page.get_by_role("region", name="Suppressed")).to_contain_text("Rack 12 is rebuilt")
    pictured(page, "silences")
    page.get_by_role("button", name="End now: Rack 12 is rebuilt").click()
    expect(page.get_by_text("No silences.")).to_have_count(0)
    expect(page.get_by_role("region", name="Ended")).to_contain_text("Rack 12 is rebuilt")


def test_a_sender_gets_a_key_and_a_test_alert_becomes_a_ticket(console: Console) -> None:
    page = console.open("/integrations")
    page.get_by_label("Source").select_option("Grafana")
    page.get_by_label("Name", exact=True).fill("grafana-dc1")
    page.get_by_role("button", name="Create key").click()
    expect(page.get_by_role("region", name="The key of grafana-dc1")).to_contain_text(
        "/integrations/grafana/dsr_"
    )
    pictured(page, "integrations")
    page.get_by_role("region", name="grafana-dc1", exact=True).get_by_role(
        "button", name="Send a test alert"
    ).click()
    expect(page.get_by_role("heading", name="Delivery receipt")).to_be_visible()
    follow_to_the_end(follower())
    page.reload()
    expect(page.get_by_role("link", name=re.compile(r"^#\d+$")).first).to_be_visible()
    pictured(page, "receipt")


def test_a_mapping_is_tried_before_it_is_kept(console: Console) -> None:
    page = console.open("/integrations")
    page.get_by_label("Source").select_option("Any JSON or form")
    page.get_by_label("Name", exact=True).fill("checks")
    page.get_by_role("button", name="Create key").click()
    page.get_by_role("region", name="checks", exact=True).get_by_role("link", name="Mapping…").click()
    page.get_by_label("Mapping", exact=True).fill('{"title": "{check} on {host}", "key": "{host}/{check}"}')
    page.get_by_label("Example payload").fill('{"host": "srv1", "check": "Fan"}')
    page.get_by_role("button", name="Test", exact=True).click()
    expect(page.get_by_role("region", name="Alert 1")).to_contain_text("Fan on srv1")
    pictured(page, "mapping")
    pictured(console.open("/docs/integrate/nagios"), "door")
