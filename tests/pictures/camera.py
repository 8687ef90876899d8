"""Takes the pictures of one Dossier, and keeps what was wrong with the pages."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Page

from tests.browser.looking import sticks_out, violations
from tests.pictures.book import Picture
from tests.pictures.screens import LIGHT, OFFLINE, README, Look, Screen
from tests.pictures.world import World

TALLEST = 6000  # pixels: nobody looks further down a picture


class Camera:
    def __init__(self, browser: Browser, directory: Path) -> None:
        self.browser, self.directory = browser, directory
        self.pictures: list[Picture] = []
        self.wrong: list[str] = []

    def take(self, world: World, part: str, screens: list[Screen], look: Look) -> None:
        began = time.monotonic()
        with self.signed_in(world, look) as context:
            for screen in screens:
                page = context.new_page()
                answer = page.goto(world.stack.address + screen.path.format(**world.places))
                if answer is None or answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                    self.note(f"{part}, {screen.name}, {look.name}: {answer and answer.status}")
                if screen.name in OFFLINE:
                    self._lose_connection(page)
                elif screen.do is not None:
                    self._settle(page)
                    screen.do(page)
                if look.paper:  # not before: charts that are not drawn are printed as their rows
                    self._settle(page)
                    page.emulate_media(media="print")
                self.shoot(page, part, screen, look)
                page.close()
                context.set_offline(False)
        sys.stdout.write(
            f"{part}, {look.name}: {len(screens)} pictures in {time.monotonic() - began:.0f} s\n"
        )
        sys.stdout.flush()

    def shoot(self, page: Page, part: str, screen: Screen, look: Look) -> None:
        self._settle(page)
        name = f"{part}-{screen.name}-{look.name}".replace(" ", "-").lower() + ".png"
        height = min(TALLEST, int(page.evaluate("document.documentElement.scrollHeight")))
        area = {"x": 0, "y": 0, "width": look.width, "height": max(height, look.height)}
        page.screenshot(path=self.directory / name, full_page=True, clip=area)  # type: ignore[arg-type]
        self.pictures.append(Picture(part, screen.name, look.name, name))
        where = f"{part}, {screen.name}, {look.name}"
        if look.name in ("light", "dark"):
            for line in violations(page):
                self.note(f"{where}: {line}")
        if sticks_out(page):
            self.note(f"{where}: wider than the screen")

    def note(self, line: str) -> None:
        """Keep it, and say it at once: the rest may take minutes."""
        self.wrong.append(line)
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    @staticmethod
    def _settle(page: Page) -> None:
        """Wait for what comes beside the page, and for charts that can be seen."""
        page.wait_for_load_state("networkidle" if page.locator("[hx-trigger^=load]").count() else "load")
        page.wait_for_timeout(400)
        for chart in page.locator("[data-chart] .chart").all():
            if chart.is_visible():
                chart.locator("svg").wait_for(timeout=60_000)

    @contextmanager
    def signed_in(self, world: World, look: Look) -> Iterator[BrowserContext]:
        context = self.browser.new_context(
            viewport={"width": look.width, "height": look.height},
            device_scale_factor=look.scale,
            color_scheme="dark" if look.theme == "dark" else "light",
        )
        context.on("weberror", lambda error: self.note(f"{_address(error.page)}: {error.error}"))
        page = context.new_page()
        page.goto(f"{world.stack.address}/accounts/login/")
        page.get_by_label("User name").fill(world.user)
        page.get_by_label("Password").fill(world.password)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{world.stack.address}/**")
        page.close()
        yield context
        context.close()

    def for_readme(self, world: World, place: Path) -> None:
        with self.signed_in(world, LIGHT) as context:
            for screen, height in README:
                page = context.new_page()
                page.goto(world.stack.address + screen.path.format(**world.places))
                self._settle(page)
                page.screenshot(
                    path=place / f"{screen.name}.png",
                    full_page=True,
                    clip={"x": 0, "y": 0, "width": LIGHT.width, "height": height},
                )
                page.close()

    @staticmethod
    def _lose_connection(page: Page) -> None:
        page.locator(".live[data-state=live]").wait_for()
        page.context.set_offline(True)
        page.locator(".live[data-state=offline]").wait_for(timeout=60_000)


def _address(page: Page | None) -> str:
    return page.url if page else "a page"
