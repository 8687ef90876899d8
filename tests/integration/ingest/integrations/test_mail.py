"""Mails to a real SMTP server of ours: committed before 250, refused as their senders understand it."""

from __future__ import annotations

import asyncio
import os
import smtplib
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import OperationalError, connection
from django.test import Client

from deploy.supervisor.programs import programs
from incidents import queries
from incidents.follower import follower
from ingest import heartbeat
from ingest.alerts.deliveries import delivered
from ingest.api import admission, keys, mail
from ingest.api.models import IntegrationKey
from tests.following import follow_to_the_end
from tests.senders.recording import throw_away_certificate

pytestmark = pytest.mark.usefixtures("log_database")


@pytest.fixture
def port(log_database: str) -> Iterator[int]:  # noqa: ARG001
    """Port at which mail is received."""
    loop, endpoint = asyncio.new_event_loop(), mail.SmtpHandler()
    server = loop.run_until_complete(mail.listen(("127.0.0.1", 0), endpoint))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield server.sockets[0].getsockname()[1]
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    server.close()
    loop.run_until_complete(_let_go())
    endpoint.close()
    loop.close()


async def _let_go() -> None:
    """Connections that are open end with their tasks."""
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def an_address(name: str = "fans", **more: object) -> str:
    keys.create(name, ["alerts"], **more)  # type: ignore[arg-type]
    row = IntegrationKey.objects.get(name=name)
    return f"{keys.mail_token(bytes(row.digest))}@dossier.example.com"


def a_mail(subject: str, text: str = "98 % of /var", **headers: str) -> EmailMessage:
    told = EmailMessage()
    told["From"], told["To"], told["Subject"] = "monitor@example.com", "dossier", subject
    for name, value in headers.items():
        told[name.replace("_", "-")] = value
    told.set_content(text)
    return told


def send(port: int, address: str, message: EmailMessage, tls: ssl.SSLContext | None = None) -> str:
    """Answer of the server to a message."""
    with smtplib.SMTP("localhost", port, timeout=20) as server:
        server.ehlo()
        if tls is not None:
            server.starttls(context=tls)
            server.ehlo()
        server.mail("monitor@example.com")
        code, said = server.rcpt(address)
        if code != 250:
            return f"{code} {said.decode()}"
        code, said = server.data(message.as_bytes(policy=SMTP))
        return f"{code} {said.decode()}"


def tickets() -> list[tuple[str, str]]:
    follow_to_the_end(follower())
    return [(view.incident.title, view.incident.state) for view in queries.list_incidents().items]


def events() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM log_event")
        return int(cursor.fetchone()[0])


def test_a_mail_opens_a_ticket_and_the_mail_of_its_recovery_resolves_it(port: int) -> None:
    address = an_address()
    assert send(port, address, a_mail("PROBLEM: Fan 2 of db-1")).startswith("250 2.0.0 Committed, receipt ")
    assert tickets() == [("PROBLEM: Fan 2 of db-1", "open")]
    send(port, address, a_mail("RECOVERY: Fan 2 of db-1"))
    assert tickets() == [("PROBLEM: Fan 2 of db-1", "resolved")]


def test_the_receipt_in_the_answer_holds_the_mail_as_it_came(port: int) -> None:
    said = send(port, an_address(), a_mail("Fan 2 stands still"))
    reader = keys.create("reader", ["incidents:read"])
    path = f"/api/v1/receipts/{said.rpartition(' ')[2].strip()}"
    receipt = Client().get(path, HTTP_AUTHORIZATION=f"Bearer {reader}").json()
    assert receipt["outcome"] == "1 fired"
    assert (receipt["payload"]["endpoint"], receipt["payload"]["content_type"]) == ("mail", "message/rfc822")


def test_the_mail_is_kept_without_the_address_that_anybody_could_send_to(port: int) -> None:
    address = an_address()
    said = send(port, address, a_mail("Fan 2", Delivered_To=address.upper()))
    kept = delivered(said.rpartition(" ")[2].strip())
    assert kept is not None
    assert b"Delivered-To: ...@DOSSIER" in kept.payload


@pytest.mark.parametrize("form", ["{}", "dossier+{}"])
def test_an_address_is_the_same_in_capitals_and_behind_a_plus(port: int, form: str) -> None:
    assert send(port, form.format(an_address()).upper(), a_mail("Fan")).startswith("250")


@pytest.mark.parametrize("more", [{"endpoints": ["grafana"]}, {"scopes": ["telemetry"]}])
def test_a_key_for_other_things_has_no_address(port: int, more: dict[str, list[str]]) -> None:
    keys.create("other", more.get("scopes", ["alerts"]), endpoints=more.get("endpoints", ()))
    token = keys.mail_token(bytes(IntegrationKey.objects.get(name="other").digest))
    assert send(port, f"{token}@x", a_mail("Fan")).startswith("550 5.1.1")


def test_a_revoked_integration_and_a_guessed_address_are_refused(port: int) -> None:
    address = an_address()
    keys.revoke("fans")
    for wrong in (address, f"{'a' * 32}@x", "postmaster@x", "dsr_x@x"):
        assert send(port, wrong, a_mail("Fan")).startswith("550 5.1.1")
    assert events() == 0


def test_after_a_rotation_both_addresses_are_good_for_the_overlap(port: int) -> None:
    before = an_address()
    keys.rotate("fans", timedelta(hours=1))
    after = f"{keys.mail_token(bytes(IntegrationKey.objects.get(name='fans').digest))}@x"
    assert [send(port, one, a_mail("Fan"))[:3] for one in (before, after)] == ["250", "250"]


def test_an_automatic_answer_is_refused_for_good_with_the_reason(port: int) -> None:
    said = send(port, an_address(), a_mail("I am on holiday", Auto_Submitted="auto-replied"))
    assert said.startswith("554 5.6.0")
    assert "automatic answer" in said
    assert events() == 0


def test_without_its_database_it_says_later(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise OperationalError("the server closed the connection unexpectedly")

    monkeypatch.setattr(mail, "receive", away)
    assert send(port, an_address(), a_mail("Fan")).startswith("451 4.3.0")


def test_what_nobody_thought_of_is_not_refused_for_good(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(mail, "receive", broken)
    assert send(port, an_address(), a_mail("Fan")).startswith("451 4.3.0")


def test_an_integration_that_sends_too_much_is_told_to_come_later(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    used_up = admission.Intake(0.01, 16)
    monkeypatch.setattr(admission, "intake", lambda: used_up)
    address = an_address()
    assert [send(port, address, a_mail("Fan"))[:9] for _ in range(2)] == ["250 2.0.0", "451 4.7.1"]


def test_a_mail_above_the_limit_is_refused_and_one_above_a_mebibyte_is_taken(port: int) -> None:
    address = an_address()
    assert send(port, address, a_mail("Graph", "x" * 70 + "\n" + ("y" * 70 + "\n") * 20_000)).startswith(
        "250"
    )
    too_large = ("y" * 900 + "\n") * (settings.INBOUND_EMAIL_MAX_BODY // 900 + 10)
    assert send(port, address, a_mail("Huge", too_large)).startswith("552")
    assert [title for title, _ in tickets()] == ["Graph"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT max(length(payload)) FROM alert_delivery")
        assert cursor.fetchone()[0] < 2**20


def test_a_line_that_never_ends_ends_the_connection(port: int) -> None:
    address = an_address()
    with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
        for told in ("EHLO a", "MAIL FROM:<a@b>", f"RCPT TO:<{address}>", "DATA"):
            line.sendall(told.encode() + b"\r\n")
            line.recv(4_000)
        with pytest.raises(OSError):
            line.sendall(b"x" * (10 * settings.INBOUND_EMAIL_MAX_BODY))
    assert send(port, address, a_mail("Fan")).startswith("250")


def test_one_mail_is_for_one_integration(port: int) -> None:
    first, second = an_address("a"), an_address("b")
    with smtplib.SMTP("127.0.0.1", port, timeout=20) as server:
        server.ehlo()
        server.mail("<>")
        assert server.rcpt(first)[0] == 250
        assert server.rcpt(second)[0] == 452


def test_the_mapping_of_the_integration_reads_its_mails(port: int) -> None:
    mapping = {"title": "$.text", "key": {"from": "$.subject", "find": "#([0-9]+)"}, "severity": "error"}
    send(port, an_address(mapping=mapping), a_mail("Case #12", "Pump stands still"))
    assert [title for title, _ in tickets()] == ["Pump stands still"]


def test_the_process_receives_mails_behind_tls_until_it_is_told_to_end(
    log_database: str, tmp_path: Path
) -> None:
    address, (certificate, key) = an_address(), throw_away_certificate(tmp_path)
    command = [sys.executable, "manage.py", "receive_mail", "--port", "0"]
    environment = {**os.environ, "DATABASE_URL": log_database, "DJANGO_SETTINGS_MODULE": "deploy.settings"}
    environment |= {
        "DOSSIER_INBOUND_EMAIL_CERTIFICATE": str(certificate),
        "DOSSIER_INBOUND_EMAIL_CERTIFICATE_KEY": str(key),
    }
    trusting = ssl.create_default_context(cafile=str(certificate))
    with subprocess.Popen(
        command, env=environment, cwd=settings.BASE_DIR, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            said = process.stdout.readline()
            assert said.startswith("mail is received on port ")
            told = a_mail("Fan 2 stands still")
            port = int(said.split()[-1])
            assert send(port, address, told, trusting).startswith("250")
            with smtplib.SMTP("localhost", port, timeout=20) as begun:
                process.terminate()
                _wait_until_closed(port)
                assert begun.noop()[0] == 250  # what is begun goes on for a moment
                assert begun.getreply() == (421, b"4.3.2 The server is restarted; come again later")
            assert process.wait(60) == 0
        finally:
            process.kill()
    assert tickets() == [("Fan 2 stands still", "open")]


def _wait_until_closed(port: int) -> None:
    for _ in range(1_000):
        try:
            with suppress(ConnectionResetError):  # it closes just now: the next connection is refused
                socket.create_connection(("localhost", port), 5).close()
        except ConnectionRefusedError:
            return
        time.sleep(0.005)
    pytest.fail("the port stays open")


def test_the_process_shows_by_a_heartbeat_that_its_event_loop_goes_on(tmp_path: Path) -> None:
    beat = tmp_path / "beat"
    environment = {**os.environ, heartbeat.VARIABLE: str(beat), "DJANGO_SETTINGS_MODULE": "deploy.settings"}
    command = [sys.executable, "manage.py", "receive_mail", "--port", "0"]
    with subprocess.Popen(
        command, env=environment, cwd=settings.BASE_DIR, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("mail is received")
            deadline = time.monotonic() + 30
            while not (beat.exists() and beat.read_text() == f"{process.pid}\n"):
                assert time.monotonic() < deadline
                time.sleep(0.05)
        finally:
            process.kill()


def test_everything_starts_it_only_where_a_port_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "mail" not in [program.name for program in programs()]
    monkeypatch.setattr(settings, "INBOUND_EMAIL_PORT", 2525)
    (found,) = [program for program in programs() if program.name == "mail"]
    assert found.beats


def test_the_page_shows_the_address_to_staff_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "INBOUND_EMAIL_PORT", 2525)
    token = an_address().partition("@")[0]
    for name, is_staff in (("alice", True), ("charlie", False)):
        client = Client()
        client.force_login(get_user_model().objects.create(username=name, is_staff=is_staff))
        assert (token in client.get("/integrations").content.decode()) is is_staff
