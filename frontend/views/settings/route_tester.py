"""The tester on the page of the routes: what was described, recorded or pasted, and its way through the tree."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest

from incidents.domain.routing.explain import Explanation, explain
from incidents.domain.routing.rules import RoutingTable, Subject, read_matchers
from incidents.domain.values import InvalidValueError
from incidents.routing import replay
from ingest.api.models import IntegrationKey
from ingest.api.test_alerts import ENDPOINTS

PASTE: Final = "paste"
"""Note in place of an address for a pasted payload, which is too long for one."""
DESCRIBED: Final = ("component", "labels", "severity", "integration", "analyzer", "confidence")
LONGEST: Final = 4_000
"""Characters of an address that everything on the way takes."""
PASTED: Final = ("endpoint", "sender", "payload")
_FORMATS: Final = {
    "alertmanager": "Alertmanager, as a webhook",
    "alertmanager-api": "Prometheus or vmalert, as to an Alertmanager",
    "grafana": "Grafana",
    "pagerduty": "PagerDuty, Events v2",
    "opsgenie": "Opsgenie, create alert",
    "generic": "any JSON",
    "cloudevents": "CloudEvents",
    "otlp": "OpenTelemetry, logs as JSON",
    "mail": "a mail",
}


@dataclass(frozen=True, slots=True)
class Tested:
    """A query of the tester with its errors by field; `pasted` says which alert of a payload is explained."""

    explained: Explanation | None
    fields: dict[str, str]
    problem: dict[str, str] = field(default_factory=dict)
    pasted: replay.Pasted | None = None

    @property
    def address(self) -> str:
        """Of what was pasted, once it was read: its alert as it would be described, for others to look at."""
        if self.pasted is None or self.explained is None:
            return ""
        described = {name: value for name, value in _described(self.explained.subject).items() if value}
        address = f"?{urlencode(described)}"
        return address if described and len(address) <= LONGEST else ""


def alert_formats() -> list[tuple[str, str]]:
    """Readers of a payload, with their names for people; those without a name last."""
    return sorted(
        ((one, _FORMATS.get(one, one)) for one in ENDPOINTS),
        key=lambda one: [*_FORMATS, one[0]].index(one[0]),
    )


def senders() -> list[str]:
    """Integrations in use by name: one may have a mapping of its own."""
    return list(IntegrationKey.objects.filter(revoked_at=None).values_list("name", flat=True))


def tested(request: HttpRequest, table: RoutingTable) -> Tested:
    """Query of the address, or of the pasted form."""
    if request.POST.get("do") == PASTE:
        return _pasted(request, table)
    requested = {name: request.GET.get(name, "").strip() for name in (*DESCRIBED, "alert")}
    if not any(requested.values()):
        return Tested(None, requested)
    try:
        if requested["alert"]:
            explanation = replay.explain_alert(str(UUID(requested["alert"])), table).explanation
            return Tested(explanation, {**requested, **_described(explanation.subject)})
        given: dict[str, Any] = {name: requested[name] for name in DESCRIBED if requested[name]}
        given["labels"] = _labels(requested["labels"])
        if "confidence" in given:
            given["confidence"] = _confidence(given["confidence"])
        return Tested(explain(replay.subject_from(given, replay.now()), table), requested)
    except InvalidValueError as error:
        return Tested(None, requested, {error.field.partition(".")[0]: error.reason})
    except ValueError:
        return Tested(None, requested, {"alert": "must be the id of an alert"})
    except replay.AlertNotFoundError:
        return Tested(None, requested, {"alert": "no such alert"})


def _pasted(request: HttpRequest, table: RoutingTable) -> Tested:
    form = {name: request.POST.get(name, "") for name in PASTED}
    try:
        explanation = replay.explain_pasted(
            form["endpoint"], form["sender"].strip(), form["payload"], replay.now(), table
        )
    except InvalidValueError as error:
        return Tested(None, form, {PASTE: str(error)})
    return Tested(
        explanation.explanation, {**form, **_described(explanation.explanation.subject)}, pasted=explanation
    )


def _labels(text: str) -> dict[str, str]:
    """`rack="r1"`, one a line: only equal ones describe an alert. Raises InvalidValueError."""
    if not text:
        return {}
    try:
        read = read_matchers(text)
    except InvalidValueError as error:
        raise InvalidValueError("labels", error.reason) from None
    if any(one["isRegex"] or not one["isEqual"] for one in read):
        raise InvalidValueError("labels", 'must be label pairs such as rack="r1", one per line')
    return {one["name"]: one["value"] for one in read}


def _confidence(text: str) -> float:
    try:
        return float(text.rstrip("% ")) / 100
    except ValueError:
        raise InvalidValueError("confidence", "must be a percentage, such as 90") from None


def _described(subject: Subject) -> dict[str, str]:
    return {
        "component": subject.component or "",
        "labels": "\n".join(f'{name}="{value}"' for name, value in subject.labels.items()),
        "severity": subject.severity or "",
        "integration": subject.integration or "",
    }
