"""Real senders with forms of their own: PagerDuty's client over https, Nagios, Icinga and Zabbix by mapping."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable
from contextlib import AbstractContextManager
from io import StringIO
from pathlib import Path
from ssl import create_default_context

import pagerduty
import pytest
from django.core.management import call_command

from incidents import queries
from incidents.follower import follower
from ingest.api import keys
from tests.acceptance.stack import wait_for
from tests.acceptance.web import Web
from tests.following import follow_to_the_end
from tests.senders.checkers import ICINGA, NAGIOS, Watched, icinga, nagios
from tests.senders.daemons import missing
from tests.senders.recording import Recorded, Recorder, throw_away_certificate
from tests.senders.zabbix import ZABBIX, zabbix


def tickets() -> list[tuple[str, str]]:
    follow_to_the_end(follower())
    return [(view.incident.title, view.incident.state) for view in queries.list_incidents().items]


def test_pagerduty_s_client_triggers_acknowledges_and_resolves_over_https(web: Web, tmp_path: Path) -> None:
    def forward(request: Recorded) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json"}
        told = urllib.request.Request(f"{web.address}{request.path}", request.body, headers)
        with urllib.request.urlopen(told, timeout=60) as answer:
            return answer.status, answer.read()

    certificate = throw_away_certificate(tmp_path)
    trusting = create_default_context(cafile=str(certificate[0]))
    key = keys.create("pagerduty", ["alerts"])
    with (
        Recorder(forward, certificate) as proxy,
        pagerduty.EventsApiV2Client(key, base_url=proxy.url, verify=trusting) as client,
    ):
        named = client.trigger("Ping of db-1 fails", "db-1.example.com", dedup_key="db-1/ping")
        assert (named, tickets()) == ("db-1/ping", [("Ping of db-1 fails", "open")])
        client.acknowledge("db-1/ping")
        assert tickets() == [("Ping of db-1 fails", "acknowledged")]
        client.resolve("db-1/ping")
        assert tickets() == [("Ping of db-1 fails", "resolved")]


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(bool(missing(program)), reason=missing(program))


@pytest.mark.parametrize(
    ("name", "start"),
    [
        pytest.param("nagios", nagios, marks=needs(NAGIOS)),
        pytest.param("icinga", icinga, marks=needs(ICINGA)),
    ],
)
def test_a_service_s_problem_opens_a_ticket_is_acknowledged_and_resolves(
    web: Web, tmp_path: Path, name: str, start: Callable[[Path, str], AbstractContextManager[Watched]]
) -> None:
    out = StringIO()
    call_command("create_key", name, "--scope", "alerts", "--mapping", name, stdout=out)
    title = "disk /var on db-1 is CRITICAL"
    with start(tmp_path, f"{web.address}/integrations/generic/{out.getvalue().strip()}") as watched:
        watched.say("db-1-disk", 2, "DISK CRITICAL")
        wait_for(lambda: tickets() == [(title, "open")], 120, "the incident")
        watched.acknowledge("db-1", "disk /var", "alice", "looking at it")
        wait_for(lambda: tickets() == [(title, "acknowledged")], 120, "the acknowledgement")
        watched.say("db-1-disk", 0, "DISK OK")
        wait_for(lambda: tickets() == [(title, "resolved")], 120, "its end")


@pytest.mark.soak
@needs(ZABBIX)
def test_a_problem_of_zabbix_opens_a_ticket_is_acknowledged_and_resolves(web: Web, tmp_path: Path) -> None:
    out = StringIO()
    call_command("create_key", "zabbix", "--scope", "alerts", "--mapping", "zabbix", stdout=out)
    title = 'Disk "/var" of db-1 is full'
    with zabbix(tmp_path, f"{web.address}/integrations/generic/{out.getvalue().strip()}") as server:
        server.send(98)
        wait_for(lambda: tickets() == [(title, "open")], 120, "the incident")
        server.acknowledge("Alice looks at it")
        wait_for(lambda: tickets() == [(title, "acknowledged")], 120, "the acknowledgement")
        server.send(10)
        wait_for(lambda: tickets() == [(title, "resolved")], 120, "its end")
