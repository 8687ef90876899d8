"""Computed parts of the documentation pages: values of settings and limits, and texts written from declarations.

`manage.py write_docs` writes them into the files with the default settings; the console shows them with its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from django.conf import settings

from frontend.examples import SCHEDULE, WEBHOOK_REQUEST, WEBHOOK_SNIPPET, example
from frontend.senders import SENDERS, Sender
from incidents.bulk import MOST_AT_ONCE
from incidents.domain.notifications.delivery import FALL_AFTER, MOST_ATTEMPTS
from incidents.domain.notifications.message import MOST_SHOWN
from incidents.domain.search import FIELDS
from incidents.domain.webhooks import LARGEST_BODY
from incidents.notifications.channels.apprise import SERVICES
from incidents.oncall.calendars import MOST_TEXT
from incidents.webhooks.send import TIMEOUT
from ingest.queries import TELEMETRY_KINDS, registered_event_types

SIZES = frozenset(
    {"ALERT_MAX_BODY", "INBOUND_EMAIL_MAX_BODY", "TELEMETRY_MAX_BODY", "TELEMETRY_MAX_DECODED_BODY"}
)
SETTINGS = SIZES | {"INGEST_RATE_PER_KEY", "WEB_MAX_READS", "WEB_THREADS", "WEB_WORKERS"}
"""The settings whose values pages show. No secret is among them."""


EVENTS = {
    "alert.reported": "an alert began to fire, changed or resolved",
    "analysis.failed": "a run of an analyzer ended with an error",
    "analysis.recorded": "a run of an analyzer ended with a verdict",
    "analysis.repeated": "a run was repeated on its stored window; whether the verdict is the same",
    "change.reported": "a sender reported a change, such as a deployment",
    "change.validated": "forwarding before and after a change was compared with its specification",
    "configuration.changed": "an object of the configuration was created, changed or removed",
    "finding.reported": "a run named a suspect",
    "incident.action_proposed": "a key or a person proposed a hand-over or a silence",
    "incident.acknowledged": "a person took responsibility; escalation pauses",
    "incident.alerts_joined": "alerts joined by their group",
    "incident.alerts_moved": "alerts were split off into another incident",
    "incident.alerts_removed": "alerts left the incident",
    "incident.alerts_resolved": "alerts of the incident stopped firing",
    "incident.analyzer_missed_cause": "an analyzer examined the confirmed cause and did not suspect it",
    "incident.assigned": "the owner was set or cleared",
    "incident.commented": "a person wrote a comment",
    "incident.escalated": "a step of the escalation policy ran",
    "incident.escalation_exhausted": "every step and round of the policy ran without a response",
    "incident.escalation_skipped": "no escalation: no policy, or it does not apply",
    "incident.escalation_started": "the escalation policy started",
    "incident.evidence_attached": "tables, charts or texts were attached",
    "incident.finding_cleared": "an analyzer no longer suspects the component",
    "incident.finding_joined": "a finding joined the incident of its component",
    "incident.finding_recorded": "a finding about failures before the resolution",
    "incident.linked": "a link was added",
    "incident.linked_to_cause": "the incident was linked to the incident of its cause",
    "incident.maintenance_noted": "maintenance at a component of the incident",
    "incident.proposal_accepted": "a person accepted a proposed action, which was carried out",
    "incident.proposal_declined": "a person declined a proposed action",
    "incident.proof_waived": "resolved without the proof of repair that the incident demands, with the reason",
    "incident.question_answered": "the outcome of a measurement, with the probability of each suspect before and after",
    "incident.status_published": "an update of a status page about the incident was published, corrected or withdrawn",
    "incident.theory_checked": "a theory was tested hop by hop",
    "incident.probe_requested": "agents were asked for a probe",
    "incident.remediation_answered": "the cluster drained, replaced, returned, refused or gave up a node",
    "incident.remediation_requested": "the node of the incident was handed to the cluster",
    "incident.repair_judged": "verdict of the proof of repair",
    "incident.merge_received": "another incident was merged into this one",
    "incident.merge_undone": "the merge of an incident into this one was undone",
    "incident.merged": "the incident was merged into another one",
    "incident.notified": "the result of a notification: sent, failed or given up",
    "incident.opened": "an alert, a finding or a person opened the incident",
    "incident.opinion_changed": "an analyzer changed its verdict on the incident",
    "incident.reassigned": "hand-over to another team, with the reason",
    "incident.reassignment_accepted": "the receiving team accepted the hand-over",
    "incident.reassignment_rejected": "the receiving team rejected the hand-over; the incident returned",
    "incident.reassignment_undone": "the sender undid the hand-over before a response",
    "incident.reopened": "a resolved incident was reopened",
    "incident.report_joined": "another report of the same problem joined",
    "incident.resolved": "the work ended, with the confirmed cause if it is known",
    "incident.severity_set": "the severity changed",
    "incident.snoozed": "inactive until a time or a change, by a person, a silence or a maintenance window",
    "incident.split_from": "the incident was split off from another one",
    "incident.suppression_overridden": "a person resumed notifications despite a silence or maintenance window",
    "incident.symptoms_joined": "alerts on components that the cause explains joined",
    "incident.title_set": "the title changed",
    "incident.unacknowledged": "the acknowledgement was withdrawn or expired; escalation resumes",
    "incident.unmerged": "the incident was taken out of its merge target",
    "incident.unsnoozed": "the snooze ended: its time passed, something changed, or a person ended it",
    "log.sealed": "hash root over the heads of all streams",
    "report.produced": "a report was generated",
    "status_page.notice_withdrawn": "a notice was taken off its status page",
    "status_page.update_edited": "the text of an update of a status page was corrected",
    "status_page.update_published": "an update was published on a status page",
    "telemetry.received": "a request with telemetry was stored",
}
"""Meaning of every event type of the log, by name."""


def parts(names: Iterable[str]) -> dict[str, str]:
    """The parts of these names, with the settings of this installation; unknown names are left out."""
    made = computed()
    found = {name: made[name]() for name in names if name in made}
    return found | {name: value(name, str(getattr(settings, name))) for name in SETTINGS.intersection(names)}


def computed() -> dict[str, Callable[[], str]]:
    """The parts that no setting changes."""
    return {
        "events": events,
        "kinds": kinds,
        "most incidents in a message": lambda: str(MOST_SHOWN),
        "most selected": lambda: f"{MOST_AT_ONCE:,}",
        "schedule": lambda: _fence("json", SCHEDULE),
        "search fields": lambda: table(
            ("Field", "Value"), ((f"`{one}:`", means) for one, means in FIELDS.items())
        ),
        "sender limits": sender_limits,
        "senders": lambda: sender_list(""),
        "sender pages": lambda: sender_list("integrate/"),
        "largest calendar": lambda: f"{MOST_TEXT // 1024} KiB",
        "largest webhook": lambda: f"{LARGEST_BODY // 1024} KiB",
        "services": lambda: ", ".join(f"`{scheme}`" for scheme in sorted(SERVICES)),
        "attempts": lambda: str(MOST_ATTEMPTS),
        "attempts before the next method": lambda: str(FALL_AFTER),
        "webhook request": lambda: _fence("http", WEBHOOK_REQUEST),
        "webhook snippet": lambda: _fence("python", WEBHOOK_SNIPPET),
        "webhook timeout": lambda: f"{TIMEOUT:g}",
        **{f"sender {one.slug}": partial(sender, one) for one in SENDERS},
    }


def value(name: str, raw: str) -> str:
    """The value of a setting for people: sizes in MiB or KiB, thousands apart."""
    count = int(raw)
    if name not in SIZES:
        return f"{count:,}"
    return f"{count / 2**20:g} MiB" if count >= 2**20 else f"{count / 2**10:g} KiB"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table on lines of its own."""
    lines = [tuple(head), *(tuple(row) for row in rows)]
    lines.insert(1, ("---",) * len(lines[0]))
    return "\n" + "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines
    )


def _fence(language: str, text: str) -> str:
    return f"\n```{language}\n{text.rstrip()}\n```\n"


def sender(one: Sender) -> str:
    """The page of a sender."""
    with_mapping = f" --mapping {one.slug}" if one.mapping else ""
    lines = [
        f"# {one.title}",
        one.summary,
        "## Configuration",
        f"`KEY` is a key of `manage.py create_key NAME --scope {one.scope}{with_mapping}`. Staff can also create one "
        "on the page [Integrations](https://dossier.example.com/integrations), which shows this text "
        "with the key in it.",
    ]
    for where, text in one.configuration:
        lines += [f"### {where}", _fence("text", text).strip()]
    lines += [
        "## Answers",
        f"- **2xx**: {one.success} Delivery receipt: `/receipts/ID` in the console, `/api/v1/receipts/ID` in the API.\n"
        f"- **Limits**: {one.limits}\n"
        f"- **Overload**: {one.overload}\n"
        "- **Any other answer**: nothing was stored, or exactly what the answer says.",
        "## Repeats and the end of an alert",
        one.life,
    ]
    if one.mapping:
        lines += ["## Mapping", _fence("json", json.dumps(one.mapping, indent=2)).strip()]
    return "\n" + "\n\n".join(lines) + "\n"


def sender_list(folder: str) -> str:
    """A list of links to the pages of all senders."""
    return "\n" + "".join(f"- [{one.title}]({folder}{one.slug}.md)\n" for one in SENDERS)


def sender_limits() -> str:
    """Sizes and the answer to overload of each sender."""
    rows = ((f"[{one.title}]({one.slug}.md)", one.limits, one.overload) for one in SENDERS)
    return table(("Sender", "Size and batch", "On overload"), rows)


def events() -> str:
    """A table of the registered event types. Raises KeyError for one without a meaning."""
    rows = ((f"`{one.name}`", EVENTS[one.name], str(one.schema)) for one in registered_event_types())
    return table(("Event", "Recorded when", "Schema"), rows)


def kinds() -> str:
    """Every telemetry kind with an example row and its fields."""
    return "\n" + "\n".join(_kind(kind) for kind in TELEMETRY_KINDS.values())


def _kind(kind: Any) -> str:
    rows = ((_field_name(field), field.type, _meaning(field)) for field in kind.all_fields)
    help = kind.help[:1].upper() + kind.help[1:]
    return f"## `{kind.name}`\n\n{help}.\n{_fence('json', example(kind))}{table(('Field', 'Type', 'Meaning'), rows)}"


def _field_name(field: Any) -> str:
    return f"`{field.name}`{' (optional)' if field.optional else ''}"


def _meaning(field: Any) -> str:
    choices = f": {field.either}" if field.choices else ""
    unit = f" ({field.unit})" if field.unit else ""
    return f"{field.help}{choices}{unit}"
