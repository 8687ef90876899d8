"""What people configure, over HTTP. Reading needs `incidents:read`, writing `admin`."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import ProtectedError
from rest_framework import viewsets
from rest_framework.exceptions import PermissionDenied
from rest_framework.pagination import CursorPagination
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from incidents.allowing import allow_configuring
from incidents.api.bodies import StrictJSONParser, context
from incidents.api.permissions import MayConfigure
from incidents.api.serializers import TeamSerializer
from incidents.api.views import Conflict
from incidents.catalog.models import Team
from incidents.domain.permissions import Forbidden
from incidents.projections.models import IncidentRow
from ingest.api.authentication import HasScope
from ingest.commands import record_configuration
from ingest.queries import Context, WrongExpectedVersion


class BySlug(CursorPagination):
    ordering = ("slug",)
    page_size = 100


class Catalog(viewsets.ModelViewSet[Any]):
    """Rows that people edit; each change is recorded as what the row was and is, in the transaction that makes it."""

    kind: str
    on_behalf_of: Context | None = None
    """Who changes things where no request does."""
    parser_classes = (StrictJSONParser,)
    http_method_names = ["get", "post", "patch", "delete", "head", "options"]  # noqa: RUF012

    def get_permissions(self) -> list[BasePermission]:
        return [HasScope("incidents:read") if self.request.method in SAFE_METHODS else MayConfigure()]

    @property
    def by_team(self) -> bool:
        """Whether what is configured here belongs to a team, whose managers then may."""
        return "team" in getattr(self.get_serializer_class()(), "fields", ())

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, IntegrityError | WrongExpectedVersion):
            exc = Conflict("Someone else changed this at the same time; read it again.")
        if isinstance(exc, Forbidden):
            exc = PermissionDenied(f"{exc.reason[:1].upper()}{exc.reason[1:]}.")
        return super().handle_exception(exc)

    @transaction.atomic
    def perform_create(self, serializer: BaseSerializer[Any]) -> None:
        self.keep(serializer)
        self._record(self._key(serializer.instance), None, self._told(serializer.instance))

    @transaction.atomic
    def perform_update(self, serializer: BaseSerializer[Any]) -> None:
        # Locked and read again: what was looked up before the transaction may be older than the change before it.
        instance: Any = serializer.instance
        row = self.get_queryset().select_for_update(of=("self",)).get(pk=instance.pk)
        key, before = self._key(row), self._told(row)
        self.keep(serializer)
        self._record(key, before, self._told(serializer.instance))

    @transaction.atomic
    def perform_destroy(self, instance: Any) -> None:
        key, before = self._key(instance), self._told(instance)
        self.remove(instance)
        self._record(key, before, None)

    def keep(self, serializer: BaseSerializer[Any]) -> None:
        serializer.save()

    def remove(self, instance: Any) -> None:
        instance.delete()

    def _told(self, instance: Any) -> dict[str, Any]:
        return dict(self.get_serializer(instance).data)

    def _key(self, instance: Any) -> str:
        return str(getattr(instance, self.lookup_field))

    def _record(self, key: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
        allow_configuring(self.asking, before, after)
        record_configuration(self.kind, key, before, after, self.asking)

    @property
    def asking(self) -> Context:
        return self.on_behalf_of or context(self.request)


class TeamsView(Catalog):
    """Who works on tickets."""

    kind = "team"
    queryset = Team.objects.all()
    serializer_class = TeamSerializer
    pagination_class = BySlug
    lookup_field = "slug"

    def keep(self, serializer: BaseSerializer[Team]) -> None:
        if serializer.validated_data.get("is_default"):
            Team.objects.filter(is_default=True).update(is_default=False)
        serializer.save()

    def remove(self, instance: Team) -> None:
        if instance.is_default:
            raise Conflict(f"{instance.name} is the default team; make another one the default first.")
        if IncidentRow.objects.filter(team=instance.slug).exclude(state="resolved").exists():
            raise Conflict(f"{instance.name} has incidents that are not resolved; hand them over first.")
        try:
            instance.delete()
        except ProtectedError:
            raise Conflict(f"Routes, services or a policy name {instance.name}; change them first.") from None
