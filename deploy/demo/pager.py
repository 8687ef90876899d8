"""The pagers of the demo's people: a webhook receiver on the loopback address that shows each page as a line."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from deploy.demo.screen import Screen

LOOPBACK = "127.0.0.1"
LONGEST = 1 << 20
MOST_REMEMBERED = 1000


class Pager(ThreadingHTTPServer):
    """Receives pages at `/PERSON`; listens at `port`, or where that is taken at one that is free."""

    daemon_threads = True

    def __init__(self, screen: Screen, port: int) -> None:
        self.screen = screen
        self.received: list[str] = []
        """Ids of messages, the latest last: one that is sent again is shown once."""
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError:
            super().__init__((LOOPBACK, 0), _Handler)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    def start(self) -> None:
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def show(self, person: str, message: Mapping[str, Any]) -> None:
        if message.get("id") in self.received:
            return
        self.received = [*self.received[-MOST_REMEMBERED:], str(message.get("id"))]
        if message.get("type") != "test":
            self.screen.say(page_line(person, message))


def page_line(person: str, message: Mapping[str, Any]) -> str:
    """`  Pager of NAME: #12 TITLE, and 2 more`, of the body of a notification webhook."""
    paged = message.get("incidents") or []
    if not paged:
        return f"  Pager of {person}: {message.get('text', '')}"
    rest = int(message.get("total", len(paged))) - 1
    more = f", and {rest} more" if rest > 0 else ""
    return f"  Pager of {person}: #{paged[0]['number']} {paged[0]['title']}{more}"


class _Handler(BaseHTTPRequestHandler):
    server: Pager

    def do_POST(self) -> None:  # the name is http.server's
        length = int(self.headers.get("Content-Length") or 0)
        try:
            message = json.loads(self.rfile.read(min(length, LONGEST)))
        except ValueError:
            message = None
        if isinstance(message, dict):
            self.server.show(self.path.strip("/"), message)
        self.send_response(204 if isinstance(message, dict) else 400)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the page itself is shown."""
