"""A web process that is asked to stop finishes the requests at hand."""

from __future__ import annotations

import json
import signal
import socket
from datetime import UTC, datetime

from ingest.api import keys
from tests.acceptance.stack import wait_for
from tests.acceptance.web import Web


def test_a_body_that_was_under_way_is_stored_and_answered(web: Web) -> None:
    key = keys.create("slow", ["telemetry"])
    rows = [{"unit": f"vm/{number}", "time": datetime.now(UTC).isoformat()} for number in range(100)]
    body = json.dumps(rows).encode()
    head = (
        "POST /api/v1/telemetry/unit_failure HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Authorization: Bearer {key}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        "Expect: 100-continue\r\n\r\n"
    )
    sender = socket.create_connection(("127.0.0.1", web.port), timeout=30)
    sender.sendall(head.encode())
    assert b"100 Continue" in sender.recv(1000)  # the request is being read
    sender.sendall(body[:100])
    (process,) = web.processes
    process.send_signal(signal.SIGTERM)
    wait_for(lambda: "Shutting down" in web.log.read_text() or process.poll() is not None, 30, "its goodbye")
    assert process.poll() is None
    sender.sendall(body[100:])
    with sender, sender.makefile("rb") as answer:
        text = answer.read()
    assert text.startswith(b"HTTP/1.1 202")
    assert b'"accepted":100' in text.replace(b" ", b"")
    process.wait(30)
