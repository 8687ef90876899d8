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
    text = s.CharField(max_length=300, required=False, help_text="what people see")


class EvidenceShape(s.Serializer[Any]):
    """A piece of evidence, as in a verdict."""

    kind = s.ChoiceField(choices=["table", "chart", "text"])
    title = s.CharField(max_length=300)
    columns = s.ListField(child=s.CharField(), required=False, help_text="names of a table's columns")
    rows = s.ListField(child=s.ListField(), required=False, help_text="a cell for each column; at most 1000")
    chart = s.DictField(required=False, help_text="a Vega-Lite specification with its data inline")
    text = s.CharField(required=False, help_text="the text, or a note under a table or chart")


class ReportShape(s.Serializer[Any]):
    """A report by a person or a sender."""

    title = s.CharField(max_length=300, help_text="one line")
    component = s.CharField(required=False, help_text=f"what fails: {COMPONENT_FORM}; decides the team")
    severity = s.ChoiceField(choices=SEVERITIES, required=False, help_text="default: warning")
    dedup_key = s.CharField(
        max_length=255, required=False, help_text="joins the open incident of this key; never empty"
    )
    description = s.CharField(max_length=20_000, required=False)
    labels = s.DictField(child=s.CharField(), required=False, help_text="at most 50")
    links = LinkShape(many=True, required=False)
    evidence = EvidenceShape(many=True, required=False, help_text="at most 20 pieces and 1 MB")


class DissentShape(s.Serializer[Any]):
    """Nats that an analyzer takes off the log-odds of a blame, as it judged the cause without naming it; learnt from
    resolved incidents, 0 without a record."""

    one = s.FloatField(help_text="off a blame by one analyzer")
    several = s.FloatField(help_text="off a blame by several that agree")


class OpinionShape(s.Serializer[Any]):
    """The latest word of one analyzer on an incident."""

    analyzer = s.CharField()
    version = s.CharField()
    stance = s.ChoiceField(
        choices=["blames", "blames_other", "saw_nothing", "no_longer_blames"],
        help_text="blames: names this incident's cause; blames_other: looked at it and names `component` instead;"
        " saw_nothing: looked at it and names nothing there; no_longer_blames: a later window of the same"
        " schedule does not name it any more",
    )
    component = s.CharField(allow_null=True, help_text="suspected component, now or last; null: none")
    ambiguous_with = s.ListField(child=s.CharField())
    score = s.FloatField(allow_null=True, help_text="its own probability, 0 to 1; null where it gives none")
    failure_rate = s.FloatField(allow_null=True)
    indicator = s.CharField(help_text="signal that shows the fault; empty: not stated")
    path = s.ListField(
        child=s.CharField(), help_text="components from the cause to the symptom; empty: not stated"
    )
    run = s.CharField(help_text="the run that said so")
    schedules = s.ListField(child=s.CharField(), help_text="schedules that still say so")
    window = s.DictField(help_text="start and end of the telemetry that it rests on")
    first_at = s.DateTimeField(allow_null=True, help_text="time of the first finding on this incident")
    dissent = DissentShape()


class OwnershipShape(s.Serializer[Any]):
    """Seconds with each, counted until `until`; while it is not resolved, those that have it have it longer."""

    teams = s.DictField(child=s.FloatField())
    owners = s.DictField(child=s.FloatField())
    until = s.DateTimeField()


class OverriddenShape(s.Serializer[Any]):
    id = s.UUIDField(help_text="of the silence, or of the edition of the maintenance window")
    starts_at = s.DateTimeField()
    until = s.DateTimeField(help_text="the end of the override")
    why = s.CharField()
    by = s.CharField(help_text="the person or key that resumed notifications")


class MergedShape(s.Serializer[Any]):
    id = s.UUIDField()
    number = s.IntegerField()
    title = s.CharField(required=False)


class FailureShape(s.Serializer[Any]):
    """State of the failure, apart from the state of the work."""

    state = s.ChoiceField(
        choices=FAILURE_STATES,
        help_text="no_data: no window was judged lately; unknown: reported by a person, no alert and no finding",
    )
    since = s.DateTimeField(
        allow_null=True, help_text="failing: first failure; quiet: last failure; no_data: last judged window"
    )


class RelatedShape(s.Serializer[Any]):
    """A component that an analyzer names for the fault of this incident, tied to its cause by the topology."""

    component = s.CharField()
    how = s.CharField(help_text="rank/17 depends on nic/n2-1")


class AnswerShape(s.Serializer[Any]):
    """Answer of the cluster about its node."""

    answer = s.ChoiceField(choices=ANSWERS)
    at = s.DateTimeField()
    by = s.CharField(help_text="person or system that did it, as the answer names it")
    actor = s.CharField(help_text="who sent the answer: a person, or key:NAME")
    note = s.CharField()
    part = s.CharField(allow_null=True, help_text="the part that is in now")
    replaced = s.CharField(allow_null=True, help_text="the part before it")


class WaivedShape(s.Serializer[Any]):
    by = s.CharField()
    at = s.DateTimeField()
    reason = s.CharField()


class RemediationShape(s.Serializer[Any]):
    """Last request of an incident to the cluster, and its progress."""

    request = s.UUIDField(help_text="id of the request")
    component = s.CharField()
    node = s.CharField(help_text="name of the node")
    part = s.CharField(allow_null=True, help_text="the part that is watched after the return; null: the node")
    target = s.CharField(allow_null=True, help_text="webhook that carries the request; null: by hand")
    reason = s.CharField()
    requested_at = s.DateTimeField()
    requested_by = s.CharField()
    proof_required = s.BooleanField(help_text="whether it is resolved only with proof of repair")
    stage = s.ChoiceField(choices=STAGES)
    answers = AnswerShape(many=True)
    proof = s.DictField(
        allow_null=True,
        help_text="`verdict` (unknown, repaired, not_repaired), `summary` and the figures of the sequential test; null"
        " before the return",
    )
    waived = WaivedShape(allow_null=True, help_text="who resolved it without the proof")
    reopened = s.BooleanField(help_text="reopened after the proof of repair: a person resolves it")


class ProposalShape(s.Serializer[Any]):
    """An action that waits for a person to accept or decline it."""

    id = s.UUIDField()
    action = s.ChoiceField(choices=["hand_over", "silence"])
    text = s.CharField(help_text="the action in words")
    reason = s.CharField()
    by = s.CharField(help_text="who proposed it")
    at = s.DateTimeField()
    team = s.CharField(allow_null=True, help_text="of a hand-over")
    matchers = s.ListField(child=s.DictField(), help_text="of a silence: name, value, isRegex, isEqual")
    minutes = s.IntegerField(allow_null=True, help_text="length of a silence, from its acceptance")
    cites = s.ListField(child=s.CharField(), help_text="runs and log positions that the reason rests on")


class IncidentShape(s.Serializer[Any]):
    """An incident as it stands at `position`."""

    id = s.UUIDField()
    number = s.IntegerField(help_text="for people: 1, 2, 3 …")
    title = s.CharField()
    description = s.CharField()
    state = s.ChoiceField(choices=STATES)
    severity = s.ChoiceField(choices=SEVERITIES)
    component = s.CharField(allow_null=True)
    ambiguous_with = s.ListField(child=s.CharField(), help_text="what the data cannot tell apart from it")
    related = RelatedShape(many=True, help_text="other components under which analyzers see the same fault")
    region = s.CharField(allow_null=True)
    team = s.CharField(help_text="slug of the team that has it")
    routing = s.CharField(help_text="why that team got it first")
    service = s.CharField(allow_null=True, help_text="slug of the service, from the route")
    policy = s.CharField(allow_null=True, help_text="slug of the escalation policy that its route names")
    owner = s.CharField(allow_null=True)
    dedup_key = s.CharField()
    labels = s.DictField(child=s.CharField())
    links = LinkShape(many=True)
    confidence = s.FloatField(
        allow_null=True,
        help_text="0 to 1: the latest leading score of the analyzer that blames it; of several that agree what"
        " they say together (log-odds of the best plus half those of each other, at most .999)",
    )
    verdict = s.CharField(allow_null=True, help_text="one sentence: what the analyzers concluded")
    analyzer = s.CharField(allow_null=True, help_text="whose sentence the verdict is")
    opinions = OpinionShape(many=True, help_text="analyzer opinions, suspecting ones first")
    still_blamed = s.BooleanField(help_text="whether the latest window of a schedule suspects it")
    alerts = s.IntegerField(help_text="reports with a dedup key that opened or joined it")
    findings = s.IntegerField(help_text="findings that opened, joined or were recorded on it")
    hops = s.IntegerField(help_text="number of moves to another team, rejections included")
    rejections = s.IntegerField(
        help_text="number of rejected hand-overs: it returned to the team that sent it"
    )
    handed_from = s.CharField(
        allow_null=True, help_text="the team whose hand-over waits to be accepted or rejected"
    )
    accepted_at = s.DateTimeField(allow_null=True, help_text="when its team accepted the last hand-over")
    accepted_by = s.CharField(allow_null=True)
    team_since = s.DateTimeField(help_text="when it came to the team that has it")
    ownership = OwnershipShape(help_text="how long each team and each owner had it")
    seconds_to_team = s.FloatField(
        allow_null=True,
        help_text="once resolved: from its opening until it came to the team that resolved it, to stay",
    )
    opened_at = s.DateTimeField()
    opened_by = s.CharField()
    acknowledged_at = s.DateTimeField(allow_null=True)
    acknowledged_by = s.CharField(allow_null=True)
    snoozed_until = s.DateTimeField(
        allow_null=True, help_text="null while `state` is snoozed: until it changes"
    )
    snoozed_by = s.CharField(allow_null=True)
    silence = s.UUIDField(
        allow_null=True, help_text="the silence that holds all its firing alerts and so its notifications"
    )
    overridden = OverriddenShape(
        many=True, help_text="silences and maintenance windows in spite of which it notifies"
    )
    merged_into = MergedShape(
        allow_null=True, help_text="target of the merge; this incident counts as resolved"
    )
    merged = MergedShape(many=True, help_text="what was merged into it")
    resolved_at = s.DateTimeField(allow_null=True)
    resolved_by = s.CharField(allow_null=True)
    confirmed_cause = s.CharField(
        allow_null=True, help_text='a component, a class such as `firmware`, or "none"'
    )
    remediation = RemediationShape(
        allow_null=True, help_text="the node's way to repair; null: not handed over"
    )
    proposals = ProposalShape(many=True, help_text="actions that wait for a person")
    failure = FailureShape()
    failing_since = s.DateTimeField(allow_null=True, help_text="data time of the first failure known")
    last_failure = s.DateTimeField(allow_null=True, help_text="data time of the last failure known")
    position = s.CharField(help_text="log position at which this view is true")
    url = s.URLField(help_text="its page in the console")


class IncidentPageShape(PageShape):
    results = IncidentShape(many=True)


class EntryShape(s.Serializer[Any]):
    """A line of the timeline."""

    id = s.CharField(help_text="the event: stream@version")
    version = s.IntegerField()
    last_version = s.IntegerField(help_text="the last event that this line counts")
    count = s.IntegerField(help_text="number of consecutive similar findings in this entry")
    type = s.CharField(help_text="incident.opened, incident.acknowledged …")
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
    """Evidence on an incident, with the run, analyzer, version and parameters that it comes from."""

    id = s.CharField(help_text="the event that attached it")
    at = s.DateTimeField()
    actor = s.CharField()
    analyzer = s.CharField(allow_null=True)
    analyzer_version = s.CharField(allow_null=True)
    run = s.CharField(allow_null=True)
    params = s.DictField(allow_null=True)
    window = s.DictField(allow_null=True, help_text="start and end of the telemetry it rests on")


class AttachedListShape(s.Serializer[Any]):
    results = AttachedShape(many=True)


class LinkToShape(s.Serializer[Any]):
    href = s.CharField(max_length=2000, required=False, help_text="an http or https address")
    text = s.CharField(max_length=300, required=False, help_text="what people see of `href`")
    incident = s.CharField(required=False, help_text="instead of `href`: id or number of a related incident")


class NothingShape(s.Serializer[Any]):
    """An empty object, or no body at all."""


class AssignShape(s.Serializer[Any]):
    owner = s.CharField(max_length=255, allow_null=True, help_text="login; null takes the owner away")


class HandOverShape(s.Serializer[Any]):
    team = s.CharField(help_text="slug of the receiving team")
    reason = s.CharField(max_length=2000, help_text="reason for the new team")


class BounceShape(s.Serializer[Any]):
    reason = s.CharField(max_length=2000, help_text="reason for the rejection")


class EscalateShape(s.Serializer[Any]):
    reason = s.CharField(max_length=2000, help_text="why the next people are needed now")


class SnoozeShape(s.Serializer[Any]):
    until = s.DateTimeField(
        required=False, help_text="at most 30 days away; left out or null: until it changes"
    )
    reason = s.CharField(max_length=2000, required=False)


class SilenceIncidentShape(s.Serializer[Any]):
    until = s.DateTimeField(help_text="end of the silence of what its firing alerts have in common")
    comment = s.CharField(max_length=2000, help_text="why, for people on call")


class EndSilenceShape(s.Serializer[Any]):
    silence = s.CharField(help_text="id of the silence")


class MergeShape(s.Serializer[Any]):
    into = s.CharField(help_text="id or number of the incident that it becomes part of")
    reason = s.CharField(max_length=2000, required=False)


class SplitShape(s.Serializer[Any]):
    incident = s.CharField(
        required=False, help_text="id or number of a merged one, to take it out from its target's side"
    )
    reason = s.CharField(max_length=2000, required=False)


class SplitOffShape(s.Serializer[Any]):
    alerts = s.ListField(child=s.CharField(), help_text="ids of alerts of this incident, at most 1,000")
    title = s.CharField(max_length=300, required=False, help_text="left out: the first alert's")
    reason = s.CharField(max_length=2000, required=False)


class UndoShape(s.Serializer[Any]):
    what = s.ChoiceField(
        choices=get_args(Undoable), required=False, help_text="what it must be; left out: what was done last"
    )


class SetSeverityShape(s.Serializer[Any]):
    severity = s.ChoiceField(choices=SEVERITIES)


class SetTitleShape(s.Serializer[Any]):
    title = s.CharField(max_length=300)


class CommentShape(s.Serializer[Any]):
    text = s.CharField(max_length=20_000, help_text="Markdown; HTML in it is shown as text")
    links = LinkShape(many=True, required=False, help_text="what is attached to it, at most 10")


class AttachShape(s.Serializer[Any]):
    evidence = EvidenceShape(many=True)


class ResolveShape(s.Serializer[Any]):
    confirmed_cause = s.CharField(
        help_text=f"what was at fault: a component ({COMPONENT_FORM}), a class of causes in one word, such as"
        ' `firmware`, where it was no single one, or "none"'
    )
    note = s.CharField(max_length=20_000, required=False)
    without_proof = s.CharField(
        max_length=2000,
        required=False,
        help_text="the reason to resolve before the repair is proved, where the incident demands that; for managers of"
        " its team and keys with the scope remediation:request",
    )


class ReopenShape(s.Serializer[Any]):
    reason = s.CharField(max_length=2000, required=False)


class ReceiptShape(s.Serializer[Any]):
    """Outcome of a request that was answered with a 2xx."""

    receipt = s.CharField()
    kind = s.CharField(help_text="incident, configuration, telemetry, alerts or change")
    recorded_at = s.DateTimeField()
    outcome = s.CharField(help_text="opened, joined, changed; or why it opened no incident")
    incident = s.DictField(allow_null=True, help_text="id, number and url")
    events = s.ListField(child=s.DictField(), help_text="id, type and position of each event")
    alerts = s.ListField(
        child=s.DictField(),
        required=False,
        help_text="per alert: outcome, incident, and reason for joining or suppression",
    )


class MemberAlertShape(s.Serializer[Any]):
    """An alert of an incident as it stands, or stood."""

    id = s.CharField()
    status = s.CharField(help_text="firing, acknowledged or resolved")
    expired = s.BooleanField(help_text="resolved because its sender repeated it no more")
    title = s.CharField()
    severity = s.CharField()
    component = s.CharField(allow_null=True)
    description = s.CharField()
    labels = s.DictField()
    links = s.ListField(child=s.DictField(), help_text="href and text")
    images = s.ListField(child=s.DictField(), help_text="src, href and alt")
    notes = s.ListField(child=s.CharField(), help_text="what was shortened or left out")
    integration = s.CharField(help_text="the key that it came with")
    endpoint = s.CharField()
    key = s.CharField(help_text="the sender's own: two alerts with the same one are the same")
    starts_at = s.DateTimeField(allow_null=True)
    changed_at = s.DateTimeField()
    last_seen = s.DateTimeField(allow_null=True, help_text="null with as_of: repeats are not in the log")
    repeats = s.IntegerField(
        allow_null=True, help_text="how often it was sent again without a change; null with as_of"
    )
    receipt = s.CharField(allow_null=True, help_text="of the delivery that changed it last")
    why = s.CharField(allow_null=True, help_text="reason for grouping; null if it left or for past times")


class MemberAlertPageShape(PageShape):
    results = MemberAlertShape(many=True)
    count = s.IntegerField(help_text="alerts of the incident in all")
    pending_resolutions = s.IntegerField(
        help_text="of an incident that a person resolved: alerts that count as firing until their turn comes, some"
        " hundred at a time"
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
    text = s.CharField(help_text="as a sentence")
    position = s.CharField()


class ConflictShape(ProblemShape):
    """Reason why a command was refused."""

    meanwhile = HappenedShape(
        many=True, required=False, help_text="with If-Match: what others did since, oldest first"
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
            raise s.ValidationError("there must be a default team: make another one the default")
        return is_default


def line(field: str, text: str) -> str:
    """A text on one line, or the serializer's own refusal."""
    try:
        return check_line(field, text)
    except InvalidValueError as invalid:
        raise s.ValidationError(invalid.reason) from None
