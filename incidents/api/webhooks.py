"""Webhooks over HTTP, as /api/v1/webhooks. Reading needs `admin`, too: an address may be as good as a password."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

from django.conf import settings
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers as s
from rest_framework.decorators import action
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from incidents.api.editable import Catalog
from incidents.api.incident.serializers import ProblemShape, Strict
from incidents.api.incident.views import ConflictError
from incidents.api.inputs import context
from incidents.domain.incident.evolve import EVENT_TYPES
from incidents.domain.status_pages import EVENT_TYPES as STATUS_EVENTS
from incidents.domain.values import SEVERITIES, InvalidValueError
from incidents.queries import parse_moment
from incidents.security import encryption
from incidents.security.outbound import AddressRefusedError, check_literal
from incidents.teams.models import Team
from incidents.webhooks import commands
from incidents.webhooks.models import Webhook, WebhookAttempt, WebhookDeadLetter, WebhookRetry
from incidents.webhooks.queries import lag_of
from ingest.api.authentication import HasScope
from ingest.api.pagination import Pages

LONGEST_OVERLAP = 31 * 86_400


class WebhookSerializer(Strict, s.ModelSerializer[Webhook]):
    url = s.CharField(
        max_length=2_000,
        help_text="http or https address; public, unless DOSSIER_OUTBOUND_ALLOWED_NETWORKS has its network",
    )
    teams = s.ListField(
        child=s.CharField(max_length=60), required=False, max_length=200, help_text="empty: all"
    )
    severities = s.ListField(child=s.ChoiceField(choices=SEVERITIES), required=False, max_length=4)
    types = s.ListField(
        child=s.ChoiceField(choices=sorted({*EVENT_TYPES, *STATUS_EVENTS})),
        required=False,
        max_length=100,
        help_text="empty: all events of incidents; events of status pages only if listed",
    )
    retries = s.SerializerMethodField(help_text="number of incidents whose next event awaits another attempt")
    dead_letters = s.SerializerMethodField(help_text="number of failed events; a replay sends them again")
    lag_seconds = s.SerializerMethodField(help_text="age of the oldest event not sent yet")

    class Meta:
        model = Webhook
        fields = (
            "name", "url", "teams", "severities", "types", "active", "disabled_reason", "position", "last_success",
            "failing_since", "retry_at", "previous_until", "retries", "dead_letters", "lag_seconds",
        )  # fmt: skip
        read_only_fields = (
            "disabled_reason", "position", "last_success", "failing_since", "retry_at", "previous_until",
        )  # fmt: skip
        extra_kwargs: ClassVar[dict[str, Any]] = {"active": {"help_text": "true: restart a stopped webhook"}}

    def get_retries(self, row: Webhook) -> int:
        return row.retries.count()

    def get_dead_letters(self, row: Webhook) -> int:
        return row.dead_letters.count()

    def get_lag_seconds(self, row: Webhook) -> float:
        return lag_of(row)

    def validate_name(self, name: str) -> str:
        if self.instance is not None and name != self.instance.name:
            raise s.ValidationError(
                "cannot be changed: receivers identify the webhook by it; create another webhook"
            )
        return name

    def validate_url(self, url: str) -> str:
        try:
            check_literal(url, settings.OUTBOUND_ALLOWED_NETWORKS)
        except AddressRefusedError as refused:
            raise s.ValidationError(str(refused)) from None
        return url

    def validate_teams(self, teams: list[str]) -> list[str]:
        known = set(Team.objects.values_list("slug", flat=True))
        if unknown := sorted(set(teams) - known):
            raise s.ValidationError(
                f"there is no team {unknown[0][:60]}; there are {', '.join(sorted(known))}"
            )
        return teams


class MadeWebhookSerializer(WebhookSerializer):
    secret = s.CharField(read_only=True, help_text="shown only once")

    class Meta(WebhookSerializer.Meta):
        fields = (*WebhookSerializer.Meta.fields, "secret")  # type: ignore[assignment]


class SecretShape(s.Serializer[Any]):
    name = s.CharField()
    secret = s.CharField(help_text="shown only once")
    previous_until = s.DateTimeField(help_text="until then messages are also signed with the previous secret")


class OverlapShape(Strict, s.Serializer[Any]):
    overlap_seconds = s.IntegerField(default=86_400, min_value=0, max_value=LONGEST_OVERLAP)


class ReplayShape(Strict, s.Serializer[Any]):
    since = s.CharField(max_length=100, help_text="RFC 3339 time or log position; later events are replayed")


class WebhookTriedShape(s.Serializer[Any]):
    taken = s.BooleanField()
    status = s.IntegerField(allow_null=True, help_text="HTTP status; null: no answer")
    answer = s.CharField(help_text="start of the answer, or the reason for its absence")
    milliseconds = s.IntegerField()


class AttemptShape(s.ModelSerializer[WebhookAttempt]):
    class Meta:
        model = WebhookAttempt
        fields = ("event", "type", "incident", "at", "milliseconds", "status", "taken", "answer")


class WebhookRetryShape(s.ModelSerializer[WebhookRetry]):
    class Meta:
        model = WebhookRetry
        fields = ("stream", "version", "since", "attempts", "next_at", "error")


class WebhookDeadLetterShape(s.ModelSerializer[WebhookDeadLetter]):
    class Meta:
        model = WebhookDeadLetter
        fields = ("event", "type", "incident", "position", "at", "reason")


class DeliveriesShape(s.Serializer[Any]):
    attempts = AttemptShape(many=True, help_text="last hundred, newest first")
    retries = WebhookRetryShape(many=True)
    dead_letters = WebhookDeadLetterShape(many=True)


class ByName(Pages):
    ordering = ("name",)
    page_size = 100


ANSWERS = {
    400: OpenApiResponse(ProblemShape, "Invalid; `errors` has field and reason."),
    404: OpenApiResponse(ProblemShape, "Webhook not found."),
    409: OpenApiResponse(ProblemShape, "Not possible now; `detail` has the reason."),
}


class WebhooksView(Catalog):
    """Addresses that receive the events of incidents."""

    kind = commands.KIND
    queryset = Webhook.objects.all()
    serializer_class = WebhookSerializer
    pagination_class = ByName
    lookup_field = "name"

    def get_permissions(self) -> list[BasePermission]:
        return [HasScope("admin")]

    @extend_schema(responses={201: MadeWebhookSerializer, **ANSWERS})
    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Create a webhook for future events; the answer holds its secret, which is shown only once."""
        answer = super().create(request, *args, **kwargs)
        answer.data = {**answer.data, "secret": self.secret}
        return answer

    def perform_create(self, serializer: BaseSerializer[Webhook]) -> None:
        try:
            made = commands.create(serializer.validated_data, self.context)
        except (commands.TooManyWebhooksError, commands.TeamDeletedError) as error:
            raise ConflictError(f"{error}.") from None
        serializer.instance, self.secret = made

    def perform_update(self, serializer: BaseSerializer[Webhook]) -> None:
        assert serializer.instance is not None
        try:
            row = commands.change(serializer.instance, serializer.validated_data, self.context)
        except commands.TeamDeletedError as error:
            raise ConflictError(f"{error}.") from None
        serializer.instance = row

    def perform_destroy(self, instance: Webhook) -> None:
        commands.remove(instance, self.context)

    @extend_schema(
        operation_id="webhooks_rotate", request=OverlapShape, responses={200: SecretShape, **ANSWERS}
    )
    @action(detail=True, methods=["post"])
    def rotate(self, request: Request, name: str) -> Response:
        """Make a new secret; for the overlap, by default a day, deliveries are signed with both."""
        del name
        serializer = OverlapShape(data=request.data)
        serializer.is_valid(raise_exception=True)
        webhook = self.get_object()
        overlap = timedelta(seconds=serializer.validated_data["overlap_seconds"])
        secret = commands.rotate(webhook, context(request), overlap)
        webhook.refresh_from_db()
        return Response({"name": webhook.name, "secret": secret, "previous_until": webhook.previous_until})

    @extend_schema(operation_id="webhooks_test", request=None, responses={200: WebhookTriedShape, **ANSWERS})
    @action(detail=True, methods=["post"])
    def test(self, request: Request, name: str) -> Response:
        """Send a `webhook.test` now, and say what came of it."""
        del name
        try:
            tried = commands.test(self.get_object(), context(request).actor)
        except encryption.DecryptionError as error:
            raise ConflictError(f"{error}.") from None
        return Response(
            {
                "taken": tried.outcome == "taken",
                "status": tried.status,
                "answer": tried.answer,
                "milliseconds": tried.milliseconds,
            }
        )

    @extend_schema(
        operation_id="webhooks_replay", request=ReplayShape, responses={200: WebhookSerializer, **ANSWERS}
    )
    @action(detail=True, methods=["post"])
    def replay(self, request: Request, name: str) -> Response:
        """Tell again what came after a time or a position, with the same ids; `Dossier-Replay: true` marks it."""
        del name
        serializer = ReplayShape(data=request.data)
        serializer.is_valid(raise_exception=True)
        webhook = self.get_object()
        try:
            row = commands.replay(webhook, parse_moment(serializer.validated_data["since"]), context(request))
        except commands.ReplayAheadError as error:
            raise ConflictError(f"{webhook.name}: {error}.") from None
        except InvalidValueError as error:
            raise s.ValidationError({"since": [error.reason]}) from None
        return Response(self.get_serializer(row).data)

    @extend_schema(operation_id="webhooks_deliveries", responses={200: DeliveriesShape, **ANSWERS})
    @action(detail=True, methods=["get"], pagination_class=None)
    def deliveries(self, request: Request, name: str) -> Response:
        """Last deliveries, waiting ones, and those that were given up."""
        del request, name
        row = self.get_object()
        shown = {
            "attempts": row.attempts.all()[:100],
            "retries": row.retries.order_by("since")[:100],
            "dead_letters": row.dead_letters.all()[:100],
        }
        return Response(DeliveriesShape(shown).data)
