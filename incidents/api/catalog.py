"""Teams and routes over HTTP. Reading needs `incidents:read`, writing `admin`."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import ProtectedError
from rest_framework import viewsets
from rest_framework.pagination import CursorPagination
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from incidents.api.bodies import StrictJSONParser
from incidents.api.serializers import RouteSerializer, TeamSerializer
from incidents.api.views import Conflict
from incidents.catalog.models import Route, Team
from incidents.projections.models import IncidentRow
from ingest.api.authentication import HasScope


class BySlug(CursorPagination):
    ordering = ("slug",)
    page_size = 100


class ByOrder(CursorPagination):
    ordering = ("order",)
    page_size = 100


class Catalog(viewsets.ModelViewSet[Any]):
    parser_classes = (StrictJSONParser,)
    http_method_names = ["get", "post", "patch", "delete", "head", "options"]  # noqa: RUF012

    def get_permissions(self) -> list[BasePermission]:
        return [HasScope("incidents:read" if self.request.method in SAFE_METHODS else "admin")]

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, IntegrityError):
            exc = Conflict("Someone else changed this at the same time; read it again.")
        return super().handle_exception(exc)


class TeamsView(Catalog):
    """Who works on tickets."""

    queryset = Team.objects.all()
    serializer_class = TeamSerializer
    pagination_class = BySlug
    lookup_field = "slug"

    @transaction.atomic
    def perform_create(self, serializer: BaseSerializer[Team]) -> None:
        self._save(serializer)

    @transaction.atomic
    def perform_update(self, serializer: BaseSerializer[Team]) -> None:
        self._save(serializer)

    def _save(self, serializer: BaseSerializer[Team]) -> None:
        if serializer.validated_data.get("is_default"):
            Team.objects.filter(is_default=True).update(is_default=False)
        serializer.save()

    def perform_destroy(self, instance: Team) -> None:
        if instance.is_default:
            raise Conflict(f"{instance.name} is the default team; make another one the default first.")
        if IncidentRow.objects.filter(team=instance.slug).exclude(state="resolved").exists():
            raise Conflict(f"{instance.name} has incidents that are not resolved; hand them over first.")
        try:
            instance.delete()
        except ProtectedError:
            raise Conflict(f"Routes lead to {instance.name}; change them first.") from None


class RoutesView(Catalog):
    """Which team gets which components: the first pattern that matches, by `order`."""

    queryset = Route.objects.select_related("team")
    serializer_class = RouteSerializer
    pagination_class = ByOrder
