"""Which screens the book shows. An address with a place in braces is filled in from what the demo made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.browser.looking import addresses


@dataclass(frozen=True, slots=True)
class Screen:
    name: str
    path: str


@dataclass(frozen=True, slots=True)
class Look:
    """How a screen is looked at. Zoom is what a browser does at 200 %: half the width, everything twice as large."""

    name: str
    width: int
    height: int
    theme: str = "light"
    scale: float = 1


LOOKS: Final = (
    Look("light", 1280, 800),
    Look("dark", 1280, 800, theme="dark"),
    Look("narrow", 360, 740),
    Look("zoomed", 640, 400, scale=2),
)
MADE: Final = (
    Screen("ticket", "/incidents/{ticket}"),
    Screen("ticket-past", "/incidents/{ticket}?as_of={then}"),
    Screen("ticket-alerts", "/incidents/{alerted}"),
    Screen("ticket-resolved", "/incidents/{resolved}"),
    Screen("inbox-search", "/?q=storage"),
    Screen("inbox-past", "/?as_of={then}"),
    Screen("inbox-nothing-found", "/?q=no+such+thing"),
    Screen("inbox-resolved", "/?tab=resolved"),
    Screen("run", "/runs/{run}"),
    Screen("run-inputs", "/runs/{run}/inputs"),
    Screen("analyzer", "/analyzers/deepview"),
    Screen("component", "/components/{component}"),
    Screen("blast", "/incidents/{ticket}/blast-radius"),
    Screen("rota", "/on-call/storage-primary?view=hours"),
    Screen("what-if", "/reports/what-if/tor-availability"),
    Screen("report", "/reports/{report}"),
)
WRONG: Final = (
    Screen("no-such-page", "/no-such-page"),
    Screen("no-such-ticket", "/incidents/999999"),
    Screen("no-such-time", "/?as_of=yesterday"),
    Screen("no-such-tab", "/?tab=nonsense"),
)

FULL: Final = (
    Screen("inbox", "/"),
    Screen("inbox-next-page", "/?order=newest"),
    Screen("people", "/settings/people"),
    Screen("people-of-a-team", "/settings/people?team=gpu-03"),
    Screen("teams", "/teams"),
    Screen("routes", "/settings/routes"),
    Screen("services", "/settings/services"),
    Screen("policies", "/settings/policies"),
    Screen("channels", "/settings/channels"),
    Screen("schedules", "/settings/schedules"),
    Screen("on-call", "/on-call"),
    Screen("silences", "/silences"),
    Screen("maintenance", "/settings/maintenance"),
    Screen("inhibitions", "/settings/inhibitions"),
    Screen("webhooks", "/settings/webhooks"),
    Screen("audit", "/settings/audit"),
)
README: Final = (
    (Screen("inbox", "/"), 744),
    (Screen("ticket", "/incidents/{ticket}"), 1352),
    (Screen("grid", "/grid"), 792),
)
"""With the height of each picture, in pixels."""


def listed() -> list[Screen]:
    """Every page whose address takes nothing."""
    return [Screen(path.strip("/").replace("/", "-") or "inbox", path) for path in addresses()]
