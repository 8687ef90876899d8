"""Escalation policies over HTTP, and where the escalation of an incident stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from incidents.api.editable import BySlug, Catalog
from incidents.api.incident.serializers import Strict
from incidents.api.incident.views import (
    AS_OF,
    ERRORS,
    MISSING,
    ConflictError,
    IncidentAPI,
    as_of_in,
    parameters,
)
from incidents.domain.escalation.policy import KINDS, MOST_ACTIONS, MOST_STEPS, Action, Policy, policy_from
from incidents.domain.values import InvalidValueError
from incidents.escalation import queries
from incidents.escalation.models import POLICY_FIELDS, EscalationPolicy
from incidents.escalation.queries import missing
from incidents.queries import get
from incidents.teams.models import Team
from incidents.teams.references import named_by
from ingest.queries import moment_of

_STEPS = {
    "type": "array",
    "minItems": 1,
    "maxItems": MOST_STEPS,
    "items": {
        "type": "object",
        "required": ["actions"],
        "additionalProperties": False,
        "properties": {
            "after": {
                "type": "integer",
                "minimum": 0,
                "default": 0,
                "description": "seconds after the previous step",
            },
            "actions": {
                "type": "array",
                "minItems": 1,
                "maxItems": MOST_ACTIONS,
                "items": {
                    "type": "object",
                    "minProperties": 1,
                    "maxProperties": 1,
                    "additionalProperties": False,
                    "properties": {
                        kind: {"type": "boolean" if kind == "owner" else "string"} for kind in KINDS
                    },
                    "description": "exactly one of these fields",
                },
            },
        },
    },
    "example": [
        {"after": 0, "actions": [{"schedule": "storage-primary"}]},
        {"after": 300, "actions": [{"person": "bob"}, {"channel": "storage-chat"}, {"severity": "critical"}]},
    ],
}


@extend_schema_field(_STEPS)
class StepsField(s.JSONField):
    pass


class PolicySerializer(Strict, s.ModelSerializer[EscalationPolicy]):
    steps = StepsField(
        help_text="Each runs `after` seconds after the previous one, the first after the incident opened."
        " Actions: `person`, `schedule`, `team` and `owner` page people, `channel` notifies a"
        " channel, `severity` raises the severity, `bridge` links a call ({number} is replaced by"
        " the incident's number)."
    )
    team = s.SlugRelatedField(
        slug_field="slug",
        queryset=Team.objects.all(),
        allow_null=True,
        required=False,
        help_text="team whose incidents follow this policy if their route names none",
    )

    class Meta:
        model = EscalationPolicy
        fields = (*POLICY_FIELDS[:2], "team", *POLICY_FIELDS[2:])
        extra_kwargs: ClassVar[dict[str, Any]] = {
            "repeats": {"help_text": "number of repetitions of all steps without a response"},
            "repeat_after": {"help_text": "seconds after the last step until the next repetition or the end"},
            "acknowledgement_timeout": {
                "help_text": "seconds without activity after which an acknowledged incident escalates again"
            },
            "restart_when_worse": {"help_text": "restart when the severity rises"},
        }

    def validate_team(self, team: Team | None) -> Team | None:
        others = EscalationPolicy.objects.filter(team=team)
        if self.instance is not None:
            others = others.exclude(pk=self.instance.pk)
        if team is not None and (other := others.first()) is not None:
            raise s.ValidationError(
                f"{team.name} already follows the policy {other.slug}; remove it there first"
            )
        return team

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        known = {name: getattr(self.instance, name) for name in POLICY_FIELDS} if self.instance else {}
        try:
            policy = policy_from({**known, **{k: v for k, v in attrs.items() if k in POLICY_FIELDS}})
        except InvalidValueError as error:
            raise s.ValidationError({error.field: [error.reason]}) from None
        if "steps" in attrs:
            _refuse_missing(policy)
            attrs["steps"] = policy.as_json()["steps"]
        return {**attrs, **({"name": policy.name} if "name" in attrs else {})}


def _refuse_missing(policy: Policy) -> None:
    wrong = {
        f"steps[{i}].actions[{j}].{action.kind}": [why]
        for i, step in enumerate(policy.steps)
        for j, action in enumerate(step.actions)
        if (why := missing(action)) is not None
    }
    if wrong:
        raise s.ValidationError(wrong)


def _actions(row: EscalationPolicy | None) -> list[Action]:
    return [] if row is None else [action for step in row.policy.steps for action in step.actions]


class PoliciesView(Catalog):
    """People called for an unacknowledged incident. A change concerns incidents that begin to wait after it."""

    kind = "escalation_policy"
    queryset = EscalationPolicy.objects.select_related("team")
    serializer_class = PolicySerializer
    pagination_class = BySlug
    lookup_field = "slug"

    def keep(self, serializer: BaseSerializer[EscalationPolicy]) -> None:
        serializer.save()
        # Asked again now that nothing can be removed: what it names may have gone since it was checked.
        if "steps" in serializer.validated_data and any(map(missing, _actions(serializer.instance))):
            raise ConflictError(
                "An object that it refers to was removed in the meantime; reload and try again."
            )

    def remove(self, instance: EscalationPolicy) -> None:
        if named := named_by("policy", instance.slug):
            raise ConflictError(f"{instance.name} is used by {named}; change that first.")
        instance.delete()


class PolicyNameShape(s.Serializer[Any]):
    slug = s.CharField()
    name = s.CharField()


class CalledShape(s.Serializer[Any]):
    person = s.CharField()

    def get_fields(self) -> dict[str, s.Field[Any, Any, Any, Any]]:
        return {**super().get_fields(), "as": s.CharField(help_text="schedule primary, team storage, …")}


class UnreachableShape(s.Serializer[Any]):
    target = s.CharField()
    why = s.CharField()


class NextShape(s.Serializer[Any]):
    people = CalledShape(many=True)
    actions = s.ListField(child=s.CharField())
    unreachable = UnreachableShape(many=True)


class EscalationShape(s.Serializer[Any]):
    phase = s.ChoiceField(
        ["starting", "climbing", "exhausted", "uncalled", "acknowledged", "paused"],
        help_text="exhausted: every step ran; uncalled: nobody to page; acknowledged: escalates again at"
        " `next_at` without activity; paused: snoozed, merged or resolved",
    )
    why = s.CharField(help_text="reason for the phase")
    policy = PolicyNameShape(allow_null=True, help_text="policy as it was when the escalation started")
    round = s.IntegerField()
    rounds = s.IntegerField()
    step = s.IntegerField(allow_null=True, help_text="next step, of `steps`")
    steps = s.IntegerField()
    next_at = s.DateTimeField(allow_null=True)
    late_seconds = s.FloatField(help_text="seconds since the next step was due")
    called = s.ListField(child=s.CharField(), help_text="people paged since the escalation started")
    next = NextShape(allow_null=True, help_text="recipients of the next step, by the schedules at that time")


class EscalationView(IncidentAPI):
    @extend_schema(
        operation_id="incidents_escalation",
        parameters=[AS_OF],
        responses={200: EscalationShape, **ERRORS, **MISSING},
    )
    def get(self, request: Request, reference: str) -> Response:
        """State of the escalation: next step, its time and recipients. With `as_of` the recipients of the
        next step are not known: `next` is null."""
        as_of = as_of_in(parameters(request, "as_of"))
        incident, now = get(reference, as_of).incident, (as_of and moment_of(as_of)) or timezone.now()
        statuses = (
            queries.escalation_status(incident, now)
            if as_of is None
            else queries.escalation_status_at(incident.id, as_of)
        )
        return Response(_UNSEEN if statuses is None else queries.as_json(statuses, now))


_UNSEEN: Mapping[str, Any] = {
    "phase": "starting",
    "why": "not evaluated yet; retry within a minute",
    "policy": None,
    "round": 1,
    "rounds": 0,
    "step": None,
    "steps": 0,
    "next_at": None,
    "late_seconds": 0.0,
    "called": [],
    "next": None,
}
