"""Data sources over HTTP, as /api/v1/data_sources. Reading needs `admin`, too: they say what can be reached inside."""

from __future__ import annotations

import hashlib
from typing import Any, ClassVar

from django.conf import settings
from rest_framework import serializers as s
from rest_framework.permissions import BasePermission
from rest_framework.serializers import BaseSerializer

from incidents.api.editable import Catalog
from incidents.api.incident.serializers import Strict
from incidents.data_sources.models import DataSource
from incidents.domain.config.secrets import reference
from incidents.security.outbound import AddressRefusedError, check_literal
from ingest.api.authentication import HasScope
from ingest.api.pagination import Pages


class DataSourceSerializer(Strict, s.ModelSerializer[DataSource]):
    url = s.CharField(
        max_length=2_000,
        help_text="base address of the Prometheus API; public, unless DOSSIER_OUTBOUND_ALLOWED_NETWORKS has"
        " its network",
    )
    external_url = s.CharField(
        max_length=2_000,
        required=False,
        allow_blank=True,
        help_text="address in its alerts (--web.external-url), if different",
    )
    authorization = s.CharField(
        max_length=4_000,
        required=False,
        allow_blank=True,
        allow_null=True,
        help_text="Authorization header, such as `Bearer …`; stored encrypted, never shown again",
    )

    class Meta:
        model = DataSource
        fields = ("name", "url", "external_url", "authorization")
        extra_kwargs: ClassVar[dict[str, Any]] = {}

    def to_representation(self, row: DataSource) -> dict[str, Any]:
        """The authorization is never shown: a digest tells one from the next."""
        digest = hashlib.sha256(row.authorization.encode()).hexdigest()[:8]
        shown = f"set ({digest})" if row.authorization else None
        return {"name": row.name, "url": row.url, "external_url": row.external_url, "authorization": shown}

    def validate_name(self, name: str) -> str:
        if self.instance is not None and name != self.instance.name:
            raise s.ValidationError("cannot be changed; create another data source")
        return name

    def validate_url(self, url: str) -> str:
        try:
            goal = check_literal(url, settings.OUTBOUND_ALLOWED_NETWORKS)
        except AddressRefusedError as refused:
            raise s.ValidationError(str(refused)) from None
        if "?" in goal.path:
            raise s.ValidationError(
                "must be the base address, without a query, such as http://prometheus:9090"
            )
        return url.rstrip("/")

    def validate_external_url(self, url: str) -> str:
        if url and not url.startswith(("http://", "https://")):
            raise s.ValidationError("must begin with http:// or https://")
        return url.rstrip("/")

    def validate_authorization(self, text: str | None) -> str:
        text = (text or "").strip()
        if not text.isascii() or not text.isprintable():
            raise s.ValidationError("must be one line of ASCII, such as `Bearer …`")
        return text


class ByName(Pages):
    ordering = ("name",)
    page_size = 100


class DataSourcesView(Catalog):
    """Servers that answer queries for the metric of an alert."""

    kind = "data_source"
    queryset = DataSource.objects.all()
    serializer_class: type[BaseSerializer[DataSource]] = DataSourceSerializer
    pagination_class = ByName
    lookup_field = "name"

    def get_permissions(self) -> list[BasePermission]:
        return [HasScope("admin")]


class DataSourceFileSerializer(DataSourceSerializer):
    """Authorization as a value or as the name of an environment variable; never shown."""

    def to_representation(self, row: DataSource) -> dict[str, Any]:
        hidden = reference("DATA_SOURCE_AUTHORIZATION", row.name) if row.authorization else None
        return {**super().to_representation(row), "authorization": hidden}

    def validate_authorization(self, text: str | None) -> str:
        stored = self.instance.authorization if isinstance(self.instance, DataSource) else ""
        given = self.context["view"].filed_secret("authorization", text or "", stored, "Bearer unset")
        return stored if given and given == stored else super().validate_authorization(given)


class DataSourcesFile(DataSourcesView):
    serializer_class = DataSourceFileSerializer

    def _as_json(self, instance: DataSource) -> dict[str, Any]:
        """As the API records it: a variable has the same name whatever it holds."""
        return dict(DataSourceSerializer(instance).data)
