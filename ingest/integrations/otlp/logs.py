"""OTLP log records to alerts, by rule (severity ERROR and above), and to be counted, whatever their severity. Pure.

Data model: https://opentelemetry.io/docs/specs/otel/logs/data-model/ (severity numbers 1 to 4 are TRACE, 5 to 8 DEBUG,
9 to 12 INFO, 13 to 16 WARN, 17 to 20 ERROR, 21 to 24 FATAL). Dossier keeps counts by template (`log_count`), no logs.
Records below the threshold that are not counted are refused as the protocol has it, so that nobody thinks that they
are here.

A line of the kernel log with an Xid (`NVRM: Xid …`) is an alert of its GPU whatever its severity: the kernel writes it
as a warning or less.

Two records are the same alert if service, logger (scope), event name and the template of their text are the same: the
first line with every word that holds a digit, and long hexadecimal, replaced by `#`. That errs towards one alert for
two errors rather than a thousand for one. The instance is no part of it. Of the same records in one request the first
is shown, with how many there were. An error is told of once and never taken back, so such an alert counts as over when
it was not repeated for QUIET.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any

from ingest.integrations import gpu
from ingest.integrations.logs.templates import Record, severity_of
from ingest.integrations.normalized import Alert, Notes, Parsed, Severity, component_of
from ingest.integrations.otlp.messages import SIGNALS, Parts, text_of
from ingest.integrations.otlp.resources import NO_SERVICE, attributes_of, identity, instance_of, service_of
from ingest.integrations.samples import Refusals
from ingest.telemetry.kinds.declare import is_component

ERROR, FATAL = 17, 21
QUIET = timedelta(minutes=15)
LONGEST_TEMPLATE = 500
LONGEST_NAME = 190
BLANK = r"[\s\x00-\x1f\x7f\ud800-\udfff]"
"""Characters that no component's name may hold."""
MOST_ALERTS = 1_000
"""Different errors that one request may tell of; of more there is no telling whether the template is any good."""
SEVERITY_WORDS = {"error": ERROR, "err": ERROR, "severe": ERROR, "critical": FATAL, "crit": FATAL, "fatal": FATAL,
    "alert": FATAL, "emergency": FATAL, "emerg": FATAL, "panic": FATAL}  # fmt: skip
"""Severity words of loggers that set no severity number."""

_BELOW_LEAST = (
    f"the record's severity is below {{least}} (ERROR is {ERROR}); Dossier keeps no logs, and counts records only for "
    "a key with the scope telemetry"
)
_RANGES = ("trace", "debug", "info", "warn", "error", "fatal")
"""Severities, each of four numbers from 1 on."""
_VARIES = re.compile(r"\b(?:[0-9a-fA-F]{8,}\b|[\w.:/-]*\d[\w.:/-]*)")


@dataclass(frozen=True, slots=True)
class FromLogs:
    """The alerts of a request, what was refused, and (in protobuf) the records that are shown."""

    parsed: Parsed
    refusals: Refusals
    shown: bytes


def alerts(request: Any, now: datetime, least: int = ERROR, counted: bool = False) -> FromLogs:
    """Alerts of an ExportLogsServiceRequest; `least` is the severity number from which on a record is one. Records
    below it are refused unless they are `counted`.
    """
    refusals, found, counts = Refusals(), dict[str, _Record](), Counter[str]()
    xids, shown_xids = dict[str, Alert](), list[_Record]()
    of = Parts().of
    for resource_logs in of(request.resource_logs):
        attributes: dict[str, str] | None = None
        of(resource_logs.resource.attributes)
        for scope_logs in of(resource_logs.scope_logs):
            for record in of(scope_logs.log_records):
                if (text := text_of(record.body)) and (reported := gpu.xid_in(text)) is not None:
                    attributes = attributes_of(resource_logs.resource) if attributes is None else attributes
                    one_xid = _xid(reported, record, attributes, now)
                    xids.setdefault(one_xid.key, one_xid)
                    shown_xids.append(_Record(resource_logs, scope_logs, record, attributes))
                    continue
                if severity_number(record) < least:
                    if not counted:
                        refusals.add(_BELOW_LEAST.format(least=least))
                    continue
                attributes = attributes_of(resource_logs.resource) if attributes is None else attributes
                one = _Record(resource_logs, scope_logs, record, attributes)
                if one.key not in found and len(found) == MOST_ALERTS:
                    refusals.add(f"more than {MOST_ALERTS} different errors in one request", one.service)
                    continue
                counts[one.key] += 1
                found.setdefault(one.key, one)
    made = tuple(_alert(one, now + QUIET, counts[key]) for key, one in found.items())
    return FromLogs(
        Parsed((*xids.values(), *made)), refusals, _shown([*shown_xids[:MOST_ALERTS], *found.values()])
    )


def _xid(reported: tuple[str, int, str], record: Any, resource: dict[str, str], now: datetime) -> Alert:
    """The alert of an Xid line, whatever severity the kernel gave it."""
    node = resource.get("k8s.node.name") or resource.get("host.name") or instance_of(resource)
    time = int(record.time_unix_nano or record.observed_time_unix_nano)
    at = datetime.fromtimestamp(time // 1000 / 1e6, UTC) if time else None
    address, xid, message = reported
    return gpu.xid_alert(node, address, xid, message, at, now)


def records(request: Any, now: datetime) -> Iterator[Record]:
    """The records of an ExportLogsServiceRequest, to be counted. One without a time is as of now.

    The component is `instance/NAME`, as spans of the same resource name it; `service/NAME` where nothing names one.
    """
    of, at = Parts().of, int(now.timestamp() * 1e9)
    for resource_logs in of(request.resource_logs):
        of(resource_logs.resource.attributes)
        attributes = attributes_of(resource_logs.resource)
        service, component = service_of(attributes), _writer(attributes)
        for scope_logs in of(resource_logs.scope_logs):
            for record in of(scope_logs.log_records):
                time = int(record.time_unix_nano or record.observed_time_unix_nano) or at
                yield Record(time, component, service, _severity(record), _text(record))


def _writer(attributes: dict[str, str]) -> str:
    name = instance_of(attributes)
    kind = "service" if name == service_of(attributes) else "instance"
    return f"{kind}/{re.sub(BLANK, '_', name)[:LONGEST_NAME]}"


def _severity(record: Any) -> str:
    number = int(record.severity_number)
    if number:
        return _RANGES[min(max(0, number - 1) // 4, len(_RANGES) - 1)]
    return severity_of(record.severity_text)


def _text(record: Any) -> str:
    """The body, or the event's name, with the type of an exception: what the program said."""
    attributes = {
        each.key: text_of(each.value) for each in record.attributes if each.key.startswith("exception.")
    }
    text = text_of(record.body) or record.event_name or attributes.get("exception.message", "")
    first, kind = text.strip().partition("\n")[0], attributes.get("exception.type", "")
    return f"{first} {kind}".strip() if kind and kind not in first else first


def severity_number(record: Any) -> int:
    """The record's severity number; where it has none, that of its text; 0 for neither."""
    return int(record.severity_number) or SEVERITY_WORDS.get(record.severity_text.strip().lower(), 0)


def template(text: str) -> str:
    """Constant part of a text: its first line without what varies."""
    first = text.strip().partition("\n")[0]
    return _VARIES.sub("#", first[:LONGEST_TEMPLATE])


class _Record:
    """A record with what surrounds it."""

    def __init__(self, resource_logs: Any, scope_logs: Any, record: Any, resource: dict[str, str]) -> None:
        self.resource_logs, self.scope_logs, self.record, self.resource = (
            resource_logs,
            scope_logs,
            record,
            resource,
        )
        self.attributes = {each.key: text_of(each.value) for each in record.attributes}
        self.service = service_of(resource)
        self.event = record.event_name or self.attributes.get("event.name", "")
        self.source = self.event or scope_logs.scope.name or self.attributes.get("exception.type", "")
        self.text = text_of(record.body) or self.attributes.get("exception.message", "")
        parts = (self.service, scope_logs.scope.name, self.event, template(self.text))
        digest = blake2b("\0".join(parts).encode(errors="replace"), digest_size=16).hexdigest()
        self.key = f"otlp-log/{digest}"

    @property
    def component(self) -> str | None:
        """Named by the record or its resource; the service, because the alert is one for all its instances."""
        for entry in (self.attributes.get("component", ""), self.resource.get("component", "")):
            if is_component(entry):
                return entry
        if self.service != NO_SERVICE:
            return component_of({"service": self.service.replace("/", ".")})
        return component_of({"host": instance_of(self.resource)}) if len(self.resource) else None


def _alert(one: _Record, expires_at: datetime, count: int) -> Alert:
    notes = Notes()
    first = one.text.strip().partition("\n")[0] or one.source or "an error without a text"
    if count > 1:
        notes.texts.append(f"{count} such records came in one request; the first is shown")
    severity: Severity = "critical" if severity_number(one.record) >= FATAL else "error"
    trace = {"trace_id": one.record.trace_id.hex(), "span_id": one.record.span_id.hex()}
    labels = {
        **dict(identity(one.resource)),
        **{name: text for name, text in one.attributes.items() if not name.startswith("exception.")},
        **({"logger": one.scope_logs.scope.name} if one.scope_logs.scope.name else {}),
        **{name: text for name, text in trace.items() if text},
    }
    return Alert(
        key=one.key,
        status="firing",
        title=notes.line("title", f"{one.service}: {first}"),
        severity=severity,
        group=notes.line("", "/".join(filter(None, (one.service, one.source)))),
        component=one.component,
        description=notes.text("description", _description(one)),
        labels=notes.labels(labels),
        expires_at=expires_at,
        notes=tuple(notes.texts),
    )


def _description(one: _Record) -> str:
    exception = ": ".join(
        filter(None, (one.attributes.get(f"exception.{part}", "") for part in ("type", "message")))
    )
    parts = (one.text, exception, one.attributes.get("exception.stacktrace", ""))
    return "\n\n".join(filter(None, dict.fromkeys(parts)))


def _shown(records: Any) -> bytes:
    """A request of those records alone: what is kept of one that is too long to be kept."""
    request: Any = SIGNALS["logs"].request()
    for one in records:
        resource_logs = request.resource_logs.add()
        resource_logs.resource.CopyFrom(one.resource_logs.resource)
        scope_logs = resource_logs.scope_logs.add()
        scope_logs.scope.CopyFrom(one.scope_logs.scope)
        scope_logs.log_records.add().CopyFrom(one.record)
    return bytes(request.SerializeToString())
