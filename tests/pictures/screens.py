"""Screens that the book shows. An address with a place in braces is filled in from what the demo made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from playwright.sync_api import Page

from tests.browser.looking import addresses


@dataclass(frozen=True, slots=True)
class Screen:
    """A page, and what is done on it before it is looked at."""

    name: str
    path: str
    do: Callable[[Page], None] | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """A way to look at a screen. Zoom is what a browser does at 200 %: half the width, everything twice as large."""

    name: str
    width: int
    height: int
    theme: str = "light"
    scale: float = 1
    paper: bool = False


LIGHT: Final = Look("light", 1280, 800)
LOOKS: Final = (
    LIGHT,
    Look("dark", 1280, 800, theme="dark"),
    Look("narrow", 360, 740),
    Look("zoomed", 640, 400, scale=2),
)
PAPER: Final = Look("paper", 718, 1047, paper=True)
"""A4 within margins of a centimetre."""


def keys(*pressed: str) -> Callable[[Page], None]:
    """Press them one after the other, once the page listens."""

    def press(page: Page) -> None:
        for one in pressed:
            page.keyboard.press(one)
            page.wait_for_timeout(200)

    return press


def to_the_beginning(page: Page) -> None:
    """Of the incident's time travel."""
    page.locator(".travel summary").click()
    page.locator("[data-travel] input[type=range]").focus()
    page.keyboard.press("Home")
    page.wait_for_timeout(1000)


def into_the_grid(page: Page) -> None:
    page.locator("[role=gridcell]").focus()
    page.keyboard.press("ArrowRight")


def sending(form: str, **fields: str) -> Callable[[Page], None]:
    """Fill in the fields of these names and send the form: what is refused is shown beside them."""

    def send(page: Page) -> None:
        shown = page.locator(form)
        for name, value in fields.items():
            shown.locator(f"[name={name}]").first.fill(value)
        shown.evaluate("form => { form.noValidate = true; form.requestSubmit(); }")
        page.wait_for_load_state()
        page.locator(".problem").first.wait_for()

    return send


MADE: Final = (
    Screen("incident", "/incidents/{incident}"),
    Screen("incident-past", "/incidents/{incident}?as_of={then}"),
    Screen("incident-alerts", "/incidents/{alerted}"),
    Screen("incident-resolved", "/incidents/{resolved}"),
    Screen("incident-link", "/incidents/{voting}"),
    Screen("incident-node", "/incidents/{validator}"),
    Screen("incident-trace", "/incidents/{trace_blame}"),
    Screen("incident-from-list", "/incidents/{incident}?list=%2F"),
    Screen("inbox-search", "/?search=storage"),
    Screen("inbox-past", "/?as_of={then}"),
    Screen("inbox-nothing-found", "/?search=no+such+thing"),
    Screen("inbox-all", "/?tab=all"),
    Screen("inbox-resolved", "/?tab=resolved"),
    Screen("grid-inside", "/grid?rows=tor&columns=storage_cluster"),
    Screen("run", "/runs/{run}"),
    Screen("run-inputs", "/runs/{run}/inputs"),
    Screen("analyzer", "/analyzers/deepview"),
    Screen("component", "/components/{component}"),
    Screen("blast", "/incidents/{incident}/blast-radius"),
    Screen("similar", "/incidents/{incident}/similar"),
    Screen("rota", "/on-call/storage-primary?view=hours"),
    Screen("what-if", "/reports/what-if/tor-availability"),
    Screen("what-if-near-and-far", "/reports/what-if/colocation"),
    Screen("report", "/reports/{report}"),
    Screen("report-week", "/reports/{week}"),
)
OPEN: Final = (
    Screen("incident-assign", "/incidents/{incident}", keys("a")),
    Screen("incident-hand-over", "/incidents/{incident}", keys("h")),
    Screen("incident-resolve", "/incidents/{incident}", keys("r")),
    Screen("incident-severity", "/incidents/{incident}", keys("v")),
    Screen("incident-snooze", "/incidents/{incident}", keys("z")),
    Screen("incident-more", "/incidents/{incident}", keys("m")),
    Screen("incident-why", "/incidents/{incident}", keys("w")),
    Screen("incident-travel", "/incidents/{resolved}", to_the_beginning),
    Screen("inbox-chosen", "/", keys("j", "x", "j", "x")),
    Screen("palette", "/", keys("Control+k", "s", "t", "o")),
    Screen("shortcuts", "/", keys("?")),
    Screen("grid-cell", "/grid", into_the_grid),
)
"""Panels and dialogs, by their keys."""
WRONG: Final = (
    Screen("no-such-page", "/no-such-page"),
    Screen("no-such-incident", "/incidents/999999"),
    Screen("no-such-time", "/?as_of=yesterday"),
    Screen("no-such-tab", "/?tab=nonsense"),
    Screen("no-such-word", "/?search=state:nonsense"),
    Screen("no-such-run", "/runs/00000000-0000-0000-0000-000000000000"),
    Screen("no-such-component", "/components/tor/never-heard-of"),
    Screen("silence-refused", "/silences", sending("#new form", matchers="no matcher", comment="Planned")),
    Screen("inbox-offline", "/"),
    Screen("incident-offline", "/incidents/{incident}"),
    Screen("grid-offline", "/grid"),
)
OFFLINE: Final = frozenset({"inbox-offline", "incident-offline", "grid-offline"})
PRINTED: Final = (
    Screen("report", "/reports/{report}"),
    Screen("report-week", "/reports/{week}"),
    Screen("incident", "/incidents/{incident}"),
    Screen("run", "/runs/{run}"),
    Screen("what-if", "/reports/what-if/tor-availability"),
    Screen("rota", "/on-call/storage-primary"),
)
STORMY: Final = (
    Screen("inbox", "/"),
    Screen("incident-storm", "/incidents/{storm}"),
    Screen("storm-alone", "/?search=is%3Astorm"),
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
    Screen("chat", "/settings/chat"),
    Screen("audit", "/settings/audit"),
)
README: Final = (
    (Screen("inbox", "/"), 744),
    (Screen("incident", "/incidents/{incident}"), 1352),
    (Screen("grid", "/grid"), 792),
)
"""With the height of each picture, in pixels."""


def listed() -> tuple[Screen, ...]:
    """Every page whose address takes nothing."""
    return tuple(Screen(path.strip("/").replace("/", "-") or "inbox", path) for path in addresses())
