"""Planned work, inhibition, what is like an incident and why its alerts are there, in a real browser."""

from __future__ import annotations

from datetime import timedelta

from playwright.sync_api import expect

from incidents import commands, queries
from incidents.commands import Report
from ingest.queries import Context
from tests.browser.conftest import Console
from tests.browser.test_alerts import disk, pictured, send
from tests.integration.incidents.incident.test_findings import START, run, suspect
from tests.integration.ingest.telemetry.test_topology import tell

ALICE = Context("user:alice")


def test_work_is_planned_and_a_rule_is_made_in_the_console(console: Console) -> None:
    page = console.open("/settings")
    page.get_by_role("link", name="Maintenance").click()
    page.get_by_label("Name").fill("shelf-9")
    page.get_by_label("Components").fill("disk/m*")
    page.get_by_label("Duration").fill("4 h")
    page.get_by_label("Repeat").select_option("every week")
    page.get_by_label("Time zone").fill("Europe/Berlin")
    page.get_by_label("Description").fill("The shelf is moved, CHG-1234")
    page.get_by_role("button", name="Schedule", exact=True).click()
    expect(page.get_by_role("heading", name="Now")).to_be_visible()
    send(disk("m1", "DiskMoved"))
    page.reload()
    expect(page.get_by_text("suppresses 1 firing alert")).to_be_visible()
    pictured(page, "maintenance")
    page.goto(f"{console.address}/settings/inhibitions")
    page.get_by_label("Name").fill("cluster-down")
    page.get_by_label("Source matchers").fill('alertname="ClusterDown"')
    page.get_by_label("Target matchers (suppressed)").fill('severity=~"warning|info"')
    page.get_by_label("Equal labels").fill("cluster")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_text("no source firing")).to_be_visible()
    pictured(page, "inhibitions")


def test_a_ticket_shows_its_symptoms_with_their_reasons_and_what_is_like_it(console: Console) -> None:
    tell(START - timedelta(days=2), "disk/q1", parents=["tor/q7"])
    run(0, suspect("tor/q7", sure=True))
    send(disk("q1", "DiskFar"))
    found = queries.list_incidents(limit=200).items
    ticket = next(one.incident for one in found if one.incident.component == "tor/q7")
    # Word for word, but for the number: what is alike depends on all incidents that other tests of the worker opened.
    past = commands.open_incident(Report(ticket.title.replace("q7", "q9"), "tor/q9"), ALICE).incident
    commands.resolve(past.id, "tor/q9", "replaced", ALICE)
    page = console.open(f"/incidents/{ticket.number}")
    expect(page.get_by_text("Reason: disk/q1 is contained in tor/q7.")).to_be_visible()
    expect(page.locator(".next")).to_contain_text(f"#{past.number}", timeout=60_000)
    expect(page.locator(".next")).to_contain_text("“replaced”")
    page.get_by_text("Similar past incidents", exact=True).first.click()
    expect(page.get_by_role("link", name=f"#{past.number} {past.title}")).to_be_visible()
    expect(page.get_by_text("No prediction")).to_be_visible()
    pictured(page, "similar")
