"""Connections in a file of configuration: integrations without their keys, webhooks without the addresses that may
be as good as one, and schedules of analyzers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rest_framework.serializers import BaseSerializer

from analyzers.api import schedules
from analyzers.api.serializers import ScheduleSerializer
from analyzers.queries import Schedule
from incidents.api.editable import Catalog
from incidents.api.incident.serializers import Strict
from incidents.api.webhooks import WebhookSerializer, WebhooksView
from incidents.domain.config.secrets import reference
from incidents.domain.values import InvalidValueError
from incidents.webhooks.models import Webhook
from ingest.api import keys
from ingest.api.integrations import IntegrationShape
from ingest.api.models import IntegrationKey
from ingest.integrations.generic.apply import InvalidMappingError


class IntegrationFileSerializer(Strict, IntegrationShape):
    kinds = None  # type: ignore[assignment]
    mail_address = None  # type: ignore[assignment]
    created_at = None  # type: ignore[assignment]
    last_used_at = None  # type: ignore[assignment]
    previous_until = None  # type: ignore[assignment]

    def validate_expires_at(self, moment: datetime | None) -> datetime | None:
        row = self.instance
        if isinstance(row, IntegrationKey) and row.expires_at == moment:
            return moment  # one that has expired stays as it is
        return super().validate_expires_at(moment)


class IntegrationsFile(Catalog):
    """Ways in. One that a file makes has a key that nobody has seen: it is rotated to be had."""

    queryset = IntegrationKey.objects.filter(revoked_at=None)
    serializer_class = IntegrationFileSerializer
    lookup_field = "name"

    def put(self, serializer: BaseSerializer[IntegrationKey]) -> None:
        given: Mapping[str, Any] = serializer.validated_data
        row = serializer.instance
        try:
            if row is None:
                keys.create(**given, context=self.context)
            else:
                keys.change(row.name, {k: v for k, v in given.items() if k != "name"}, self.context)
        except keys.KeyNameTakenError:
            raise InvalidValueError(
                "name", "was the name of a revoked integration; choose another one"
            ) from None
        except InvalidMappingError as error:
            raise InvalidValueError("mapping", str(error)) from None

    def perform_destroy(self, instance: IntegrationKey) -> None:
        keys.revoke(instance.name, self.context)


class WebhookFileSerializer(WebhookSerializer):
    """Address as a value or as the name of an environment variable; never shown."""

    def to_representation(self, row: Webhook) -> dict[str, Any]:
        hidden = reference("WEBHOOK_URL", row.name)
        changed = " (changed)" if row.name in self.context["view"].replaced else ""
        return {**super().to_representation(row), "url": f"{hidden}{changed}"}

    def validate_url(self, url: str) -> str:
        stored = self.instance.url if isinstance(self.instance, Webhook) else ""
        given = self.context["view"].filed_secret("url", url, stored, "https://example.com/unset")
        return stored if given == stored else super().validate_url(given)


class WebhooksFile(WebhooksView):
    serializer_class = WebhookFileSerializer

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.replaced: set[str] = set()
        """Names of those whose address this file has changed: it is not told, that it is another one is."""

    def put(self, serializer: BaseSerializer[Webhook]) -> None:
        row = serializer.instance
        if row is not None and serializer.validated_data.get("url", row.url) != row.url:
            self.replaced.add(row.name)
        super().put(serializer)


class AnalysisSchedulesFile(Catalog):
    """Schedules of analyzers, in a file."""

    queryset = Schedule.objects.order_by("name")
    serializer_class = ScheduleSerializer
    lookup_field = "name"

    def put(self, serializer: BaseSerializer[Schedule]) -> None:
        assert isinstance(serializer, ScheduleSerializer)
        schedules.put(serializer, self.context)

    def perform_destroy(self, instance: Schedule) -> None:
        schedules.remove(instance, self.context)
