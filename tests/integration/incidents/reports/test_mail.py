"""Reports by mail, through a mail server that listens on this machine."""

from __future__ import annotations

import asyncio
import email
import email.policy
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage

import pytest
from django.test import Client, override_settings

from incidents import commands
from incidents.commands import Report
from incidents.reports import mail as mailing
from incidents.reports.models import ReportEmail, ReportSchedule, Subscription
from incidents.reports.periods import Period
from incidents.reports.produce import produce
from ingest.commands import lease
from ingest.queries import Context

NOW = datetime.now(UTC)
ALICE = "alice@example.com"
SOON = NOW + timedelta(hours=1)  # after everything that a test does
pytestmark = pytest.mark.usefixtures("log_database")


class MailServer:
    """A mail server as RFC 5321 has it, as far as a sender needs one. `answer` is what it says to RCPT."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.answer = "250 ok"
        self.loop = asyncio.new_event_loop()
        self.server = self.loop.run_until_complete(
            asyncio.start_server(self._talk, "127.0.0.1", 0, limit=2**24)
        )
        self.port = self.server.sockets[0].getsockname()[1]
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 here\r\n")
        while line := (await reader.readline()).decode().strip():
            verb = line.split(" ")[0].upper()
            if verb == "DATA":
                writer.write(b"354 go on\r\n")
                body = (await reader.readuntil(b"\r\n.\r\n"))[:-3]
                message = email.message_from_bytes(body, policy=email.policy.default)
                assert isinstance(message, EmailMessage)
                self.mails.append(message)
            said = self.answer if verb == "RCPT" else "221 bye" if verb == "QUIT" else "250 ok"
            writer.write(f"{said}\r\n".encode())
            if verb == "QUIT":
                break
        writer.close()

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.server.close)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(5)
        self.loop.close()


@pytest.fixture
def server() -> Iterator[MailServer]:
    running = MailServer()
    with override_settings(
        EMAIL_BACKEND="django.core.mail.backends.smtp.EmailBackend",
        EMAIL_HOST="127.0.0.1",
        EMAIL_PORT=running.port,
        EMAIL_IS_SET_UP=True,
    ):
        yield running
    running.stop()


@pytest.fixture
def daily(log_database: str) -> ReportSchedule:  # noqa: ARG001
    schedule = ReportSchedule.objects.get(name="daily")
    Subscription.objects.create(schedule=schedule, address=ALICE)
    commands.open_incident(Report(title="Disks fail", component="storage_cluster/s7"), Context("user:alice"))
    produce(schedule, Period("daily", NOW.date()), NOW)
    return schedule


@pytest.mark.usefixtures("daily")
def test_a_subscriber_gets_text_html_a_picture_and_the_csv(server: MailServer) -> None:
    assert mailing.send_waiting(SOON) == 1
    (mail,) = server.mails
    parts = {part.get_content_type(): part for part in mail.walk() if not part.is_multipart()}
    assert set(parts) == {"text/plain", "text/html", "image/png", "text/csv"}
    assert all("Disks fail" in parts[name].get_content() for name in ("text/plain", "text/html", "text/csv"))
    assert parts["image/png"].get_content().startswith(b"\x89PNG")
    assert 'src="cid:chart0"' in parts["text/html"].get_content()


@pytest.mark.usefixtures("daily")
def test_a_mail_is_sent_once(server: MailServer) -> None:
    later = SOON
    assert [mailing.send_waiting(later), mailing.send_waiting(later + timedelta(days=1))] == [1, 0]
    assert len(server.mails) == 1


@pytest.mark.usefixtures("daily")
def test_a_passing_refusal_is_tried_again(server: MailServer) -> None:
    server.answer = "451 later"
    assert mailing.send_waiting(SOON) == 0
    server.answer = "250 ok"
    assert mailing.send_waiting(SOON + timedelta(seconds=30)) == 0
    assert mailing.send_waiting(SOON + timedelta(minutes=6)) == 1


@pytest.mark.usefixtures("daily")
def test_a_refusal_for_good_is_kept_with_its_reason(server: MailServer) -> None:
    server.answer = "550 no such person"
    mailing.send_waiting(SOON)
    found = ReportEmail.objects.get()
    assert (found.state, "no such person" in found.error) == ("refused", True)


@pytest.mark.usefixtures("daily")
def test_a_mail_that_another_process_sends_is_left_to_it(server: MailServer) -> None:
    key = ReportEmail.objects.get().pk
    mine = lease.take_up(ReportEmail, key, SOON)
    assert mine is not None
    assert mailing.send_waiting(SOON) == 0
    lease.let_go(mine)  # as at the end of the process
    assert mailing.send_waiting(SOON) == 1
    assert not lease.write(mine, state="refused")
    assert len(server.mails) == 1


@pytest.mark.usefixtures("daily")
def test_without_a_mail_server_mails_wait() -> None:
    assert mailing.send_waiting(NOW + timedelta(days=1)) == 0
    assert ReportEmail.objects.get().state == "queued"


def test_one_click_in_a_mail_ends_the_subscription(daily: ReportSchedule) -> None:
    link = f"/reports/unsubscribe/{mailing.token(daily.subscriptions.get())}"
    anyone = Client()
    assert anyone.get(link).status_code == 200
    assert daily.subscriptions.count() == 1  # scanners of mail look at links
    assert anyone.post(link).status_code == 200
    assert daily.subscriptions.count() == 0


def test_a_forged_link_ends_nothing(daily: ReportSchedule) -> None:
    link = f"/reports/unsubscribe/{mailing.token(daily.subscriptions.get())}x"
    assert Client().post(link).status_code == 404
    assert daily.subscriptions.count() == 1


def test_who_left_before_the_mail_went_out_gets_none(daily: ReportSchedule, server: MailServer) -> None:
    mailing.unsubscribe(daily.name, ALICE)
    assert mailing.send_waiting(SOON) == 0
    assert server.mails == []
