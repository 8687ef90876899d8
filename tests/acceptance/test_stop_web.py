"""A web process that is asked to stop finishes the requests at hand."""

from __future__ import annotations

import http.client
import json
import signal
from datetime import UTC, datetime

from ingest.api import keys
from tests.acceptance.stack import wait_for
from tests.acceptance.web import Web


def test_a_body_that_was_under_way_is_stored_and_answered(web: Web) -> None:
    key = keys.create("slow", ["telemetry"])
    rows = [{"unit": f"vm/{number}", "time": datetime.now(UTC).isoformat()} for number in range(100)]
    body = json.dumps(rows).encode()
    sender = http.client.HTTPConnection("127.0.0.1", web.port, timeout=30)
    sender.putrequest("POST", "/api/v1/telemetry/unit_failure")
    for name, value in {
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
    }.items():
        sender.putheader(name, value)
    sender.endheaders()
    sender.send(body[:100])
    (process,) = web.processes
    process.send_signal(signal.SIGTERM)
    wait_for(lambda: "Shutting down" in web.log.read_text() or process.poll() is not None, 30, "its goodbye")
    assert process.poll() is None
    sender.send(body[100:])
    answer = sender.getresponse()
    assert (answer.status, json.load(answer)["accepted"]) == (202, 100)
    process.wait(30)
    sender.close()
