"""Reports by mail: subscriptions, a row for each mail, and its text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from email.mime.image import MIMEImage
from typing import Any

from django.conf import settings
from django.core import signing
from django.core.mail import EmailMultiAlternatives, get_connection
from django.core.mail.backends.base import BaseEmailBackend
from django.db import transaction
from django.template.loader import render_to_string
from django.urls import reverse

from incidents.reports.charts import ChartRenderError, charts, drawn
from incidents.reports.csv import csv_of
from incidents.reports.models import ProducedReport, ReportEmail, ReportSchedule, Subscription
from incidents.worker.mail_queue import MailRefusedError, send_due
from ingest.commands import record_configuration, retrying
from ingest.integrations.mail import OWN_HEADER
from ingest.queries import Context

KIND = "report_subscription"
"""Kind of a subscription in the log of changes."""
BY_MAIL = Context("system:reports")
"""Actor of a mail's link, who need not have an account."""
SALT = "reports.unsubscribe"
GIVEN_UP = timedelta(days=7)
AT_ONCE = 100
Json = Mapping[str, Any]


def address_to_subscribers(schedule: ReportSchedule, report: ProducedReport) -> None:
    """One mail for every subscriber, in the transaction that records the report."""
    ReportEmail.objects.bulk_create(
        ReportEmail(report=report, address=address)
        for address in schedule.subscriptions.values_list("address", flat=True)
    )


def send_waiting(now: datetime) -> int:
    """Send what is due; how many mails went out."""
    return send_due(ReportEmail, _send, lambda mail: mail.report.end + GIVEN_UP, now, AT_ONCE)[1]


def _send(mail: ReportEmail) -> None:
    subscription = Subscription.objects.filter(
        schedule__name=mail.report.schedule, address=mail.address
    ).first()
    if subscription is None:
        raise MailRefusedError("unsubscribed before it was sent")
    message(mail.report, subscription, get_connection()).send()


def message(
    report: ProducedReport, subscription: Subscription, connection: BaseEmailBackend | None = None
) -> EmailMultiAlternatives:
    """The mail of a report: text, the same as HTML with its charts as pictures, and the CSV attached."""
    body = report.body
    leave = settings.PUBLIC_URL + reverse("report-unsubscribe", args=[token(subscription)])
    pieces = charts(body)
    pictures, note = _pictures([piece["chart"] for piece in pieces])
    shown = [
        {"title": piece["title"], "id": f"chart{place}"}
        for place, piece in enumerate(pieces[: len(pictures)])
    ]
    context = {"report": body, "pictures": shown, "note": note, "base": settings.PUBLIC_URL, "leave": leave}
    mail = EmailMultiAlternatives(
        subject=f"{body['title']}: {body['period']['words']}",
        body=render_to_string("reports/mail.txt", context),
        to=[subscription.address],
        headers={
            "List-Unsubscribe": f"<{leave}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
            "Auto-Submitted": "auto-generated",
            OWN_HEADER: settings.PUBLIC_URL,  # our own endpoint of mail refuses it: no circles
        },
        connection=connection,
    )
    mail.attach_alternative(render_to_string("reports/mail.html", context), "text/html")
    for place, picture in enumerate(pictures):
        image = MIMEImage(picture, "png")
        image.add_header("Content-ID", f"<chart{place}>")
        image.add_header("Content-Disposition", "inline", filename=f"chart{place}.png")
        mail.attach(image)
    mail.attach(f"{report.id}.csv", csv_of(body), "text/csv")
    return mail


def _pictures(specs: list[Json]) -> tuple[list[bytes], str]:
    try:
        return drawn([dict(spec) for spec in specs]), ""
    except ChartRenderError as error:
        return [], str(error)


def token(subscription: Subscription) -> str:
    """Token of a mail's link: good for that subscription alone, and for ever."""
    return signing.dumps([subscription.schedule.name, subscription.address], salt=SALT)


def subscription_of(token: str) -> tuple[str, str] | None:
    """The schedule's name and the address that a token was made for; None for a forged one."""
    try:
        schedule, address = signing.loads(token, salt=SALT)
    except (signing.BadSignature, ValueError):
        return None
    return schedule, address


def subscribe(schedule: ReportSchedule, address: str, context: Context) -> Subscription:
    """Subscribe an address to every report from now on; recorded, since reports leave the installation."""
    return retrying(lambda: _subscribe(schedule, address, context))


@transaction.atomic
def _subscribe(schedule: ReportSchedule, address: str, context: Context) -> Subscription:
    row, made = Subscription.objects.get_or_create(schedule=schedule, address=address)
    if made:
        record_configuration(KIND, _key(schedule.name, address), None, subscription_as_json(row), context)
    return row


def unsubscribe(schedule: str, address: str, context: Context = BY_MAIL) -> bool:
    """Whether there was such a subscription."""
    return retrying(lambda: _unsubscribe(schedule, address, context))


@transaction.atomic
def _unsubscribe(schedule: str, address: str, context: Context) -> bool:
    found = Subscription.objects.select_for_update(of=("self",)).select_related("schedule")
    row = found.filter(schedule__name=schedule, address=address).first()
    if row is None:
        return False
    record_configuration(KIND, _key(schedule, address), subscription_as_json(row), None, context)
    row.delete()
    return True


def _key(schedule: str, address: str) -> str:
    return f"{schedule}/{address}"


def subscription_as_json(row: Subscription) -> dict[str, str]:
    return {"schedule": row.schedule.name, "address": row.address}
