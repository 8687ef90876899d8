"""Contact methods over HTTP: the caller's under /api/v1/me, those of others under /api/v1/users/NAME for staff and
keys with `admin`; channels of teams; and the notifications of an incident."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers as s
from rest_framework import status
from rest_framework.exceptions import NotFound
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from incidents import queries
from incidents.api.incident.views import ERRORS, MISSING, PROBLEM, ConflictError, IncidentAPI, parameters
from incidents.api.inputs import context, fields
from incidents.domain.notifications.delivery import ACCOUNT, DEFAULT_BUNDLE, KINDS
from incidents.domain.values import SEVERITIES, optional_rfc3339, rfc3339
from incidents.notifications import contact_methods
from incidents.notifications.models import ContactMethod, Notification
from incidents.notifications.push_key import push_public_key
from ingest.api.authentication import HasScope
from ingest.api.keys import ADMIN
from ingest.api.pagination import PAGE_PARAMETERS, Pages, PageShape
from ingest.queries import StreamVersionError

NO_METHOD = {404: OpenApiResponse(PROBLEM, "Person, method or channel not found.")}
CONFLICT = {
    409: OpenApiResponse(PROBLEM, "Not possible with the existing configuration; `detail` has the reason.")
}


class ContactMethodShape(s.Serializer[Any]):
    """Address of a person or channel, with its kind. Secrets are never shown."""

    name = s.CharField(help_text="name, as used in notification rules")
    kind = s.ChoiceField(choices=KINDS)
    address = s.CharField(help_text="masked, except e-mail; phone: last four digits; push: host")
    secret = s.CharField(allow_null=True, help_text="`set`: webhook messages are signed; null: no secret")
    most = s.IntegerField(
        allow_null=True, help_text="maximum number of messages within `span` seconds; null: no limit"
    )
    span = s.IntegerField()
    verified_at = s.DateTimeField(allow_null=True, help_text="time of the last delivered test message")


class ContactMethodListShape(s.Serializer[Any]):
    results = ContactMethodShape(many=True)


class NewContactMethodShape(s.Serializer[Any]):
    name = s.CharField(max_length=60, help_text="letters, digits, hyphens and underscores")
    kind = s.ChoiceField(choices=KINDS)
    address = s.CharField(
        max_length=2_000,
        help_text="e-mail address, phone number with country code, http or https address, Apprise URL such"
        " as tgram://…, or for push the JSON of `PushSubscription.toJSON()` as text",
    )
    secret = s.CharField(
        max_length=200,
        required=False,
        allow_null=True,
        help_text="secret that signs the messages of a webhook",
    )
    most = s.IntegerField(
        required=False,
        allow_null=True,
        help_text="maximum number of messages within `span` seconds; null: no limit",
    )
    span = s.IntegerField(required=False, help_text="seconds, default 900")


class ChangedContactMethodShape(NewContactMethodShape):
    name = s.CharField(max_length=60, required=False, help_text="cannot be changed")
    kind = s.ChoiceField(choices=KINDS, required=False)
    address = s.CharField(max_length=2_000, required=False)


class TestMessageShape(s.Serializer[Any]):
    taken = s.BooleanField()
    why = s.CharField(help_text="answer of the receiving server")


class RuleShape(s.Serializer[Any]):
    method = s.CharField(help_text=f"name of a contact method, or `{ACCOUNT}`: the address of the account")
    delay = s.IntegerField(required=False, help_text="seconds after the call, at most a day")
    severities = s.ListField(
        child=s.ChoiceField(choices=SEVERITIES), required=False, help_text="default: all"
    )
    urgent = s.BooleanField(required=False, allow_null=True, help_text="null: urgent and other notifications")


class QuietHoursShape(s.Serializer[Any]):
    zone = s.CharField(help_text="IANA time zone, such as Europe/Berlin")
    start = s.CharField(help_text="such as 22:00")
    end = s.CharField(help_text="such as 07:00")


class PreferencesShape(s.Serializer[Any]):
    """Notification rules: escalation policies select people, rules select methods and times. Without a
    matching rule all methods are used at once; without a method, the address of the account."""

    rules = RuleShape(many=True, required=False)
    quiet_hours = QuietHoursShape(
        required=False, allow_null=True, help_text="delay notifications that are neither urgent nor critical"
    )
    bundle_seconds = s.IntegerField(
        required=False,
        help_text=f"notifications within this time are bundled; default {DEFAULT_BUNDLE}",
    )


class ContactMethodAPI(IncidentAPI):
    """Contact methods of the caller, or under /users of another person."""

    def get_permissions(self) -> list[BasePermission]:
        return [HasScope(ADMIN if "username" in self.kwargs else "incidents:read")]

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, StreamVersionError):
            exc = ConflictError("Someone else changed this at the same time; read it again.")
        return super().handle_exception(exc)

    def owner_of_methods(self) -> User | None:
        if "username" in self.kwargs:
            user = get_user_model().objects.filter(username=_clean(self.kwargs["username"])).first()
        else:
            user = self.request.user if isinstance(self.request.user, User) else None
        if user is None:
            raise NotFound("Person not found. A key is not a person: use /api/v1/users/NAME.")
        return user

    def found(self) -> ContactMethod:
        name = _clean(self.kwargs["method"])
        row = (
            ContactMethod.objects.filter(user=self.owner_of_methods(), name=name)
            .select_related("user")
            .first()
        )
        if row is None:
            raise NotFound(f"There is no contact method {name[:60]}.")
        return row


def _clean(text: str) -> str:
    """A NUL byte names nothing, and the database would not even look."""
    return text.replace("\0", "�")


def _as_json(row: ContactMethod) -> dict[str, Any]:
    return {**contact_methods.method_as_json(row), "verified_at": optional_rfc3339(row.verified_at)}


class MethodsView(ContactMethodAPI):
    @extend_schema(responses={200: ContactMethodListShape, **ERRORS, **NO_METHOD})
    def get(self, request: Request, **kwargs: str) -> Response:  # noqa: ARG002
        """The contact methods; addresses are masked."""
        rows = ContactMethod.objects.filter(user=self.owner_of_methods()).order_by("name")
        return Response({"results": [_as_json(row) for row in rows]})

    @extend_schema(
        request=NewContactMethodShape,
        responses={201: ContactMethodShape, **ERRORS, **NO_METHOD, **CONFLICT},
    )
    def post(self, request: Request, **kwargs: str) -> Response:  # noqa: ARG002
        """Add a contact method. Without rules it is used at once; a test message verifies it."""
        row = contact_methods.add_method(
            self.owner_of_methods(), fields(request, NewContactMethodShape), context(request)
        )
        return Response(_as_json(row), status=status.HTTP_201_CREATED)


class MethodView(ContactMethodAPI):
    @extend_schema(responses={200: ContactMethodShape, **ERRORS, **NO_METHOD})
    def get(self, request: Request, **kwargs: str) -> Response:  # noqa: ARG002
        """One contact method."""
        return Response(_as_json(self.found()))

    @extend_schema(
        request=ChangedContactMethodShape,
        responses={200: ContactMethodShape, **ERRORS, **NO_METHOD, **CONFLICT},
    )
    def patch(self, request: Request, **kwargs: str) -> Response:  # noqa: ARG002
        """Change a contact method; a new address has to be verified again."""
        row = self.found()
        given = fields(request, ChangedContactMethodShape)
        return Response(_as_json(contact_methods.change_method(row, given, context(request))))

    @extend_schema(request=None, responses={204: None, **ERRORS, **NO_METHOD, **CONFLICT})
    def delete(self, request: Request, **kwargs: str) -> Response:  # noqa: ARG002
        """Remove a contact method. Rejected while a rule uses it."""
        contact_methods.remove_method(self.found(), context(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class TryMethodView(ContactMethodAPI):
    @extend_schema(request=None, responses={200: TestMessageShape, **ERRORS, **NO_METHOD})
    def post(self, request: Request, **kwargs: str) -> Response:  # noqa: ARG002
        """Send a test message now and return the answer of the receiver. `account` is the address of the
        account."""
        user = self.owner_of_methods()
        if self.kwargs["method"] == ACCOUNT and user is not None:
            tried = contact_methods.try_account(user)
        else:
            tried = contact_methods.try_method(self.found())
        return Response({"taken": tried.taken, "why": tried.why})


class PushKeyShape(s.Serializer[Any]):
    public_key = s.CharField(help_text="`applicationServerKey` of `pushManager.subscribe`, base64url")


class PushKeyView(IncidentAPI):
    @extend_schema(operation_id="push_key", responses={200: PushKeyShape, **ERRORS})
    def get(self, request: Request) -> Response:  # noqa: ARG002
        """Public key for push subscriptions of browsers."""
        return Response({"public_key": push_public_key()})


class PreferencesView(ContactMethodAPI):
    @extend_schema(responses={200: PreferencesShape, **ERRORS, **NO_METHOD})
    def get(self, request: Request, **kwargs: str) -> Response:  # noqa: ARG002
        """Rules, quiet hours and bundling of one person."""
        user = self.owner_of_methods()
        assert user is not None
        return Response(contact_methods.preferences_as_json(user))

    @extend_schema(
        request=PreferencesShape, responses={200: PreferencesShape, **ERRORS, **NO_METHOD, **CONFLICT}
    )
    def put(self, request: Request, **kwargs: str) -> Response:  # noqa: ARG002
        """Replace all preferences; absent fields get their defaults."""
        user = self.owner_of_methods()
        assert user is not None
        given = fields(request, PreferencesShape)
        return Response(contact_methods.set_preferences(user, given, context(request)))


class Channels(ContactMethodAPI):
    """Channels belong to nobody: reading is for all, changing for staff."""

    def get_permissions(self) -> list[BasePermission]:
        return [HasScope("incidents:read" if self.request.method in SAFE_METHODS else ADMIN)]

    def owner_of_methods(self) -> User | None:
        return None


class ChannelsView(Channels, MethodsView):
    """Rooms, numbers and programs that teams share; escalation policies name them."""


class ChannelView(Channels, MethodView):
    """One channel."""


class TryChannelView(Channels, TryMethodView):
    """Of a channel."""


class SendingShape(s.Serializer[Any]):
    method = s.CharField()
    kind = s.CharField()
    state = s.ChoiceField(choices=["waiting", "sent", "stopped", "given_up"])
    due_at = s.DateTimeField(help_text="time of the next attempt, planned or past")
    attempts = s.IntegerField()
    held = s.CharField(help_text="reason for the delay")
    why = s.CharField(help_text="last answer, or the reason for its end")
    ended_at = s.DateTimeField(allow_null=True)


class NotificationShape(s.Serializer[Any]):
    key = s.CharField()
    person = s.CharField(allow_null=True, help_text="null: a channel")
    reason = s.CharField(help_text="reason for the notification")
    urgent = s.BooleanField()
    state = s.ChoiceField(choices=["waiting", "sent", "stopped", "given_up"])
    why = s.CharField()
    made_at = s.DateTimeField()
    ended_at = s.DateTimeField(allow_null=True)
    methods = SendingShape(many=True)


class NotificationListShape(PageShape):
    results = NotificationShape(many=True)


class Latest(Pages):
    ordering = ("-made_at", "id")


class NotificationsView(IncidentAPI):
    @extend_schema(
        operation_id="incidents_notifications",
        parameters=PAGE_PARAMETERS,
        responses={200: NotificationListShape, **ERRORS, **MISSING},
    )
    def get(self, request: Request, reference: str) -> Response:
        """Notifications of an incident: recipient, method and outcome, newest first. Current state only:
        earlier attempts are in the timeline."""
        parameters(request, "cursor", "limit")
        incident = queries.get(reference).incident.id
        pages = Latest()
        rows = Notification.objects.filter(incident=incident).prefetch_related("deliveries")
        return pages.get_paginated_response(
            [_notification_as_json(row) for row in pages.paginate_queryset(rows, request)]
        )


def _notification_as_json(row: Notification) -> dict[str, Any]:
    return {
        "key": row.key,
        "person": row.person,
        "reason": row.why,
        "urgent": row.urgent,
        "state": row.outcome or "waiting",
        "why": row.ended_why,
        "made_at": rfc3339(row.made_at),
        "ended_at": optional_rfc3339(row.ended_at),
        "methods": [
            {
                "method": one.label,
                "kind": one.kind,
                "state": one.state,
                "due_at": rfc3339(one.next_at),
                "attempts": one.attempts,
                "delay_reason": one.delay_reason,
                "why": one.why,
                "ended_at": optional_rfc3339(one.ended_at),
            }
            for one in row.deliveries.all()
        ],
    }
