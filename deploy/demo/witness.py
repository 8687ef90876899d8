"""Asks the ticket API as any client would; says which tickets open and whether they name the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deploy.demo.screen import Screen
from deploy.demo.sender import Refused, Sender, Stopped
from deploy.demo.world import Story

PERIOD = 1.0  # seconds between looks


class Witness:
    def __init__(self, sender: Sender, screen: Screen, stories: Sequence[Story]) -> None:
        self.sender, self.screen, self.stories = sender, screen, stories
        self.seen: dict[str, str] = {}
        """Component of every ticket seen, by its id."""
        self.summed_up = False

    def run(self) -> None:
        try:
            while not self.sender.stop.wait(PERIOD):
                for ticket in reversed(self.sender.get("/api/v1/incidents")["results"]):
                    # Without a verdict it was opened by a person, in the demo's past.
                    if ticket["id"] not in self.seen and ticket["verdict"] is not None:
                        self.seen[ticket["id"]] = ticket["component"]
                        self.screen.say(self._announcement(ticket))
                self._sum_up()
        except Refused as error:
            self.screen.say(f"The ticket API refused the demo's question: {error}")
        except Stopped:
            pass

    def _announcement(self, ticket: dict[str, Any]) -> str:
        story = next((s for s in self.stories if ticket["component"] in s.components), None)
        truth = f"right: {story.title}" if story else "the simulated truth has no such failure"
        # Nobody is ever quite sure, and rounding should not say so.
        sure = f", {min(ticket['confidence'], 0.99):.0%} sure" if ticket["confidence"] is not None else ""
        head = f"  Ticket #{ticket['number']} at {ticket['team']}: {ticket['component']}{sure}"
        return f"{head} ({truth})\n    {ticket['url']}"

    def _sum_up(self) -> None:
        wanted = {component for story in self.stories for component in story.components}
        if not self.summed_up and wanted <= set(self.seen.values()):
            self.summed_up = True
            self.screen.say(f"All {len(self.stories)} stories are told and each culprit has its ticket.")
