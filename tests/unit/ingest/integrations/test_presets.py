"""The ready mappings, at work on what the real systems sent with the configuration that comes with them."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import call_command

from ingest.integrations import recognition
from ingest.integrations.generic.apply import FORM, Item, mapping, receive
from ingest.integrations.generic.presets import ADDRESS, READY
from ingest.integrations.normalized import Alert
from tests.places import PAYLOADS

CHECKERS = ["nagios", "icinga"]


def item(sender: str, name: str) -> Item:
    path = next(PAYLOADS.joinpath(sender).glob(f"{name}.*"))
    media_type = FORM if path.suffix == ".form" else "application/json"
    [found] = receive(mapping(READY[sender].mapping), path.read_bytes(), media_type).items
    return found


def alert(sender: str, name: str) -> Alert:
    found = item(sender, name)
    assert found.alert is not None, found
    return found.alert


@pytest.mark.parametrize("sender", READY)
def test_every_ready_mapping_can_be_stored(sender: str) -> None:
    assert mapping(READY[sender].mapping).texts


@pytest.mark.parametrize("sender", READY)
def test_the_configuration_to_paste_has_the_integration_s_address(sender: str) -> None:
    pasted = "".join(text for _, text in READY[sender].configured("https://here/k"))
    assert "https://here/k" in pasted
    assert ADDRESS not in pasted


@pytest.mark.parametrize("sender", CHECKERS)
def test_a_service_fires_is_acknowledged_and_resolves_under_one_key(sender: str) -> None:
    story = [alert(sender, f"service-{name}") for name in ("problem", "acknowledgement", "recovery")]
    assert [step.status for step in story] == ["firing", "acknowledged", "resolved"]
    assert {step.key for step in story} == {"db-1!disk /var"}


@pytest.mark.parametrize("sender", CHECKERS)
def test_a_host_fires_and_resolves_under_a_key_of_its_own(sender: str) -> None:
    story = [alert(sender, f"host-{name}") for name in ("problem", "recovery")]
    assert [(step.status, step.key) for step in story] == [("firing", "db-1"), ("resolved", "db-1")]


@pytest.mark.parametrize("sender", CHECKERS)
def test_a_service_s_problem_has_all_that_a_ticket_shows(sender: str) -> None:
    found = alert(sender, "service-problem")
    assert (found.title, found.severity) == ("disk /var on db-1 is CRITICAL", "critical")
    assert (found.component, found.group) == ("host/db-1", "disk /var")
    assert found.links == ({"href": "https://wiki.example.com/disk", "text": "Notes"},)
    assert found.labels["address"] == "192.0.2.7"


def test_icinga_s_output_arrives_as_the_check_wrote_it() -> None:
    assert alert("icinga", "service-problem").description == (
        'DISK CRITICAL - 98% of "/var" \\ used, äöü; soon $5 & <full>\nSecond line'
    )


def test_nagios_takes_out_what_a_shell_would_understand() -> None:
    assert (
        alert("nagios", "service-problem").description
        == "DISK CRITICAL - 98% of /var \\ used, äöü: soon 5  full"
    )


@pytest.mark.parametrize("sender", CHECKERS)
def test_who_acknowledged_is_told(sender: str) -> None:
    assert "Acknowledged by alice: Alice:" in alert(sender, "service-acknowledgement").description


def test_a_problem_of_zabbix_fires_is_acknowledged_and_resolves_under_one_key() -> None:
    story = [alert("zabbix", name) for name in ("problem", "acknowledgement", "recovery")]
    assert [step.status for step in story] == ["firing", "acknowledged", "resolved"]
    assert {step.key for step in story} == {"event 1"}


def test_a_problem_of_zabbix_has_all_that_a_ticket_shows() -> None:
    found = alert("zabbix", "problem")
    assert (found.title, found.severity) == ('Disk "/var" of db-1 is full', "error")
    assert (found.component, found.group) == ("host/db-1", 'Disk "/var" of {HOST.NAME} is full')
    assert found.description == "Free it, or make it larger.\n\nNow: 98 %"
    assert found.labels == {
        "address": "192.0.2.7",
        "groups": "Linux servers",
        "host": "db-1",
        "scope": "capacity",
    }
    assert found.links == ({"href": "https://wiki.example.com/disk", "text": "Trigger"},)
    assert found.notes == ()


def test_downtimes_and_flapping_of_nagios_are_left_out_and_say_so() -> None:
    body = b"type=DOWNTIMESTART&host=db-1&state=UP"
    [found] = receive(mapping(READY["nagios"].mapping), body, FORM).items
    assert found.ignored == "downtime"


def test_what_to_paste_is_printed() -> None:
    out = StringIO()
    call_command("sender", "icinga", "--address", "https://here/integrations/generic/k", stdout=out)
    assert 'object NotificationCommand "dossier-service"' in out.getvalue()
    assert '"https://here/integrations/generic/k"' in out.getvalue()


def test_conditions_of_a_kubernetes_node_are_alerts_on_the_node() -> None:
    def read(name: str) -> dict[str, tuple[str, str, str | None]]:
        body = (PAYLOADS / "kubernetes" / f"{name}.json").read_bytes()
        assert recognition.recognised(json.loads(body)) is READY["kubernetes"]
        found = receive(mapping(READY["kubernetes"].mapping), body, "application/json").items
        alerts = [one.alert for one in found if one.alert is not None]
        assert len(alerts) + sum("does not report" in one.ignored for one in found) == len(found)
        return {one.key: (one.status, one.severity, one.component) for one in alerts}

    node = "node/gpu-17"
    fired, over = read("firing"), read("resolved")
    assert fired["gpu-17 KernelDeadlock"] == ("firing", "critical", node)
    assert over["gpu-17 KernelDeadlock"] == ("resolved", "critical", node)
    assert {status for status, *_ in (*over.values(), fired["gpu-17 Ready"])} == {"resolved"}
    assert read("unknown") == {"gpu-17 Ready": ("firing", "critical", node)}
