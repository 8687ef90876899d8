"""Services over HTTP, as /api/v1/services. Reading needs `incidents:read`, writing `admin`."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import ProtectedError
from rest_framework.serializers import BaseSerializer

from incidents.allowing import allow_configuring
from incidents.api.catalog import BySlug, Catalog
from incidents.api.routing_shapes import ServiceSerializer
from incidents.api.views import Conflict
from incidents.catalog.models import Service
from ingest.commands import record_configuration
from ingest.queries import Context


class ServicesView(Catalog):
    """What teams offer, the components that belong to it and what it depends on."""

    kind = "service"
    queryset = Service.objects.select_related("team").prefetch_related("depends_on")
    serializer_class = ServiceSerializer
    pagination_class = BySlug
    lookup_field = "slug"

    def perform_create(self, serializer: BaseSerializer[Any]) -> None:
        keep_service(serializer, self.asking)

    def perform_update(self, serializer: BaseSerializer[Any]) -> None:
        keep_service(serializer, self.asking)

    def perform_destroy(self, instance: Service) -> None:
        remove_service(instance, self.asking)


@transaction.atomic
def keep_service(serializer: BaseSerializer[Any], asker: Context) -> Service:
    """Make or change a service as the serializer, which is valid, has it."""
    before, key = None, None
    if serializer.instance is not None:
        serializer.instance = _locked(serializer.instance.pk)
        key, before = serializer.instance.slug, told(serializer.instance)
    row: Service = serializer.save()
    after = told(row)
    allow_configuring(asker, before, after)
    record_configuration("service", key or row.slug, before, after, asker)
    return row


@transaction.atomic
def remove_service(row: Service, asker: Context) -> None:
    """Raises Conflict where routes or other services name it."""
    row = _locked(row.pk)
    before = told(row)
    allow_configuring(asker, before)
    if (dependent := row.dependents.first()) is not None:
        raise Conflict(f"{dependent.name} depends on {row.name}; change that first.")
    try:
        row.delete()
    except ProtectedError:
        raise Conflict(f"Routes name {row.name}; change them first.") from None
    record_configuration("service", before["slug"], before, None, asker)


def told(row: Service) -> dict[str, Any]:
    """A service as the API has it, read anew."""
    return dict(ServiceSerializer(Service.objects.get(pk=row.pk)).data)


def _locked(pk: int) -> Service:
    found = Service.objects.select_for_update().filter(pk=pk).first()
    if found is None:
        raise Conflict("Someone else removed this service at the same time.")
    return found
