"""`dossier tail`: changes of incidents as they happen, over the live-updates stream, with polling where it is away."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from datetime import datetime
from time import sleep
from typing import Any

from .errors import NOT_FOUND, UNREACHABLE, ClientError
from .server import Server
from .settings import Account
from .text import Screen, clean, cut

PAUSE, LONGEST_PAUSE = 1.0, 15.0
"""Seconds between two tries to listen: doubled after each failure."""
MOST = 200
"""Changed incidents that are read after a break."""


def tail(given: Namespace, screen: Screen, server: Server, _: Account) -> None:
    """Print every new entry of every timeline, until interrupted."""
    for incident, entry in changes(server, given.after):
        if given.team and incident["team"] not in given.team:
            continue
        if given.json:
            print(json.dumps({"incident": incident, "event": entry}, ensure_ascii=False), flush=True)
        else:
            print(change_line(incident, entry, screen), flush=True)


def change_line(incident: Mapping[str, Any], entry: Mapping[str, Any], screen: Screen) -> str:
    """Local time (with the day, where it is another), incident, and the event as a sentence."""
    at = datetime.fromisoformat(entry["last_at"]).astimezone()
    time = f"{at:%H:%M:%S}" if at.date() == screen.now.astimezone().date() else f"{at:%Y-%m-%d %H:%M:%S}"
    what = f"{incident['severity']}  {incident['team']}  {clean(incident['title'])}: {clean(entry['text'])}"
    return cut(f"{time}  #{incident['number']}  {what}", screen.width)


def changes(server: Server, after: str = "") -> Iterator[tuple[Any, Any]]:
    """Incidents with each new entry of their timelines, from log position `after` ("": from now), for ever.

    A lost connection is reported once on stderr and retried; what happened meanwhile follows. Raises ClientError
    where the server answers and refuses, and where it cannot be reached at the start.
    """
    follower = Follower(server, after or newest(server))
    pause, away = PAUSE, False
    while True:
        try:
            yield from follower.missed()
            for event, position, data in server.live(follower.position):
                if away:
                    print("connected again", file=sys.stderr)
                pause, away = PAUSE, False
                if event == "bye":
                    break
                if event == "reset":
                    yield from follower.missed()
                elif event == "change" and data["about"] == "incidents":
                    yield from follower.of_incident(data["id"], position)
        except ClientError as error:
            if error.code not in (UNREACHABLE, 1):
                raise
            if not away:
                print(f"{error}; trying again", file=sys.stderr)
            away = True
            sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


def newest(server: Server) -> str:
    """The position of the incident that changed last; "" where there is no incident."""
    found, _ = server.incidents([("order", "updated")], 1)
    return str(found[0]["position"]) if found else ""


class Follower:
    """Printed position of the log: of the stream, and of each incident. A batch of the stream has one message for an
    incident, at its last event, so that earlier events of it may come after a later one of another."""

    def __init__(self, server: Server, position: str) -> None:
        self.server, self.position = server, position
        self._start = position
        self._printed: dict[str, str] = {}

    def missed(self) -> Iterator[tuple[Any, Any]]:
        """Changes since the last printed position, oldest incident first."""
        query = [("order", "updated"), ("position_after", self.position)] if self.position else []
        found, _ = self.server.incidents(query, MOST)
        for incident in reversed(found):
            yield from self._entries(incident)

    def of_incident(self, id: str, position: str) -> Iterator[tuple[Any, Any]]:
        """The new entries of one incident; none where it is gone."""
        try:
            incident = self.server.incident(id)
        except ClientError as error:
            if error.code != NOT_FOUND:
                raise
            return
        yield from self._entries(incident)
        self.position = max(self.position, position)

    def _entries(self, incident: Any) -> Iterator[tuple[Any, Any]]:
        since = self._printed.get(incident["id"], self._start)
        for entry in self.server.incident(incident["id"], "events")["results"]:
            if entry["position"] > since:
                yield incident, entry
                self._printed[incident["id"]] = entry["position"]
                self.position = max(self.position, entry["position"])
