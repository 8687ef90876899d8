"""Services over HTTP, as /api/v1/services."""

from __future__ import annotations

from typing import Any

from incidents.api.editable import BySlug, Catalog
from incidents.api.incident.views import ConflictError
from incidents.api.routing.serializers import ServiceSerializer
from incidents.people.permissions import allow_patterns
from incidents.teams.models import Service
from incidents.teams.references import named_by


class ServicesView(Catalog):
    """Services of teams, their components and dependencies."""

    kind = "service"
    queryset = Service.objects.select_related("team").prefetch_related("depends_on")
    serializer_class = ServiceSerializer
    pagination_class = BySlug
    lookup_field = "slug"

    def allow(self, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
        super().allow(before, after)
        allow_patterns(self.context, before, after)

    def remove(self, instance: Service) -> None:
        if (dependent := instance.dependents.first()) is not None:
            raise ConflictError(f"{dependent.name} depends on {instance.name}; change that first.")
        if named := named_by("service", instance.slug):
            raise ConflictError(f"{instance.name} is used by {named}; change that first.")
        instance.delete()
