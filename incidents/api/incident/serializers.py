"""Shapes of the incident API, for its OpenAPI document and for the names of fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, get_args

from rest_framework import serializers as s

from incidents.domain.incident.commands import Undoable
from incidents.domain.incident.state import FAILURE_STATES
from incidents.domain.remediation.state import ANSWERS, STAGES
from incidents.domain.values import SEVERITIES, STATES, InvalidValueError, check_line
from incidents.teams.models import Team
from ingest.api.pagination import PageShape
from ingest.telemetry.kinds.declare import COMPONENT_FORM


class LinkShape(s.Serializer[Any]):
    href = s.CharField(max_length=2000, help_text="an http or https address")
    text = s.CharField(max_length=300, required=False, help_text="text of the link")


class EvidenceShape(s.Serializer[Any]):
    """A piece of evidence, as in a verdict."""

    kind = s.ChoiceField(choices=["table", "chart", "text"])
    title = s.CharField(max_length=300)
    columns = s.ListField(child=s.CharField(), required=False, help_text="names of a table's columns")
    rows = s.ListField(
        child=s.ListField(), required=False, help_text="one cell per column; at most 1000 rows"
    )
    chart = s.DictField(required=False, help_text="a Vega-Lite specification with its data inline")
    text = s.CharField(required=False, help_text="the text, or the caption of a table or chart")


class ReportShape(s.Serializer[Any]):
    """A report by a person or a sender."""

    title = s.CharField(max_length=300, help_text="one-line summary")
    component = s.CharField(
        required=False, help_text=f"failing component, {COMPONENT_FORM}; selects the team"
    )
    severity = s.ChoiceField(choices=SEVERITIES, required=False, help_text="default: warning")
    dedup_key = s.CharField(
        max_length=255,
        required=False,
        help_text="key of the problem: the report joins the open incident with the same key; not empty",
    )
    description = s.CharField(max_length=20_000, required=False)
    labels = s.DictField(child=s.CharField(), required=False, help_text="at most 50")
    links = LinkShape(many=True, required=False)
    evidence = EvidenceShape(many=True, required=False, help_text="at most 20 pieces and 1 MB")


class DissentShape(s.Serializer[Any]):
    """Nats subtracted from the log-odds of a blame by an analyzer that judged the cause without naming it;
    learned from resolved incidents, 0 without a record."""

    one = s.FloatField(help_text="nats subtracted from a blame by one analyzer")
    several = s.FloatField(help_text="nats subtracted from a blame by several analyzers that agree")


class OpinionShape(s.Serializer[Any]):
    """Latest opinion of one analyzer on an incident."""

    analyzer = s.CharField()
    version = s.CharField()
    stance = s.ChoiceField(
        choices=["blames", "blames_other", "saw_nothing", "no_longer_blames"],
        help_text="blames: names the cause of this incident; blames_other: judged it and names `component`"
        " instead; saw_nothing: judged it and names nothing there; no_longer_blames: a later"
        " window of the same schedule no longer names it",
    )
    component = s.CharField(allow_null=True, help_text="current or last suspect; null: none")
    ambiguous_with = s.ListField(child=s.CharField())
    score = s.FloatField(
        allow_null=True, help_text="probability stated by the analyzer, 0 to 1; null: none stated"
    )
    failure_rate = s.FloatField(allow_null=True)
    indicator = s.CharField(help_text="signal that shows the fault; empty: not stated")
    path = s.ListField(
        child=s.CharField(), help_text="components from the cause to the symptom; empty: not stated"
    )
    run = s.CharField(help_text="run with this opinion")
    schedules = s.ListField(child=s.CharField(), help_text="schedules whose latest window has this opinion")
    window = s.DictField(help_text="start and end of the telemetry that was judged")
    first_at = s.DateTimeField(allow_null=True, help_text="time of the first finding on this incident")
    dissent = DissentShape()


class OwnershipShape(s.Serializer[Any]):
    """Seconds with each team and owner until `until`; those of the current ones grow while the incident is
    unresolved."""

    teams = s.DictField(child=s.FloatField())
    owners = s.DictField(child=s.FloatField())
    until = s.DateTimeField()


class OverriddenShape(s.Serializer[Any]):
    id = s.UUIDField(help_text="id of the silence or of the revision of the maintenance window")
    starts_at = s.DateTimeField()
    until = s.DateTimeField(help_text="end of the override")
    why = s.CharField()
    by = s.CharField(help_text="person or key that resumed notifications")


class MergedShape(s.Serializer[Any]):
    id = s.UUIDField()
    number = s.IntegerField()
    title = s.CharField(required=False)


class FailureShape(s.Serializer[Any]):
    """State of the failure, apart from the state of the work."""

    state = s.ChoiceField(
        choices=FAILURE_STATES,
        help_text="no_data: no recent window was judged; unknown: reported by a person, without alert or"
        " finding",
    )
    since = s.DateTimeField(
        allow_null=True, help_text="failing: first failure; quiet: last failure; no_data: last judged window"
    )


class RelatedShape(s.Serializer[Any]):
    """A component named for the fault of this incident, tied to its cause by the topology."""

    component = s.CharField()
    how = s.CharField(help_text='relation, such as "rank/17 depends on nic/n2-1"')


class AnswerShape(s.Serializer[Any]):
    """Answer of the cluster about the node."""

    answer = s.ChoiceField(choices=ANSWERS)
    at = s.DateTimeField()
    by = s.CharField(help_text="person or system that did the work, as stated in the answer")
    actor = s.CharField(help_text="sender of the answer: user:NAME or key:NAME")
    note = s.CharField()
    part = s.CharField(allow_null=True, help_text="installed part")
    replaced = s.CharField(allow_null=True, help_text="removed part")


class WaivedShape(s.Serializer[Any]):
    by = s.CharField()
    at = s.DateTimeField()
    reason = s.CharField()


class RemediationShape(s.Serializer[Any]):
    """Last request of an incident to the cluster, and its progress."""

    request = s.UUIDField(help_text="id of the request")
    component = s.CharField()
    node = s.CharField(help_text="name of the node")
    part = s.CharField(allow_null=True, help_text="part watched after the return; null: the whole node")
    target = s.CharField(allow_null=True, help_text="webhook that carries the request; null: by hand")
    reason = s.CharField()
    requested_at = s.DateTimeField()
    requested_by = s.CharField()
    proof_required = s.BooleanField(help_text="true: resolved only with proof of repair")
    stage = s.ChoiceField(choices=STAGES)
    answers = AnswerShape(many=True)
    proof = s.DictField(
        allow_null=True,
        help_text="`verdict` (unknown, repaired, not_repaired), `summary` and the figures of the sequential test; null"
        " before the return",
    )
    waived = WaivedShape(
        allow_null=True, help_text="person, time and reason of a resolution without proof; null: none"
    )
    reopened = s.BooleanField(help_text="true: reopened after the proof of repair; only a person resolves it")


class ProposalShape(s.Serializer[Any]):
    """A proposed action that a person accepts or declines."""

    id = s.UUIDField()
    action = s.ChoiceField(choices=["hand_over", "silence"])
    text = s.CharField(help_text="action as a sentence")
    reason = s.CharField()
    by = s.CharField(help_text="person or key that proposed it")
    at = s.DateTimeField()
    team = s.CharField(allow_null=True, help_text="target team of a hand-over; null for other actions")
    matchers = s.ListField(
        child=s.DictField(), help_text="matchers of a silence: name, value, isRegex, isEqual"
    )
    minutes = s.IntegerField(allow_null=True, help_text="length of a silence, from its acceptance")
    cites = s.ListField(child=s.CharField(), help_text="runs and log positions cited as evidence")


class IncidentShape(s.Serializer[Any]):
    """An incident at the log position `position`."""

    id = s.UUIDField()
    number = s.IntegerField(help_text="consecutive number")
    title = s.CharField()
    description = s.CharField()
    state = s.ChoiceField(choices=STATES)
    severity = s.ChoiceField(choices=SEVERITIES)
    component = s.CharField(allow_null=True)
    ambiguous_with = s.ListField(
        child=s.CharField(), help_text="components that the data cannot tell apart from it"
    )
    related = RelatedShape(many=True, help_text="other components under which analyzers see the same fault")
    region = s.CharField(allow_null=True)
    team = s.CharField(help_text="slug of the responsible team")
    routing = s.CharField(help_text="reason for the first assignment to a team")
    service = s.CharField(allow_null=True, help_text="slug of the service, from the route")
    policy = s.CharField(allow_null=True, help_text="slug of the escalation policy that its route names")
    owner = s.CharField(allow_null=True)
    dedup_key = s.CharField()
    labels = s.DictField(child=s.CharField())
    links = LinkShape(many=True)
    confidence = s.FloatField(
        allow_null=True,
        help_text="probability that `component` is at fault, 0 to 1: latest score of the analyzer that"
        " blames it; if several agree, log-odds of the best plus half of each other's, at most"
        " .999",
    )
    verdict = s.CharField(allow_null=True, help_text="conclusion of the analyzers, in one sentence")
    analyzer = s.CharField(allow_null=True, help_text="analyzer that produced the verdict")
    opinions = OpinionShape(many=True, help_text="analyzer opinions, suspecting ones first")
    still_blamed = s.BooleanField(help_text="whether the latest window of a schedule suspects it")
    alerts = s.IntegerField(help_text="reports with a dedup key that opened or joined it")
    findings = s.IntegerField(help_text="findings that opened, joined or were recorded on it")
    hops = s.IntegerField(help_text="number of moves to another team, rejections included")
    rejections = s.IntegerField(help_text="number of rejected hand-overs")
    handed_from = s.CharField(
        allow_null=True, help_text="sender of a hand-over that is neither accepted nor rejected; null: none"
    )
    accepted_at = s.DateTimeField(
        allow_null=True, help_text="time at which the team accepted the last hand-over; null: not accepted"
    )
    accepted_by = s.CharField(allow_null=True)
    team_since = s.DateTimeField(help_text="time of the assignment to the current team")
    ownership = OwnershipShape(help_text="time with each team and each owner")
    seconds_to_team = s.FloatField(
        allow_null=True,
        help_text="seconds from opening to the last assignment to the resolving team; null until resolved",
    )
    opened_at = s.DateTimeField()
    opened_by = s.CharField()
    acknowledged_at = s.DateTimeField(allow_null=True)
    acknowledged_by = s.CharField(allow_null=True)
    snoozed_until = s.DateTimeField(
        allow_null=True, help_text="end of the snooze; null with `state` snoozed: until a change"
    )
    snoozed_by = s.CharField(allow_null=True)
    silence = s.UUIDField(
        allow_null=True,
        help_text="silence that matches all its firing alerts and mutes its notifications; null: none",
    )
    overridden = OverriddenShape(
        many=True, help_text="silences and maintenance windows that a person overrode: notifications are sent"
    )
    merged_into = MergedShape(
        allow_null=True, help_text="target of the merge; this incident counts as resolved"
    )
    merged = MergedShape(many=True, help_text="incidents merged into it")
    resolved_at = s.DateTimeField(allow_null=True)
    resolved_by = s.CharField(allow_null=True)
    confirmed_cause = s.CharField(
        allow_null=True, help_text='a component, a class such as `firmware`, or "none"'
    )
    remediation = RemediationShape(
        allow_null=True, help_text="repair of the node; null: not handed to a cluster"
    )
    proposals = ProposalShape(many=True, help_text="proposed actions awaiting a decision")
    failure = FailureShape()
    failing_since = s.DateTimeField(allow_null=True, help_text="data time of the first known failure")
    last_failure = s.DateTimeField(allow_null=True, help_text="data time of the last known failure")
    position = s.CharField(help_text="log position of this state")
    url = s.URLField(help_text="address of its page in the console")


class IncidentPageShape(PageShape):
    results = IncidentShape(many=True)


class EntryShape(s.Serializer[Any]):
    """An entry of the timeline."""

    id = s.CharField(help_text="id of the event, stream@version")
    version = s.IntegerField()
    last_version = s.IntegerField(help_text="version of the last event in this entry")
    count = s.IntegerField(help_text="number of consecutive similar findings in this entry")
    type = s.CharField(help_text="event type, such as incident.opened")
    at = s.DateTimeField()
    last_at = s.DateTimeField()
    actor = s.CharField(help_text="user:NAME, key:NAME, system:NAME or shell:NAME")
    trace = s.CharField(allow_null=True, help_text="id of the request or run that caused it")
    text = s.CharField(help_text="the event as a sentence")
    body = s.DictField()
    position = s.CharField()


class TimelineShape(s.Serializer[Any]):
    results = EntryShape(many=True)


class AttachedShape(EvidenceShape):
    """Evidence on an incident, with its run, analyzer, version and parameters."""

    id = s.CharField(help_text="event that attached it")
    at = s.DateTimeField()
    actor = s.CharField()
    analyzer = s.CharField(allow_null=True)
    analyzer_version = s.CharField(allow_null=True)
    run = s.CharField(allow_null=True)
    params = s.DictField(allow_null=True)
    window = s.DictField(allow_null=True, help_text="start and end of the telemetry that was judged")


class AttachedListShape(s.Serializer[Any]):
    results = AttachedShape(many=True)


class LinkToShape(s.Serializer[Any]):
    href = s.CharField(max_length=2000, required=False, help_text="an http or https address")
    text = s.CharField(max_length=300, required=False, help_text="text of the link")
    incident = s.CharField(required=False, help_text="instead of `href`: id or number of a related incident")


class NothingShape(s.Serializer[Any]):
    """An empty object, or no body at all."""


class AssignShape(s.Serializer[Any]):
    owner = s.CharField(max_length=255, allow_null=True, help_text="user name; null removes the owner")


class HandOverShape(s.Serializer[Any]):
    team = s.CharField(help_text="slug of the receiving team")
    reason = s.CharField(max_length=2000, help_text="reason for the new team")


class BounceShape(s.Serializer[Any]):
    reason = s.CharField(max_length=2000, help_text="reason for the rejection")


class EscalateShape(s.Serializer[Any]):
    reason = s.CharField(max_length=2000, help_text="reason for escalating now")


class SnoozeShape(s.Serializer[Any]):
    until = s.DateTimeField(
        required=False, help_text="end of the snooze, at most 30 days ahead; absent or null: until a change"
    )
    reason = s.CharField(max_length=2000, required=False)


class SilenceIncidentShape(s.Serializer[Any]):
    until = s.DateTimeField(
        help_text="end of the silence, which matches the labels that its firing alerts share"
    )
    comment = s.CharField(max_length=2000, help_text="reason, shown to people on call")


class EndSilenceShape(s.Serializer[Any]):
    silence = s.CharField(help_text="id of the silence")


class MergeShape(s.Serializer[Any]):
    into = s.CharField(help_text="id or number of the target incident")
    reason = s.CharField(max_length=2000, required=False)


class SplitShape(s.Serializer[Any]):
    incident = s.CharField(
        required=False, help_text="id or number of the merged incident, if the request addresses its target"
    )
    reason = s.CharField(max_length=2000, required=False)


class SplitOffShape(s.Serializer[Any]):
    alerts = s.ListField(child=s.CharField(), help_text="ids of alerts of this incident, at most 1,000")
    title = s.CharField(max_length=300, required=False, help_text="default: title of the first alert")
    reason = s.CharField(max_length=2000, required=False)


class UndoShape(s.Serializer[Any]):
    what = s.ChoiceField(
        choices=get_args(Undoable),
        required=False,
        help_text="action to undo, which must be the last one; default: the last action",
    )


class SetSeverityShape(s.Serializer[Any]):
    severity = s.ChoiceField(choices=SEVERITIES)


class SetTitleShape(s.Serializer[Any]):
    title = s.CharField(max_length=300)


class CommentShape(s.Serializer[Any]):
    text = s.CharField(max_length=20_000, help_text="Markdown; HTML in it is shown as text")
    links = LinkShape(many=True, required=False, help_text="attached links, at most 10")


class AttachShape(s.Serializer[Any]):
    evidence = EvidenceShape(many=True)


class ResolveShape(s.Serializer[Any]):
    confirmed_cause = s.CharField(
        help_text=f"cause: a component ({COMPONENT_FORM}), a class of causes in one word, such as"
        ' `firmware`, if no single component was at fault, or "none"'
    )
    note = s.CharField(max_length=20_000, required=False)
    without_proof = s.CharField(
        max_length=2000,
        required=False,
        help_text="reason to resolve an incident that requires proof of repair without the proof; for"
        " managers of its team and keys with the scope remediation:request",
    )


class ReopenShape(s.Serializer[Any]):
    reason = s.CharField(max_length=2000, required=False)


class ReceiptShape(s.Serializer[Any]):
    """Outcome of a request that was answered with a 2xx."""

    receipt = s.CharField()
    kind = s.CharField(help_text="incident, configuration, telemetry, alerts or change")
    recorded_at = s.DateTimeField()
    outcome = s.CharField(help_text="opened, joined or changed; else the reason why no incident was opened")
    incident = s.DictField(allow_null=True, help_text="id, number and url")
    events = s.ListField(child=s.DictField(), help_text="id, type and position of each event")
    alerts = s.ListField(
        child=s.DictField(),
        required=False,
        help_text="per alert: outcome, incident, and reason for joining or suppression",
    )


class MemberAlertShape(s.Serializer[Any]):
    """An alert of an incident, now or at `as_of`."""

    id = s.CharField()
    status = s.CharField(help_text="firing, acknowledged or resolved")
    expired = s.BooleanField(help_text="true: resolved because the sender stopped repeating it")
    title = s.CharField()
    severity = s.CharField()
    component = s.CharField(allow_null=True)
    description = s.CharField()
    labels = s.DictField()
    links = s.ListField(child=s.DictField(), help_text="href and text")
    images = s.ListField(child=s.DictField(), help_text="src, href and alt")
    notes = s.ListField(child=s.CharField(), help_text="parts that were shortened or left out")
    integration = s.CharField(help_text="name of the integration that sent it")
    endpoint = s.CharField()
    key = s.CharField(help_text="dedup key of the sender: same key, same alert")
    starts_at = s.DateTimeField(allow_null=True)
    changed_at = s.DateTimeField()
    last_seen = s.DateTimeField(
        allow_null=True,
        help_text="time of the latest repeat; null with `as_of`, since repeats are not in the log",
    )
    repeats = s.IntegerField(allow_null=True, help_text="number of unchanged repeats; null with `as_of`")
    receipt = s.CharField(allow_null=True, help_text="receipt of the last delivery that changed it")
    why = s.CharField(
        allow_null=True, help_text="reason for grouping; null if the alert left, or with `as_of`"
    )


class MemberAlertPageShape(PageShape):
    results = MemberAlertShape(many=True)
    count = s.IntegerField(help_text="number of alerts of the incident")
    pending_resolutions = s.IntegerField(
        help_text="alerts of an incident resolved by a person that are still to be marked resolved, in"
        " batches of some hundred"
    )


class ProblemShape(s.Serializer[Any]):
    """RFC 9457 problem details."""

    type = s.CharField()
    title = s.CharField()
    status = s.IntegerField()
    detail = s.CharField(required=False)
    errors = s.DictField(required=False, help_text="reasons by field")  # type: ignore[assignment]


class HappenedShape(s.Serializer[Any]):
    type = s.CharField(help_text="incident.acknowledged, incident.resolved …")
    at = s.DateTimeField()
    actor = s.CharField()
    text = s.CharField(help_text="event as a sentence")
    position = s.CharField()


class ConflictShape(ProblemShape):
    """Reason for the rejection of a command."""

    meanwhile = HappenedShape(
        many=True, required=False, help_text="with If-Match: events by others since then, oldest first"
    )


class Strict:
    """Refuses fields that nobody reads."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping) and (unknown := sorted(set(data) - set(self.fields))):  # type: ignore[attr-defined]
            raise s.ValidationError({name[:100]: ["is not a field here"] for name in unknown})
        return super().to_internal_value(data)  # type: ignore[misc]


class TeamSerializer(Strict, s.ModelSerializer[Team]):
    class Meta:
        model = Team
        fields = ("slug", "name", "description", "is_default")
        # A new default team takes the place of the old one.
        extra_kwargs: ClassVar[dict[str, Any]] = {"is_default": {"validators": []}}

    def validate_name(self, name: str) -> str:
        return line("name", name)

    def validate_is_default(self, is_default: bool) -> bool:
        if self.instance is not None and self.instance.is_default and not is_default:
            raise s.ValidationError("a default team is required: make another one the default")
        return is_default


def line(field: str, text: str) -> str:
    """A text on one line, or the serializer's own refusal."""
    try:
        return check_line(field, text)
    except InvalidValueError as invalid:
        raise s.ValidationError(invalid.reason) from None
