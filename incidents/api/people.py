"""People and their places in teams over HTTP: /api/v1/users and /api/v1/teams/{slug}/members."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.models import User
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers as s
from rest_framework import status
from rest_framework.exceptions import NotFound
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from incidents.api.editable import Catalog
from incidents.api.incident.serializers import ProblemShape, Strict
from incidents.api.incident.views import ERRORS, ConflictError, IncidentAPI
from incidents.api.inputs import context, fields
from incidents.domain.permissions import ROLES
from incidents.domain.values import InvalidValueError, check_line
from incidents.people import commands as people
from incidents.teams.models import Team
from ingest.api.authentication import HasScope
from ingest.api.keys import Key
from ingest.api.pagination import Pages

NO_TEAM = {404: OpenApiResponse(ProblemShape, "Team or user not found.")}


class UserSerializer(Strict, s.ModelSerializer[User]):
    password = s.CharField(
        write_only=True,
        required=False,
        allow_null=True,
        max_length=200,
        help_text="null: sign-in by OIDC only",
    )
    teams = s.SerializerMethodField(help_text="role by team")

    class Meta:
        model = User
        fields = (
            "username", "email", "first_name", "last_name", "is_staff", "is_active", "password", "last_login", "teams",
        )  # fmt: skip
        read_only_fields = ("last_login",)
        extra_kwargs: ClassVar[dict[str, Any]] = {
            "is_staff": {"help_text": "true: may change all configuration"},
            "is_active": {"help_text": "false: signed out at once and unable to sign in"},
        }

    def get_teams(self, row: User) -> dict[str, str]:
        return {one.team.slug: one.role for one in row.memberships.all()}

    def validate_username(self, username: str) -> str:
        if self.instance is not None and username != self.instance.username:
            raise s.ValidationError("cannot be changed: recorded actions refer to it; create another user")
        return username


class ByUsername(Pages):
    ordering = ("username",)
    page_size = 100


class UsersView(Catalog):
    """People who sign in. They are switched off, not deleted: what they did keeps their name."""

    kind = people.USER
    queryset = User.objects.prefetch_related("memberships__team").order_by("username")
    serializer_class = UserSerializer
    pagination_class = ByUsername
    lookup_field = "username"
    lookup_value_regex = "[^/]+"
    http_method_names = ["get", "post", "patch", "head", "options"]  # noqa: RUF012

    def get_permissions(self) -> list[BasePermission]:
        return [HasScope("admin")]

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, InvalidValueError):
            exc = s.ValidationError({exc.field: [exc.reason]})
        return super().handle_exception(exc)

    def perform_create(self, serializer: BaseSerializer[User]) -> None:
        serializer.instance = people.create_user(serializer.validated_data, self.context)

    def perform_update(self, serializer: BaseSerializer[User]) -> None:
        assert serializer.instance is not None
        try:
            row = people.change_user(serializer.instance, serializer.validated_data, self.context)
        except people.LastStaffError as error:
            raise ConflictError(f"{error}.") from None
        serializer.instance = row

    def perform_destroy(self, instance: User) -> None:
        raise ConflictError(
            f"Recorded actions refer to {instance.username}; deactivate the account with `is_active: false`."
        )


class MemberShape(s.Serializer[Any]):
    user = s.CharField(source="user.username")
    role = s.ChoiceField(choices=ROLES)


class MembersShape(s.Serializer[Any]):
    results = MemberShape(many=True)


class RoleShape(s.Serializer[Any]):
    role = s.ChoiceField(choices=ROLES)


class MembersView(IncidentAPI):
    """Members of a team with their roles."""

    @extend_schema(operation_id="team_members_list", responses={200: MembersShape, **ERRORS, **NO_TEAM})
    def get(self, request: Request, slug: str) -> Response:  # noqa: ARG002
        """People of a team, by name."""
        team = _team(slug)
        rows = team.memberships.select_related("user").order_by("user__username")
        return Response({"results": MemberShape(rows, many=True).data})


class MemberView(IncidentAPI):
    """One of them. A key needs `admin`; of people staff may, and the team's managers."""

    def get_permissions(self) -> list[BasePermission]:
        return [HasScope("admin" if isinstance(self.request.auth, Key) else "incidents:write")]

    @extend_schema(
        operation_id="team_members_set", request=RoleShape, responses={200: MemberShape, **ERRORS, **NO_TEAM}
    )
    def put(self, request: Request, slug: str, username: str) -> Response:
        """Add a person to a team, or change their role."""
        role = check_line("role", fields(request, RoleShape)["role"])
        row = people.set_member(_team(slug), _user(username), role, context(request))
        return Response(MemberShape(row).data)

    @extend_schema(operation_id="team_members_remove", responses={204: None, **ERRORS, **NO_TEAM})
    def delete(self, request: Request, slug: str, username: str) -> Response:
        """Remove a person from a team."""
        people.remove_member(_team(slug), _user(username), context(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


def _team(slug: str) -> Team:
    row = Team.objects.filter(slug=slug).first()
    if row is None:
        raise NotFound(f"There is no team {slug[:60]}.")
    return row


def _user(username: str) -> User:
    row = None if "\0" in username else User.objects.filter(username=username).first()
    if row is None:
        raise NotFound(f"No user {username[:100]}.")
    return row
