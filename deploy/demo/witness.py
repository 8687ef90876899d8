"""A client of the incident API that prints the incidents that open and compares them with the truth."""

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
                # Last week's incidents take numbers, too, and would push the first ones off a page of fifty.
                self.look(self.sender.get("/api/v1/incidents?limit=200")["results"])
        except RequestRejectedError as error:
            self.screen.say(f"The incident API rejected a request of the demo: {error}")
        except SenderStoppedError:
            pass

    def look(self, incidents: Sequence[dict[str, Any]]) -> None:
        """Print new incidents with a verdict about the telemetry of the demo; `incidents` is newest first."""
        for incident in reversed(incidents):
            # Last week's incidents are of the demo's past, of which the stories' truth says nothing.
            past = datetime.fromisoformat(incident["opened_at"]) < self.demo.start
            if incident["verdict"] is None or past:
                continue
            before = self.seen.get(incident["id"])
            if before != incident["component"]:
                self.seen[incident["id"]] = incident["component"]
                self.screen.say(self._announcement(incident, before))
        self._sum_up()

    def _announcement(self, incident: dict[str, Any], before: str | None) -> str:
        """`before`: the component that the incident named until now, if it is known already."""
        name = incident["component"]
        story = next((s for s in self.demo.stories if name in (*s.components, *s.also_named)), None)
        truth = "the simulated truth has no such failure"
        if story:
            truth = f"right: {story.title}" if name in story.components else "right, and not yet the cause"
        # Nobody is ever quite sure, and rounding should not say so.
        sure = f", {min(incident['confidence'], 0.99):.0%} sure" if incident["confidence"] is not None else ""
        now = f", until now {before}" if before else ""
        head = f"  Incident #{incident['number']} at {incident['team']}: {name}{sure}{now}"
        return f"{head} ({truth})\n    {incident['url']}"

    def _sum_up(self) -> None:
        wanted = {component for story in self.demo.stories for component in story.components}
        if not self.summed_up and wanted <= set(self.seen.values()):
            self.summed_up = True
            self.screen.say(
                f"All {len(self.demo.stories)} stories are over, and every component at fault has its incident."
            )
