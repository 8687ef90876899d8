"""The command line against a served Dossier: a night on call in one story, refusals in one line, live updates."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import pytest
from django.contrib.auth import get_user_model
from django.core.handlers.wsgi import WSGIHandler
from django.db import connections

from deploy.client import actions, tail
from deploy.client.main import main
from deploy.client.server import Server
from deploy.client.settings import load_account
from incidents import commands
from incidents.commands import Report
from ingest.api import keys
from ingest.queries import Context, watermark
from tests.integration.analyzers.runs.cases import Door, healthy, work
from tests.integration.frontend.test_live import port as live_port  # noqa: F401  a fixture
from tests.integration.incidents.alerts.test_correlate import alert, send

SENDER = Context("key:monitoring")


class QuietHandler(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address(log_database: str) -> Iterator[str]:  # noqa: ARG001
    """The address of the server, in a thread of its own."""
    server = WSGIServer(("127.0.0.1", 0), QuietHandler)
    server.set_app(WSGIHandler())

    def serve() -> None:
        server.serve_forever(poll_interval=0.02)
        connections.close_all()

    thread = threading.Thread(target=serve)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


Run = Callable[..., str]


@pytest.fixture
def run(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Logs Alice in and runs commands: what they print, or with `code` their one line on stderr."""
    for name in ("DOSSIER_URL", "DOSSIER_KEY", "DOSSIER_USER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    get_user_model().objects.create(username="alice")
    key = keys.create("alice-laptop", ("incidents:read", "incidents:write"))
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{key}\n"))

    def command(*arguments: str, code: int = 0) -> str:
        assert main(arguments) == code
        printed = capsys.readouterr()
        if code:
            assert printed.err.count("\n") == 1
        return printed.err if code else printed.out

    assert f"Logged in to {address}" in command("login", address, "--user", "alice")
    return command


@pytest.mark.usefixtures("tally")
def test_a_night_on_call_is_worked_from_a_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    send(alert("disk7", component="storage_cluster/s7", labels={"alertname": "DiskSlow", "cluster": "s7"}))
    rows = [["sda", 91.25], ["sdb", 2]]
    table: dict[str, Any] = {"kind": "table", "title": "Disks", "columns": ["disk", "ms"], "rows": rows}
    commands.open_incident(
        Report("Rack 12 loses packets", component="tor/dc1-t12", evidence=(table,)), SENDER
    )

    listed = run("list")
    assert "#1" in listed
    assert "Rack 12 loses packets" in listed
    shown = run("show", "2")
    assert "91.25" in shown
    assert "event incident/" in shown

    assert "#2 acknowledged, team network, owner alice" in run("ack", "2")
    assert [one["number"] for one in json.loads(run("list", "--mine", "--json"))] == [2]
    assert "already acknowledged" in run("ack", "2", code=6)
    run("note", "2", "optic swapped")
    assert "optic swapped" in run("show", "2")
    assert "owner nobody" in run("assign", "2", "-")
    assert "team storage" in run("hand-over", "2", "storage", "the disks")
    assert "team network" in run("bounce", "2", "no disk involved")
    assert "snoozed" in run("snooze", "2", "2h", "--reason", "spare part")
    run("undo", "2")
    assert "resolved" in run("resolve", "2", "tor/dc1-t12", "--note", "optic replaced")
    assert "#2" not in run("list")
    assert "#2" in run("list", "--all")

    assert 'alertname="DiskSlow"' in run("silence", "1", "2h", "disk is being replaced")
    (silence,) = json.loads(run("silences", "--json"))
    assert (silence["state"], silence["created_by"]) == ("active", "alice-laptop")
    run("unsilence", silence["id"])
    assert run("silences") == ""

    Door().post(healthy(a=9))
    monkeypatch.setattr(actions, "sleep", lambda _: work())
    verdict = run("analyze", "tally", "--length", "1h")
    assert "tor/a" in verdict
    assert "run " in verdict
    assert "tally" in run("analyze")
    assert run("on-call") == ""


def test_what_the_server_rejects_is_one_line_with_a_code(
    run: Run, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands.open_incident(Report("Rack 12 loses packets"), SENDER)
    assert run("show", "99", code=5) == "dossier: there is no incident 99\n"
    assert "is not a field" in run("list", "foo:bar", code=2)
    assert "team" in run("hand-over", "1", "no-such-team", "because", code=2)
    assert "#1 has no firing alert to silence" in run("silence", "#1", "2h", "because", code=2)
    assert "no active account 'nobody'" in run("assign", "1", "nobody", code=2)
    monkeypatch.setenv("DOSSIER_KEY", keys.create("reader", ("incidents:read",)))
    assert run("ack", "1", code=4) == "dossier: The key lacks the scope incidents:write.\n"
    monkeypatch.setenv("DOSSIER_KEY", "dsr_unknown")
    assert "the key is refused: The key is not known" in run("list", code=4)
    monkeypatch.setenv("DOSSIER_URL", f"{address}/elsewhere")
    assert "check that it is the address of a Dossier" in run("list", code=1)
    monkeypatch.setenv("DOSSIER_URL", "http://127.0.0.1:1")
    assert run("list", code=3) == "dossier: cannot reach http://127.0.0.1:1: Connection refused\n"


@pytest.mark.usefixtures("run")
def test_changes_are_followed_live_and_after_a_break(
    live_port: int,  # noqa: F811
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings.EVENTS_URL = f"http://127.0.0.1:{live_port}/events"
    earlier = str(watermark())
    first = commands.open_incident(Report("Rack 12 loses packets"), SENDER).incident
    following = tail.changes(Server(load_account()), earlier)
    incident, entry = next(following)
    assert (incident["number"], entry["type"]) == (first.number, "incident.opened")
    # The stream opens after what was missed is printed, and begins where that ended.
    for text in ("optic swapped", "watching"):
        commands.comment(first.id, text, Context("user:alice"))
        _, entry = next(following)
        assert entry["body"]["text"] == text

    assert next(Server(load_account()).live(""))[0] == "open"

    # The server of the stream goes away: the rest comes by polling, and the loss is noted once.
    settings.EVENTS_URL = "http://127.0.0.1:1/events"
    following = tail.changes(Server(load_account()), entry["position"])
    monkeypatch.setattr(tail, "sleep", lambda _: commands.comment(first.id, "done", Context("user:alice")))
    _, entry = next(following)
    assert entry["body"]["text"] == "done"
    assert capsys.readouterr().err.count("trying again") == 1
