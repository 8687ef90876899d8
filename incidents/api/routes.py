"""Routes over HTTP, as /api/v1/routes: the rules, what becomes of one alert, and of those of the last days.

Reading needs `incidents:read`, writing `admin`.
"""

from __future__ import annotations

from typing import Any

from django.db import connection, transaction
from django.db.models import Max, ProtectedError
from rest_framework.pagination import CursorPagination
from rest_framework.serializers import BaseSerializer, ValidationError

from incidents.api.catalog import Catalog
from incidents.api.routing_shapes import RouteSerializer
from incidents.api.views import Conflict
from incidents.catalog.models import Route
from incidents.domain.rule_form import check_tree
from incidents.domain.values import Invalid


class ByOrder(CursorPagination):
    ordering = ("order", "name")
    page_size = 100


class RoutesView(Catalog):
    """The rules that say where a ticket goes: a tree, tried from the top, the deepest one that matches decides."""

    kind = "route"
    queryset = Route.objects.select_related("team", "service", "parent")
    serializer_class = RouteSerializer
    pagination_class = ByOrder
    lookup_field = "name"
    lookup_value_regex = "[A-Za-z0-9_-]+"

    def get_object(self) -> Route:
        # Rules had numbers before they had names; no name is a number.
        if (number := self.kwargs["name"]).isdigit():
            found = Route.objects.filter(pk=int(number)).first() if len(number) < 18 else None
            self.kwargs["name"] = number if found is None else found.name
        route: Route = super().get_object()
        return route

    @transaction.atomic
    def perform_create(self, serializer: BaseSerializer[Any]) -> None:
        lock_tree()
        super().perform_create(serializer)

    @transaction.atomic
    def perform_update(self, serializer: BaseSerializer[Any]) -> None:
        lock_tree()
        super().perform_update(serializer)

    @transaction.atomic
    def perform_destroy(self, instance: Route) -> None:
        lock_tree()
        super().perform_destroy(instance)

    def keep(self, serializer: BaseSerializer[Any]) -> None:
        given = serializer.validated_data
        if serializer.instance is None and "order" not in given:
            siblings = Route.objects.filter(parent=given.get("parent"))
            last = siblings.aggregate(last=Max("order"))["last"]
            given["order"] = min(2**31 - 1, 1 if last is None else last + 1)
        serializer.save()
        try:
            check_tree([row.written for row in Route.objects.select_related("team", "service", "parent")])
        except Invalid as invalid:
            raise ValidationError({invalid.field: [invalid.reason]}) from None

    def remove(self, instance: Route) -> None:
        try:
            instance.delete()
        except ProtectedError:
            raise Conflict(f"There are rules beneath {instance.name}; move or remove them first.") from None


def lock_tree() -> None:
    """One change of the tree at a time, or two could each put one rule beneath the other's."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('route tree', 0))")
