"""Services over HTTP, as /api/v1/services."""

from __future__ import annotations

from django.db.models import ProtectedError

from incidents.api.catalog import BySlug, Catalog
from incidents.api.routing_shapes import ServiceSerializer
from incidents.api.views import Conflict
from incidents.catalog.models import Service


class ServicesView(Catalog):
    """What teams offer, the components that belong to it and what it depends on."""

    kind = "service"
    queryset = Service.objects.select_related("team").prefetch_related("depends_on")
    serializer_class = ServiceSerializer
    pagination_class = BySlug
    lookup_field = "slug"

    def remove(self, instance: Service) -> None:
        if (dependent := instance.dependents.first()) is not None:
            raise Conflict(f"{dependent.name} depends on {instance.name}; change that first.")
        try:
            instance.delete()
        except ProtectedError:
            raise Conflict(f"Routes name {instance.name}; change them first.") from None
