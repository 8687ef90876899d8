"""Escalation policies in a real browser: made by a form, followed by an incident, hurried by a person."""

from __future__ import annotations

import uuid

from playwright.sync_api import expect

from incidents import commands, queries
from incidents.commands import Report
from incidents.escalation.sweep import sweep
from ingest.queries import Context
from tests.browser.conftest import Console
from tests.browser.test_alerts import pictured


def test_a_policy_is_made_and_a_ticket_says_whom_it_calls(console: Console) -> None:
    slug = f"storage-{uuid.uuid4().hex[:6]}"
    page = console.open("/settings/policies")
    page.get_by_label("Name", exact=True).fill("Storage on call")
    page.get_by_label("Short name").fill(slug)
    page.get_by_label("Team").select_option(label="Storage")
    page.get_by_label("Steps").fill("at once: person alice\nafter 5 min: person bob, severity critical")
    page.get_by_label("Re-page if not resolved after").fill("30 min")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("heading", name="Storage on call")).to_be_visible()
    pictured(page, "policies")
    opened = commands.open_incident(
        Report("Disks fail", component="storage_cluster/s7"), Context("user:bob")
    ).incident
    sweep(queries.get(opened.id).incident.opened_at)
    page.goto(page.url.replace("/settings/policies", f"/incidents/{opened.number}"))
    expect(page.get_by_text("Notifies bob in ")).to_be_visible()
    pictured(page, "escalation")
    page.get_by_text("Escalate", exact=True).first.click()
    page.get_by_label("Reason for escalating").fill("Alice is on a plane")
    page.get_by_role("button", name="Escalate").last.click()
    expect(
        page.get_by_text("alice notified bob (step 2 of 2, round 1 of 2): Alice is on a plane")
    ).to_be_visible()
