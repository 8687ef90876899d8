"""Workspaces of a chat service as /api/v1/chat_workspaces, and the address that Slack sends to."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers as s
from rest_framework.decorators import action
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from incidents.api.editable import Catalog
from incidents.api.incident.serializers import ProblemShape, Strict
from incidents.api.incident.views import ConflictError
from incidents.api.inputs import context
from incidents.chat import commands, requests
from incidents.chat.models import ChatWorkspace
from incidents.chat.queries import lag_of
from incidents.chat.slack import SlackError
from incidents.domain.config.secrets import MissingVariableError, reference, resolved
from incidents.domain.values import SEVERITIES, InvalidValueError
from ingest.api.authentication import HasScope
from ingest.api.pagination import Pages
from ingest.api.problem_details import problem

CHANNEL = r"^[CGD][A-Z0-9]{4,38}$"
SECRETS = {"token": "CHAT_TOKEN", "signing_secret": "CHAT_SIGNING_SECRET"}
"""Prefixes of the variables that a file of configuration names for them."""


class ChatWorkspaceSerializer(Strict, s.ModelSerializer[ChatWorkspace]):
    token = s.RegexField(
        r"^xoxb-[A-Za-z0-9-]{10,500}$",
        write_only=True,
        help_text="bot token; stored encrypted, never shown",
        error_messages={"invalid": "must be a bot token, which begins with xoxb-"},
    )
    signing_secret = s.RegexField(
        r"^[0-9a-f]{16,128}$",
        write_only=True,
        help_text="of the app's basic information; stored encrypted, never shown",
        error_messages={"invalid": "must be the signing secret of the app: hexadecimal digits"},
    )
    channel = s.RegexField(
        CHANNEL,
        required=False,
        allow_blank=True,
        help_text="id of the channel of teams that `rooms` does not name; empty for none",
        error_messages={"invalid": "must be the id of a channel, such as C0123456789; its details show it"},
    )
    rooms = s.DictField(
        child=s.RegexField(CHANNEL, error_messages={"invalid": "must be the id of a channel"}),
        required=False,
        help_text="channel id by slug of the team",
    )
    least = s.ChoiceField(choices=SEVERITIES, required=False, help_text="lowest severity that has a message")
    accounts = s.SerializerMethodField(help_text="linked chat accounts")
    lag_seconds = s.SerializerMethodField(help_text="age of the oldest event that the messages do not show")

    class Meta:
        model = ChatWorkspace
        fields = (
            "name", "token", "signing_secret", "channel", "rooms", "least", "active", "error", "retry_at",
            "last_success", "accounts", "lag_seconds",
        )  # fmt: skip
        read_only_fields = ("error", "retry_at", "last_success")
        extra_kwargs: ClassVar[dict[str, Any]] = {
            "active": {"help_text": "false stops messages and requests"}
        }

    def get_accounts(self, row: ChatWorkspace) -> int:
        return row.accounts.count()

    def get_lag_seconds(self, row: ChatWorkspace) -> float:
        return lag_of(row)

    def validate_name(self, name: str) -> str:
        if self.instance is not None and name != self.instance.name:
            raise s.ValidationError("is part of the address that the app has, and stays")
        return name


class ChatTestShape(s.Serializer[Any]):
    channel = s.CharField(help_text="id of the channel that has the message")


class ByName(Pages):
    ordering = ("name",)
    page_size = 100


ANSWERS = {
    400: OpenApiResponse(ProblemShape, "Wrong: `errors` names field and reason."),
    404: OpenApiResponse(ProblemShape, "There is no such workspace."),
    409: OpenApiResponse(ProblemShape, "It cannot be now: `detail` says why."),
}


class ChatWorkspacesView(Catalog):
    """Slack workspaces with messages of incidents."""

    kind = commands.KIND
    queryset = ChatWorkspace.objects.all()
    serializer_class = ChatWorkspaceSerializer
    pagination_class = ByName
    lookup_field = "name"

    def get_permissions(self) -> list[BasePermission]:
        return [HasScope("admin")]

    def perform_create(self, serializer: BaseSerializer[ChatWorkspace]) -> None:
        try:
            serializer.instance = commands.create(serializer.validated_data, self.context)
        except commands.TooManyWorkspacesError as error:
            raise ConflictError(f"{error}.") from None
        except InvalidValueError as error:
            raise s.ValidationError({error.field: [error.reason]}) from None

    def perform_update(self, serializer: BaseSerializer[ChatWorkspace]) -> None:
        assert serializer.instance is not None
        try:
            row = commands.change(serializer.instance, serializer.validated_data, self.context)
        except InvalidValueError as error:
            raise s.ValidationError({error.field: [error.reason]}) from None
        serializer.instance = row

    def perform_destroy(self, instance: ChatWorkspace) -> None:
        commands.remove(instance, self.context)

    @extend_schema(
        operation_id="chat_workspaces_test", request=None, responses={200: ChatTestShape, **ANSWERS}
    )
    @action(detail=True, methods=["post"])
    def test(self, request: Request, name: str) -> Response:
        """Post a test message to the default channel."""
        del name
        try:
            channel = commands.test(self.get_object(), context(request).actor)
        except SlackError as error:
            raise ConflictError(f"Not sent: {error}.") from None
        return Response({"channel": channel})


class ChatWorkspaceFileSerializer(ChatWorkspaceSerializer):
    """Token and signing secret are given, or variables are named that hold them; neither is ever shown."""

    token = s.CharField(max_length=600)  # type: ignore[assignment]  # its pattern holds for what the variable has
    signing_secret = s.CharField(max_length=200)  # type: ignore[assignment]

    class Meta(ChatWorkspaceSerializer.Meta):
        fields = ("name", "token", "signing_secret", "channel", "rooms", "least", "active")  # type: ignore[assignment]
        read_only_fields = ()  # type: ignore[assignment]

    def to_representation(self, row: ChatWorkspace) -> dict[str, Any]:
        hidden = {name: reference(prefix, row.name) for name, prefix in SECRETS.items()}
        changed = {
            name: f"{hidden[name]} (changed)" for name in self.context["view"].replaced.get(row.name, ())
        }
        return {**super().to_representation(row), **hidden, **changed}

    def validate_token(self, text: str) -> str:
        return self._secret("token", text)

    def validate_signing_secret(self, text: str) -> str:
        return self._secret("signing_secret", text)

    def _secret(self, name: str, text: str) -> str:
        try:
            given = resolved(text, self.context["view"].environment)
        except MissingVariableError as lacking:
            if self.instance is not None:
                return str(getattr(self.instance, name))
            raise s.ValidationError(f"set {lacking} in the environment: with the value to use here") from None
        return str(ChatWorkspaceSerializer().fields[name].run_validation(given))


class ChatWorkspacesFile(ChatWorkspacesView):
    """In a file of configuration, without the linked accounts."""

    serializer_class = ChatWorkspaceFileSerializer

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.replaced: dict[str, list[str]] = {}
        """Secrets that this file has changed, by workspace."""

    def put(self, serializer: BaseSerializer[ChatWorkspace]) -> None:
        """Changes what differs: a workspace that fails goes on failing when nothing of it was changed."""
        row = serializer.instance
        if row is None:
            self.perform_create(serializer)
            return
        given = serializer.validated_data
        changed = {name: value for name, value in given.items() if value != getattr(row, name)}
        if changed:
            self.replaced[row.name] = [name for name in SECRETS if name in changed]
            try:
                commands.change(row, changed, self.context)
            except InvalidValueError as error:
                raise s.ValidationError({error.field: [error.reason]}) from None


class SlackView(APIView):
    """The signature of a request is its proof."""

    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()

    @extend_schema(
        operation_id="chat_slack",
        request={
            "application/x-www-form-urlencoded": OpenApiTypes.OBJECT,
            "application/json": OpenApiTypes.OBJECT,
        },
        responses={
            200: OpenApiResponse(
                OpenApiTypes.OBJECT, "Done; the body is what Slack shows, and may be empty."
            ),
            400: OpenApiResponse(ProblemShape, "Not a request of Slack."),
            401: OpenApiResponse(ProblemShape, "Unsigned, forged, or older than five minutes."),
            404: OpenApiResponse(ProblemShape, "There is no such workspace, or it is switched off."),
            409: OpenApiResponse(ProblemShape, "Received before."),
            413: OpenApiResponse(ProblemShape, "Too large."),
            503: OpenApiResponse(ProblemShape, "The signing secret cannot be decrypted."),
        },
    )
    def post(self, request: Request, name: str) -> HttpResponse:
        """Events, buttons, dialogs and slash commands of a Slack workspace."""
        if int(request.headers.get("Content-Length") or 0) > requests.LARGEST:
            return problem(413, "Payload Too Large", f"A request has at most {requests.LARGEST} bytes.")
        headers = {key.lower(): value for key, value in request.headers.items()}
        raw = request._request
        try:
            reply = requests.answer(name, headers, raw.content_type or "", raw.body)
        except requests.ChatRequestRefusedError as refused:
            return problem(refused.status, "Request refused", str(refused))
        if reply.body is None:
            return HttpResponse(status=200)
        return HttpResponse(json.dumps(reply.body), content_type="application/json")
