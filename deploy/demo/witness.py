"""Asks the incident API as any client would; says which incidents open and whether they name the truth."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from deploy.demo.screen import Screen
from deploy.demo.sender import RequestRejectedError, Sender, SenderStoppedError
from deploy.demo.world import Demo

PERIOD = 1.0  # seconds between looks


class Witness:
    def __init__(self, sender: Sender, screen: Screen, demo: Demo) -> None:
        self.sender, self.screen, self.demo = sender, screen, demo
        self.seen: dict[str, str] = {}
        """Component of every incident seen, by its id."""
        self.summed_up = False

    def run(self) -> None:
        try:
            while not self.sender.stop.wait(PERIOD):
                self.look(self.sender.get("/api/v1/incidents")["results"])
        except RequestRejectedError as error:
            self.screen.say(f"The incident API refused the demo's question: {error}")
        except SenderStoppedError:
            pass

    def look(self, tickets: Sequence[dict[str, Any]]) -> None:
        """Say which of these, newest first, are new and opened on a verdict about what the demo tells."""
        for ticket in reversed(tickets):
            # Last week's incidents are of the demo's past, of which the stories' truth says nothing.
            past = datetime.fromisoformat(ticket["opened_at"]) < self.demo.start
            if ticket["id"] not in self.seen and ticket["verdict"] is not None and not past:
                self.seen[ticket["id"]] = ticket["component"]
                self.screen.say(self._announcement(ticket))
        self._sum_up()

    def _announcement(self, ticket: dict[str, Any]) -> str:
        story = next((s for s in self.demo.stories if ticket["component"] in s.components), None)
        truth = f"right: {story.title}" if story else "the simulated truth has no such failure"
        # Nobody is ever quite sure, and rounding should not say so.
        sure = f", {min(ticket['confidence'], 0.99):.0%} sure" if ticket["confidence"] is not None else ""
        head = f"  Incident #{ticket['number']} at {ticket['team']}: {ticket['component']}{sure}"
        return f"{head} ({truth})\n    {ticket['url']}"

    def _sum_up(self) -> None:
        wanted = {component for story in self.demo.stories for component in story.components}
        if not self.summed_up and wanted <= set(self.seen.values()):
            self.summed_up = True
            self.screen.say(
                f"All {len(self.demo.stories)} stories are told and each culprit has its incident."
            )
