"""Services by Apprise, and what its plugins may do here."""

from __future__ import annotations

import logging
import socket
import threading

import pytest
from django.test import override_settings

from incidents.domain.values import InvalidValueError, Severity
from incidents.notifications.channels.apprise import SERVICES, check_service
from incidents.notifications.channels.connection_guard import AddressNotAllowedError, guarded
from incidents.notifications.models import ContactMethod
from tests.integration.incidents.notifications.cases import (
    HookSink,
    call,
    deliver,
    events,
    hook_sink,
    person,
    ticket,
)


def service(sink: HookSink, scheme: str = "json") -> None:
    address = sink.url.replace("http", scheme, 1) + "?+X-Token=t0psecret"
    rules = [{"method": "chat"}]
    ContactMethod.objects.create(user=person(rules=rules), name="chat", kind="apprise", address=address)


def test_a_service_gets_title_and_text(hooks: HookSink, log_database: str) -> None:
    del log_database
    service(hooks)
    incident = ticket()
    call(incident)
    deliver()
    ((headers, body),) = hooks.taken
    assert body["title"] == "[error] #1 Disks are slow"
    assert "Reason: you are on call" in body["message"]
    assert headers["X-Token"] == "t0psecret"
    assert events(incident) == [("sent", "chat", "accepted by JSON")]


@pytest.mark.parametrize(
    ("status", "outcome"), [(503, "failed"), (429, "failed"), (404, "given_up"), (302, "given_up")]
)
def test_the_status_that_a_service_answered_decides(
    hooks: HookSink, log_database: str, status: int, outcome: str
) -> None:
    del log_database
    hooks.answers = [(status, {"Location": f"{hooks.url}/elsewhere"})]
    service(hooks)
    incident = ticket()
    call(incident)
    deliver()
    assert events(incident)[0] == (outcome, "chat", f"JSON responded {status}")
    assert hooks.taken == []


@pytest.mark.usefixtures("log_database")
def test_a_service_that_is_not_there_is_asked_again() -> None:
    with override_settings(OUTBOUND_ALLOWED_NETWORKS=()), hook_sink() as sink:
        service(sink)
        sink.server.server_close()
        incident = ticket()
        call(incident)
        deliver()
    assert events(incident)[0] == ("failed", "chat", "no response from JSON")


@pytest.mark.usefixtures("log_database")
def test_a_service_inside_the_house_is_refused_at_the_connection(hooks: HookSink) -> None:
    service(hooks)
    incident = ticket()
    call(incident)
    with override_settings(OUTBOUND_ALLOWED_NETWORKS=()):
        deliver()
    outcome, _, why = events(incident)[0]
    assert outcome == "given_up"
    assert why.startswith("not sent to JSON: 127.0.0.1 is a loopback address")
    assert not hooks.asked.is_set()


@pytest.mark.usefixtures("log_database")
def test_what_apprise_writes_into_its_log_goes_nowhere_else(
    hooks: HookSink, caplog: pytest.LogCaptureFixture
) -> None:
    hooks.answers = [(500, {})]
    service(hooks)
    call(ticket())
    with caplog.at_level(logging.DEBUG):
        deliver()
    assert [line for line in caplog.text.splitlines() if "t0psecret" in line] == []


@pytest.mark.parametrize(
    "address",
    [
        "syslog://",
        "dbus://",
        "gnome://",
        "windows://",
        "macosx://",
        "blink1://",
        "workflows://host/id/sig?template=/etc/passwd",
        "fcm://project/device?keyfile=/etc/passwd",
        "json://example.com?attach=/etc/passwd",
        "workflows://host.example/id/sig?t%65mplate=/etc/passwd",
        "slack",
        "slack://",
        "nosuchservice://x",
        "://",
        "json://exa mple\0",
    ],
)
def test_an_address_that_is_none_or_reaches_into_the_server_is_refused(address: str) -> None:
    with pytest.raises(InvalidValueError) as refusal:
        check_service(address)
    assert refusal.value.field == "address"


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#channel", "Slack"),
        ("tgram://123456789:abcdefg_hijklmnop/12315544/", "Telegram"),
        ("mailto://alice:secret@example.com", "E-Mail"),
        ("twilio://AC" + "a" * 32 + ":" + "b" * 32 + "@15551230000/15551230001", "Twilio"),
    ],
)
def test_an_address_of_a_service_is_known_by_its_name(address: str, name: str) -> None:
    assert check_service(address) == name


@pytest.mark.parametrize(
    "address", ["mqtt://example.com/topic", "irc://example.com/#ops", "growl://example.com"]
)
def test_a_service_that_is_not_on_the_list_is_refused(address: str) -> None:
    with pytest.raises(InvalidValueError, match="is no supported service"):
        check_service(address)


def test_every_scheme_on_the_list_is_one_of_the_library() -> None:
    from apprise.manager_plugins import NotificationManager

    check_service("tgram://123456789:abcdefg_hijklmnop/12315544/")  # loads them
    known = NotificationManager().schemas()  # type: ignore[no-untyped-call]
    assert set(known) >= SERVICES


@pytest.mark.parametrize(
    "address", [("127.0.0.1", 22), ("169.254.169.254", 80), ("localhost", 80), ("10.0.0.1", 443)]
)
def test_guarded_code_connects_to_public_addresses_only(address: tuple[str, int]) -> None:
    with (
        override_settings(OUTBOUND_ALLOWED_NETWORKS=()),
        guarded(),
        socket.socket() as made,
        pytest.raises(AddressNotAllowedError),
    ):
        made.connect(address)


def test_the_guard_holds_in_its_own_thread_only(hooks: HookSink) -> None:
    reached: list[socket.socket] = []

    def connect() -> None:
        reached.append(socket.create_connection(("127.0.0.1", hooks.server.server_port)))

    with override_settings(OUTBOUND_ALLOWED_NETWORKS=()), guarded():
        thread = threading.Thread(target=connect)
        thread.start()
        thread.join()
    reached[0].close()


@pytest.mark.parametrize(
    ("severity", "loud"), [("critical", "failure"), ("warning", "warning"), ("info", "info")]
)
def test_a_service_hears_how_bad_it_is(
    hooks: HookSink, log_database: str, severity: Severity, loud: str
) -> None:
    del log_database
    service(hooks)
    call(ticket(severity=severity))
    deliver()
    assert hooks.taken[0][1]["type"] == loud
