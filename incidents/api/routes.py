"""Routes over HTTP, as /api/v1/routes: the rules, what becomes of one alert, and of those of the last days.

Reading needs `incidents:read`, writing `admin`.
"""

from __future__ import annotations

from typing import Any

from django.db import connection, transaction
from django.db.models import Max, ProtectedError
from rest_framework.pagination import CursorPagination
from rest_framework.serializers import BaseSerializer, ValidationError

from incidents.allowing import allow_configuring
from incidents.api.catalog import Catalog
from incidents.api.routing_shapes import RouteSerializer
from incidents.api.views import Conflict
from incidents.catalog.models import Route
from incidents.domain.rule_form import check_tree
from incidents.domain.values import Invalid
from ingest.commands import record_configuration
from ingest.queries import Context


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

    def perform_create(self, serializer: BaseSerializer[Any]) -> None:
        keep_route(serializer, self.asking)

    def perform_update(self, serializer: BaseSerializer[Any]) -> None:
        keep_route(serializer, self.asking)

    def perform_destroy(self, instance: Route) -> None:
        remove_route(instance, self.asking)


@transaction.atomic
def keep_route(serializer: BaseSerializer[Any], asker: Context) -> Route:
    """Make or change a rule as the serializer, which is valid, has it. Raises ValidationError for what is no tree."""
    _lock_tree()
    given, before, key = serializer.validated_data, None, None
    if serializer.instance is None:
        if "order" not in given:
            given["order"] = _after_the_last(given.get("parent"))
    else:
        # Read again: what was looked up before the lock may be older than the change before this one.
        serializer.instance = _row(serializer.instance.pk)
        key, before = serializer.instance.name, told(serializer.instance)
    row: Route = serializer.save()
    try:
        check_tree([one.written for one in Route.objects.select_related("team", "service", "parent")])
    except Invalid as invalid:
        raise ValidationError({invalid.field: [invalid.reason]}) from None
    after = told(row)
    allow_configuring(asker, before, after)
    record_configuration("route", key or row.name, before, after, asker)
    return row


@transaction.atomic
def remove_route(row: Route, asker: Context) -> None:
    """Raises Conflict where there are rules beneath it."""
    _lock_tree()
    row = _row(row.pk)
    before = told(row)
    allow_configuring(asker, before)
    try:
        row.delete()
    except ProtectedError:
        raise Conflict(f"There are rules beneath {row.name}; move or remove them first.") from None
    record_configuration("route", before["name"], before, None, asker)


@transaction.atomic
def move_route(row: Route, down: bool, asker: Context) -> bool:
    """Change places with the rule before or after it on its level; says whether there is one."""
    _lock_tree()
    siblings = list(Route.objects.filter(parent=_row(row.pk).parent).order_by("order", "name"))
    place = next(n for n, one in enumerate(siblings) if one.pk == row.pk)
    other = place + 1 if down else place - 1
    if not 0 <= other < len(siblings):
        return False
    siblings[place], siblings[other] = siblings[other], siblings[place]
    for order, one in enumerate(siblings, start=1):
        if one.order != order:
            before = told(one)
            one.order = order
            one.save(update_fields=["order"])
            record_configuration("route", one.name, before, told(one), asker)
    return True


def told(row: Route) -> dict[str, Any]:
    """A rule as the API has it."""
    return dict(RouteSerializer(row).data)


def _row(pk: int) -> Route:
    found = Route.objects.select_related("team", "service", "parent").filter(pk=pk).first()
    if found is None:
        raise Conflict("Someone else removed this rule at the same time.")
    return found


def _after_the_last(parent: Route | None) -> int:
    last = Route.objects.filter(parent=parent).aggregate(last=Max("order"))["last"]
    return 1 if last is None else min(2**31 - 1, last + 1)


def _lock_tree() -> None:
    """One change of the tree at a time, or two could each put one rule beneath the other's."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('route tree', 0))")
