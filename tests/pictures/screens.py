"""Which screens the book shows. An address with a place in braces is filled in from what the demo made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.browser.looking import addresses


@dataclass(frozen=True, slots=True)
class Screen:
    name: str
    path: str
    part: str = "The console"


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
    Screen("ticket", "/incidents/{ticket}", "Made by the demo"),
    Screen("ticket-past", "/incidents/{ticket}?as_of={then}", "Made by the demo"),
    Screen("ticket-alerts", "/incidents/{alerted}", "Made by the demo"),
    Screen("ticket-resolved", "/incidents/{resolved}", "Made by the demo"),
    Screen("inbox-search", "/?q=storage", "Made by the demo"),
    Screen("inbox-past", "/?as_of={then}", "Made by the demo"),
    Screen("inbox-nothing-found", "/?q=no+such+thing", "Made by the demo"),
    Screen("inbox-resolved", "/?tab=resolved", "Made by the demo"),
    Screen("run", "/runs/{run}", "Made by the demo"),
    Screen("report", "/reports/{report}", "Made by the demo"),
)
WRONG: Final = (
    Screen("no-such-page", "/no-such-page", "What goes wrong"),
    Screen("no-such-ticket", "/incidents/999999", "What goes wrong"),
    Screen("no-such-time", "/?as_of=yesterday", "What goes wrong"),
    Screen("no-such-tab", "/?tab=nonsense", "What goes wrong"),
)


def listed() -> list[Screen]:
    """Every page whose address takes nothing."""
    return [Screen(path.strip("/").replace("/", "-") or "inbox", path) for path in addresses()]
