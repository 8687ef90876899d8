"""One round of one webhook: what is due, and, when it has been tried, what is written down. Holds the transactions.

Progress is written after sending: whoever dies between the two sends again (at least once), with the same ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby

from django.db import transaction
from django.db.models import Q

from incidents.domain import webhooks as rules
from incidents.domain.incident.evolve import EVENT_TYPES
from incidents.webhooks.commands import disable
from incidents.webhooks.deliveries import Histories, WebhookDelivery, letters
from incidents.webhooks.models import Webhook, WebhookAttempt, WebhookDeadLetter, WebhookRetry
from incidents.webhooks.send import Address, EndpointFailures, Try
from ingest.queries import Event, Position, now_utc, read_all, read_stream, watermark

BATCH = 100
"""Events of the log that a round takes on."""
OF_ONE_INCIDENT = 50
"""Most events per round of one delayed incident."""
HELD_AT_ONCE = 20
MOST_ATTEMPTS = 100


@dataclass(slots=True)
class Job:
    """Deliveries of one incident. `rest` is version and position of an event after these letters."""

    stream: str
    letters: list[WebhookDelivery]
    retry: WebhookRetry | None = None
    rest: tuple[int, str] | None = None
    future: Future[list[Try]] | None = None

    @property
    def tries(self) -> list[Try]:
        return self.future.result() if self.future is not None else []


@dataclass(slots=True)
class Round:
    """`reached` is where the webhook stands when every job has been tried; `skipped` whether that passes events which
    incidents that are held back will tell later; `more` whether the log has more to read at once."""

    webhook: Webhook
    address: Address
    reached: Position
    jobs: list[Job] = field(default_factory=list)
    trouble: EndpointFailures = field(default_factory=EndpointFailures)
    skipped: bool = False
    more: bool = False

    @property
    def over(self) -> bool:
        return all(job.future is None or job.future.done() for job in self.jobs)


def begin(webhook: Webhook, histories: Histories, now: datetime, after: Position, held_first: bool) -> Round:
    """The next round: incidents that were held back and are due, or else what the log has after a position.

    Raises DecryptionError.
    """
    address = Address(webhook.name, webhook.url, tuple(webhook.secrets(now)), webhook.replayed_upto)
    one = Round(webhook, address, webhook.place)
    if held_first:
        one.jobs = _retries(webhook, histories, now)
    if not one.jobs:
        _add_new(one, histories, after)
    if not one.jobs and not held_first:
        one.jobs = _retries(webhook, histories, now)
    return one


def _retries(webhook: Webhook, histories: Histories, now: datetime) -> list[Job]:
    is_time = Q(next_at__lte=now) | Q(next_at__gt=now + rules.FURTHEST)
    due = WebhookRetry.objects.filter(is_time, webhook=webhook).order_by("next_at", "pk")
    jobs = []
    for row in due[: 1 if webhook.health.probing else HELD_AT_ONCE]:
        events = read_stream(row.stream, row.version - 1, upto=webhook.place)
        first_events, more = events[:OF_ONE_INCIDENT], events[OF_ONE_INCIDENT:]
        rest = (more[0].version, str(more[0].position)) if more else None
        jobs.append(Job(row.stream, letters(first_events, webhook.wanted, histories), row, rest))
    return jobs


def _add_new(one: Round, histories: Histories, after: Position) -> None:
    webhook, mark = one.webhook, watermark()
    events = read_all(after, BATCH, webhook.types or EVENT_TYPES, upto=mark)
    one.more = len(events) == BATCH
    one.reached = events[-1].position if one.more else max(mark, after)
    streams = {event.stream for event in events}
    held = set(webhook.retries.filter(stream__in=streams).values_list("stream", flat=True))
    one.skipped = bool(held)
    waiting = [event for event in events if event.stream not in held]
    waiting.sort(key=lambda event: (event.stream, event.version))
    for stream, found in groupby(waiting, key=_stream):
        if made := letters(found, webhook.wanted, histories):
            one.jobs.append(Job(stream, made))
    if one.jobs and webhook.health.probing:
        # The endpoint may still be down: the first event alone finds out.
        first = min(one.jobs, key=lambda job: job.letters[0].position)
        one.jobs = [Job(first.stream, first.letters[:1])]
        one.reached = Position.parse(first.letters[0].position)


def _stream(event: Event) -> str:
    return event.stream


@transaction.atomic
def finish(one: Round) -> bool:
    """Write down what became of a round; False where the webhook was changed meanwhile, which makes it void."""
    now = now_utc()
    webhook = (
        Webhook.objects.select_for_update()
        .filter(pk=one.webhook.pk, active=True, position=one.webhook.position, url=one.webhook.url)
        .first()
    )
    if webhook is None:
        return False
    tries = [each for job in one.jobs for each in job.tries]
    _judge(webhook, tries, now)
    webhook.position = str(one.reached)
    for job in one.jobs:
        _record_outcome(webhook, job, now)
    _note(webhook, tries)
    webhook.save(update_fields=["position", "failures", "failing_since", "retry_at", "last_success"])
    if any(each.outcome == "gone" for each in tries):
        disable(webhook, "response 410 Gone: the receiver no longer exists")
    elif rules.exhausted(webhook.health, now):
        last = next((each for each in reversed(tries) if each.outcome == "later"), None)
        disable(
            webhook,
            f"no successful delivery since {webhook.failing_since:%Y-%m-%d %H:%M} UTC: {_answer_text(last)}",
        )
    return True


def _judge(webhook: Webhook, tries: Sequence[Try], now: datetime) -> None:
    taken = [each for each in tries if each.outcome == "taken"]
    answered = any(each.outcome in ("taken", "refused") for each in tries)
    failures = sum(each.outcome == "later" for each in tries)
    wish = max((each.wish for each in tries if each.wish is not None), default=None)
    health = rules.after(webhook.health, answered, failures, now, wish)
    webhook.failures, webhook.failing_since, webhook.retry_at = (
        health.failures,
        health.failing_since,
        health.retry_at,
    )
    if taken:
        webhook.last_success = now


def _record_outcome(webhook: Webhook, job: Job, now: datetime) -> None:
    """Parks what was refused; holds the incident back where something is left, and lets it go where nothing is."""
    tries = job.tries
    passed = [each for each in tries if each.outcome in ("taken", "refused")]
    failed = tries[-1] if len(tries) > len(passed) else None
    for each in passed:
        if each.outcome == "refused":
            _park(webhook, each, _answer_text(each), now)
    since = job.retry.since if job.retry is not None and not passed else now
    if failed is not None and rules.given_up(since, webhook.last_success, now):
        _park(
            webhook, failed, f"not delivered within a day, unlike other events: {_answer_text(failed)}", now
        )
        passed, failed = [*passed, failed], None
    left = job.letters[len(passed) :]
    onward = (left[0].version, left[0].position) if left else job.rest
    if onward is None:
        if job.retry is not None:
            WebhookRetry.objects.filter(webhook=webhook, stream=job.stream).delete()
        return
    attempts = (job.retry.attempts if job.retry is not None and not passed else 0) + (failed is not None)
    WebhookRetry.objects.update_or_create(
        webhook=webhook,
        stream=job.stream,
        defaults={
            "version": onward[0],
            "position": onward[1],
            "since": since,
            "attempts": attempts,
            "next_at": now if failed is None else now + rules.pause(attempts, failed.wish),
            "error": "" if failed is None else _answer_text(failed),
        },
    )


def _park(webhook: Webhook, each: Try, reason: str, now: datetime) -> None:
    WebhookDeadLetter.objects.update_or_create(
        webhook=webhook,
        event=each.letter.event,
        defaults={
            "type": each.letter.type,
            "incident": each.letter.incident,
            "position": each.letter.position,
            "at": now,
            "reason": reason,
        },
    )


def _answer_text(each: Try | None) -> str:
    if each is None:
        return "no answer"
    return each.answer if each.status is None else f"answered {each.status}: {each.answer}".rstrip(": ")


def _note(webhook: Webhook, tries: Sequence[Try]) -> None:
    """The last attempts, for people to look at."""
    newest = sorted(tries, key=lambda each: each.at)[-MOST_ATTEMPTS:]
    WebhookAttempt.objects.bulk_create(attempt(webhook, each) for each in newest)
    if newest:
        newest_ids = webhook.attempts.order_by("-id").values_list("pk", flat=True)[
            MOST_ATTEMPTS : MOST_ATTEMPTS + 1
        ]
        webhook.attempts.filter(pk__lte=next(iter(newest_ids), 0)).delete()


def attempt(webhook: Webhook, each: Try) -> WebhookAttempt:
    return WebhookAttempt(
        webhook=webhook,
        event=each.letter.event,
        type=each.letter.type,
        incident=each.letter.incident or None,
        at=each.at,
        milliseconds=each.milliseconds,
        status=each.status,
        taken=each.outcome == "taken",
        answer=each.answer,
    )
