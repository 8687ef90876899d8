"""Workspaces of a chat service as /api/v1/chat_workspaces, and the addresses that the services send to."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, ClassVar

from django.conf import settings
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
from incidents.chat import commands, mattermost_requests, requests
from incidents.chat.errors import ChatError
from incidents.chat.models import ChatWorkspace
from incidents.chat.queries import lag_of
from incidents.domain.config.secrets import reference
from incidents.domain.values import SEVERITIES, InvalidValueError
from incidents.security.outbound import AddressRefusedError, check_literal
from ingest.api.authentication import HasScope
from ingest.api.pagination import Pages
from ingest.api.problem_details import problem

SECRETS = {"token": "CHAT_TOKEN", "signing_secret": "CHAT_SIGNING_SECRET"}
"""Prefixes of the variables that a file of configuration names for them."""

PLATFORM = ChatWorkspace.Platform
FORMS: dict[str, dict[str, tuple[re.Pattern[str], str]]] = {
    PLATFORM.SLACK: {
        "token": (
            re.compile(r"xoxb-[A-Za-z0-9-]{10,500}"),
            "must be a bot token, which begins with xoxb-",
        ),
        "signing_secret": (
            re.compile(r"[0-9a-f]{16,128}"),
            "must be the signing secret of the app: hexadecimal digits",
        ),
        "channel": (
            re.compile(r"[CGD][A-Z0-9]{4,38}"),
            "must be the id of a channel, such as C0123456789; its details show it",
        ),
    },
    PLATFORM.MATTERMOST: {
        "token": (re.compile(r"[a-z0-9]{26}"), "must be the access token of a bot: 26 letters and digits"),
        "signing_secret": (
            re.compile(r"[a-z0-9]{26}"),
            "must be the token of the slash command: 26 letters and digits",
        ),
        "channel": (
            re.compile(r"[a-z0-9]{26}"),
            "must be the id of a channel: 26 letters and digits; *View info* of the channel shows it",
        ),
    },
}
"""By platform and field what a value must look like, and what would be right."""
STAND_INS: dict[str, dict[str, str]] = {
    PLATFORM.SLACK: {"token": f"xoxb-{'0' * 10}", "signing_secret": "0" * 32},
    PLATFORM.MATTERMOST: dict.fromkeys(SECRETS, "0" * 26),
}
"""Secrets in the preview of a configuration without them; stored nowhere."""


class ChatWorkspaceSerializer(Strict, s.ModelSerializer[ChatWorkspace]):
    platform = s.ChoiceField(PLATFORM.choices, required=False, help_text="default: slack; cannot be changed")
    url = s.CharField(
        max_length=2_000,
        required=False,
        allow_blank=True,
        help_text="base address of the Mattermost server; public, unless DOSSIER_OUTBOUND_ALLOWED_NETWORKS has its"
        " network; empty for Slack",
    )
    token = s.CharField(max_length=600, write_only=True, help_text="bot token; stored encrypted, never shown")
    signing_secret = s.CharField(
        max_length=200,
        write_only=True,
        help_text="Slack: signing secret of the app; Mattermost: token of the slash command; stored"
        " encrypted, never shown",
    )
    channel = s.CharField(
        max_length=40,
        required=False,
        allow_blank=True,
        help_text="id of the channel for teams without an entry in `rooms`; empty: none",
    )
    rooms = s.DictField(
        child=s.CharField(max_length=40),
        required=False,
        help_text="channel id by team slug",
    )
    least = s.ChoiceField(choices=SEVERITIES, required=False, help_text="lowest severity that is posted")
    accounts = s.SerializerMethodField(help_text="linked chat accounts")
    lag_seconds = s.SerializerMethodField(help_text="age of the oldest event that is not posted yet")

    class Meta:
        model = ChatWorkspace
        fields = (
            "name", "platform", "url", "token", "signing_secret", "channel", "rooms", "least", "active", "error",
            "retry_at", "last_success", "accounts", "lag_seconds",
        )  # fmt: skip
        read_only_fields = ("error", "retry_at", "last_success")
        extra_kwargs: ClassVar[dict[str, Any]] = {
            "active": {"help_text": "false: no messages are posted, no requests accepted"}
        }

    def get_accounts(self, row: ChatWorkspace) -> int:
        return row.accounts.count()

    def get_lag_seconds(self, row: ChatWorkspace) -> float:
        return lag_of(row)

    def validate_name(self, name: str) -> str:
        if self.instance is not None and name != self.instance.name:
            raise s.ValidationError("cannot be changed: it is part of the address configured in the app")
        return name

    def validate_platform(self, platform: str) -> str:
        if self.instance is not None and platform != self.instance.platform:
            raise s.ValidationError("cannot be changed; create another workspace")
        return platform

    def validate_url(self, url: str) -> str:
        if not url:
            return url
        try:
            goal = check_literal(url, settings.OUTBOUND_ALLOWED_NETWORKS)
        except AddressRefusedError as refused:
            raise s.ValidationError(str(refused)) from None
        if "?" in goal.path:
            raise s.ValidationError("must be the base address, without a query")
        return url.rstrip("/")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Secrets and channels have the form of the platform; the address is that of a server where it has one."""
        before = self.instance
        platform = attrs.get("platform", before.platform if before else PLATFORM.SLACK)
        wrong: dict[str, Any] = {}
        for name, (pattern, why) in FORMS[platform].items():
            if attrs.get(name) and not pattern.fullmatch(attrs[name]):
                wrong[name] = [why]
        pattern, why = FORMS[platform]["channel"]
        if rooms := {
            team: [why] for team, room in attrs.get("rooms", {}).items() if not pattern.fullmatch(room)
        }:
            wrong["rooms"] = rooms
        url = attrs.get("url", before.url if before else "")
        if bool(url) != (platform == PLATFORM.MATTERMOST):
            wrong["url"] = [
                "is only for Mattermost" if url else "must be the address of the Mattermost server"
            ]
        if wrong:
            raise s.ValidationError(wrong)
        return attrs


class ChatTestShape(s.Serializer[Any]):
    channel = s.CharField(help_text="id of the channel of the message")


class ByName(Pages):
    ordering = ("name",)
    page_size = 100


ANSWERS = {
    400: OpenApiResponse(ProblemShape, "Invalid; `errors` has field and reason."),
    404: OpenApiResponse(ProblemShape, "Workspace not found."),
    409: OpenApiResponse(ProblemShape, "Not possible now; `detail` has the reason."),
}


class ChatWorkspacesView(Catalog):
    """Slack workspaces and Mattermost servers with messages of incidents."""

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
        except ChatError as error:
            raise ConflictError(f"Not sent: {error}.") from None
        return Response({"channel": channel})


class ChatWorkspaceFileSerializer(ChatWorkspaceSerializer):
    """Token and signing secret as values or as names of environment variables; never shown."""

    token = s.CharField(max_length=600)
    signing_secret = s.CharField(max_length=200)

    class Meta(ChatWorkspaceSerializer.Meta):
        fields = (  # type: ignore[assignment]
            "name", "platform", "url", "token", "signing_secret", "channel", "rooms", "least", "active",
        )  # fmt: skip
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
        stored = "" if self.instance is None else str(getattr(self.instance, name))
        platform = self.initial_data.get("platform", PLATFORM.SLACK)
        stand_in = STAND_INS.get(platform, {}).get(name, text)
        given: str = self.context["view"].filed_secret(name, text, stored, stand_in)
        return given


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
                OpenApiTypes.OBJECT, "Done; the body is the text for Slack, possibly empty."
            ),
            400: OpenApiResponse(ProblemShape, "Not a Slack request."),
            401: OpenApiResponse(ProblemShape, "Unsigned, forged, or older than five minutes."),
            404: OpenApiResponse(ProblemShape, "Workspace not found or disabled."),
            409: OpenApiResponse(ProblemShape, "Duplicate, ignored."),
            413: OpenApiResponse(ProblemShape, "Too large."),
            503: OpenApiResponse(ProblemShape, "The secrets cannot be decrypted."),
        },
    )
    def post(self, request: Request, name: str) -> HttpResponse:
        """Events, buttons, dialogs and slash commands of a Slack workspace."""
        headers = {key.lower(): value for key, value in request.headers.items()}
        return _answered(request, lambda of, body: requests.answer(name, headers, of, body))


class MattermostView(APIView):
    """The token of a command and the secret of a button are the proof of a request."""

    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()

    @extend_schema(
        operation_id="chat_mattermost",
        request={
            "application/x-www-form-urlencoded": OpenApiTypes.OBJECT,
            "application/json": OpenApiTypes.OBJECT,
        },
        responses={
            200: OpenApiResponse(
                OpenApiTypes.OBJECT, "Done or refused; the body is the text for Mattermost."
            ),
            400: OpenApiResponse(ProblemShape, "Not a Mattermost request."),
            401: OpenApiResponse(ProblemShape, "Unsigned, forged, or older than five minutes."),
            404: OpenApiResponse(ProblemShape, "Workspace not found or disabled."),
            409: OpenApiResponse(ProblemShape, "Duplicate, ignored."),
            413: OpenApiResponse(ProblemShape, "Too large."),
            503: OpenApiResponse(ProblemShape, "The secrets cannot be decrypted."),
        },
    )
    def post(self, request: Request, name: str) -> HttpResponse:
        """Buttons, menus and slash commands of a Mattermost server."""
        return _answered(request, lambda of, body: mattermost_requests.answer(name, of, body))


def _answered(request: Request, answer: Callable[[str, bytes], requests.ChatReply]) -> HttpResponse:
    """`answer` takes content type and body."""
    if int(request.headers.get("Content-Length") or 0) > requests.LARGEST:
        return problem(413, "Payload Too Large", f"A request has at most {requests.LARGEST} bytes.")
    raw = request._request
    try:
        reply = answer(raw.content_type or "", raw.body)
    except requests.ChatRequestRefusedError as refused:
        return problem(refused.status, "Request refused", str(refused))
    if reply.body is None:
        return HttpResponse(status=200)
    return HttpResponse(json.dumps(reply.body), content_type="application/json")
