"""Routes over HTTP, as /api/v1/routes: the rules, what becomes of one alert, and of those of the last days.

Reading needs `incidents:read`, writing `admin`.
"""

from __future__ import annotations

from typing import Any

from django.db import connection, transaction
from django.db.models import Max, ProtectedError
from rest_framework.serializers import BaseSerializer, ValidationError

from incidents.api.editable import Catalog
from incidents.api.incident.views import ConflictError
from incidents.api.routing.serializers import RouteSerializer
from incidents.domain.routing.schema import check_tree
from incidents.domain.values import InvalidValueError
from incidents.people.permissions import allow_route
from incidents.teams.models import Route, rules_as_written
from ingest.api.pagination import Pages


class ByOrder(Pages):
    ordering = ("order", "name")
    page_size = 100


class RoutesView(Catalog):
    """The rules that say where an incident goes: a tree, tried from the top, the deepest one that matches decides."""

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

    def hold(self) -> None:
        """One change of the tree at a time, or two could each put one rule beneath the other's."""
        super().hold()
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('route tree', 0))")

    def keep(self, serializer: BaseSerializer[Any]) -> None:
        given = serializer.validated_data
        if serializer.instance is None and "order" not in given:
            given["order"] = _after_the_last(given.get("parent"))
        serializer.save()
        try:
            check_tree(rules_as_written()[0])
        except InvalidValueError as invalid:
            raise ValidationError({invalid.field: [invalid.reason]}) from None

    def allow(self, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
        super().allow(before, after)
        allow_route(self.context, before, after)

    def remove(self, instance: Route) -> None:
        try:
            instance.delete()
        except ProtectedError:
            raise ConflictError(f"{instance.name} has child rules; move or remove them first.") from None

    @transaction.atomic
    def move(self, row: Route, *, down: bool) -> bool:
        """Change places with the rule before or after it on its level; says whether there is one."""
        self.hold()
        siblings = list(self.get_queryset().filter(parent=self._locked(row).parent).order_by("order", "name"))
        place = next(n for n, one in enumerate(siblings) if one.pk == row.pk)
        other = place + 1 if down else place - 1
        if not 0 <= other < len(siblings):
            return False
        siblings[place], siblings[other] = siblings[other], siblings[place]
        for order, one in enumerate(siblings, start=1):
            if one.order != order:
                before = self._as_json(one)
                one.order = order
                one.save(update_fields=["order"])
                self._record(one.name, before, self._as_json(one))
        return True


def _after_the_last(parent: Route | None) -> int:
    last = Route.objects.filter(parent=parent).aggregate(last=Max("order"))["last"]
    return 1 if last is None else min(2**31 - 1, last + 1)
