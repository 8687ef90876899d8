"""Barriers of a page to people: found by axe-core, by sticking out of the screen, by missing its heading."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from django.urls import URLPattern
from playwright.sync_api import Page, TimeoutError

from frontend.urls import urlpatterns

ONLY_POST = {
    "change_outcome",
    "keep_view",
    "bulk_action",
    "notification_device",
    "notification_device_renew",
    "notification_rules",
    "on_call_calendar",
    "put_back",
    "report_produce",
}
NO_PAGE = {
    "api-live",
    "app_manifest",
    "find_incidents",
    "inbox_csv",
    "inbox_matching",
    "inbox_rows",
    "inbox_suggest",
    "live",
    "palette",
    "service_worker",
    "silence_preview",
}
NOT_ALONE = {
    "analysis_schedule_new",
    "backtest_compare",
    "component_contained",
    "component_health",
    "component_named",
}
"""Say in their query what they are about: a component, an analyzer, two backtests."""
FIRST_STEPS = {"welcome_team", "welcome_sender", "welcome_sample", "welcome_call", "welcome_skip"}
"""Are posted to."""
AXE = Axe().axe_script
RECEIVED = {"integrations_received"}
"""A piece of a page."""


def addresses() -> list[str]:
    """Of every page of the console whose address takes nothing: whatever is added is looked at."""
    named = [one for one in urlpatterns if isinstance(one, URLPattern)]
    return sorted(
        f"/{one.pattern}"
        for one in named
        if "<" not in str(one.pattern)
        and one.name not in ONLY_POST | NO_PAGE | NOT_ALONE | FIRST_STEPS | RECEIVED
    )


def violations(page: Page, *rules: str) -> list[str]:
    """Findings of axe, a line each: the rule, where, and the markup. All of its rules, unless some are named."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    # Style sheets are of the page's own origin: axe need not fetch them a second time.
    options: dict[str, Any] = {"resultTypes": ["violations"], "preload": False}
    if rules:
        options["runOnly"] = {"type": "rule", "values": list(rules)}
    found = page.evaluate("options => axe.run(options).then(({ violations }) => violations)", options)
    return [
        f"{one['id']}: {' '.join(node['target'])}: {node['html'][:160]}"
        for one in found
        for node in one["nodes"]
    ]


def sticks_out(page: Page) -> bool:
    """Whether anything is wider than the screen, also once scripts have adapted to its width."""
    fits = "() => document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    try:
        page.wait_for_function(fits, timeout=5_000)
    except TimeoutError:
        return True
    return False
