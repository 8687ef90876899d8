"""Configuration over HTTP: reading needs `incidents:read`; writing `admin`, or to be staff or a manager of its team.
Over HTTP reading needs `incidents:read`; writing `admin`, or to be staff or a manager of its team."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from django.db import IntegrityError, transaction
from rest_framework import viewsets
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from incidents.api.incident.views import ConflictError
from incidents.api.inputs import context
from incidents.api.permissions import MayConfigure
from incidents.domain.config.secrets import MissingVariableError, resolved
from incidents.domain.permissions import ForbiddenError
from incidents.people.permissions import allow_configuring
from incidents.teams.references import hold_names
from ingest.api.authentication import HasScope
from ingest.api.pagination import Pages
from ingest.commands import record_configuration
from ingest.queries import Context, StreamVersionError


class BySlug(Pages):
    ordering = ("slug",)
    page_size = 100


class Catalog(viewsets.ModelViewSet[Any]):
    """Rows that people edit; each change is recorded as what the row was and is, in the transaction that makes it."""

    kind: str
    on_behalf_of: Context | None = None
    """Actor of changes outside of a request."""
    environment: Mapping[str, str] = {}
    """Secrets that a file of configuration refers to."""
    unset: Mapping[str, str] = {}
    """By field of the entry of a file, the variables that the environment lacks."""
    http_method_names = ["get", "post", "patch", "delete", "head", "options"]  # noqa: RUF012

    def get_permissions(self) -> list[BasePermission]:
        return [HasScope("incidents:read") if self.request.method in SAFE_METHODS else MayConfigure()]

    @property
    def by_team(self) -> bool:
        """Whether what is configured here belongs to a team, whose managers then may."""
        return "team" in getattr(self.get_serializer_class()(), "fields", ())

    def filed_secret(self, field: str, text: str, stored: str, stand_in: str) -> str:
        """Value of a secret in a file: of its variable, else the stored one. Without both a stand-in, and the variable
        is in `unset`: a preview shows the change, and nothing is applied."""
        try:
            return resolved(text, self.environment)
        except MissingVariableError as lacking:
            if stored:
                return stored
            self.unset = {**self.unset, field: str(lacking)}
            return stand_in

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, IntegrityError | StreamVersionError):
            exc = ConflictError("Someone else changed this at the same time; read it again.")
        if isinstance(exc, ForbiddenError):
            exc = PermissionDenied(f"{exc.reason[:1].upper()}{exc.reason[1:]}.")
        return super().handle_exception(exc)

    @classmethod
    def acting_for(cls, context: Context) -> Self:
        """For whoever does not come over HTTP: a page of the console, a file."""
        view = cls(request=None, format_kwarg=None, kwargs={}, action="configure")
        view.on_behalf_of = context
        return view

    def put(self, serializer: BaseSerializer[Any]) -> None:
        """Make or change what a valid serializer says."""
        if serializer.instance is None:
            self.perform_create(serializer)
        else:
            self.perform_update(serializer)

    @transaction.atomic
    def perform_create(self, serializer: BaseSerializer[Any]) -> None:
        self.hold()
        self.keep(serializer)
        row = self._read_again(serializer.instance)
        self._record(self._key(row), None, self._as_json(row))

    @transaction.atomic
    def perform_update(self, serializer: BaseSerializer[Any]) -> None:
        self.hold()
        # What was looked up before the transaction may be older than the change before this one, and would undo it.
        serializer.instance = self._locked(serializer.instance)
        key, before = self._key(serializer.instance), self._as_json(serializer.instance)
        self.keep(serializer)
        self._record(key, before, self._as_json(self._read_again(serializer.instance)))

    @transaction.atomic
    def perform_destroy(self, instance: Any) -> None:
        self.hold()
        row = self._locked(instance)
        key, before = self._key(row), self._as_json(row)
        self.remove(row)
        self._record(key, before, None)

    @property
    def named_by(self) -> Mapping[str, str]:
        """The fields by which a file says which one it means, and how each is looked up."""
        return {self.lookup_field: self.lookup_field}

    def find(self, key: Sequence[str]) -> Any | None:
        """Row that a file means by these values of `named_by`."""
        return self.get_queryset().filter(**dict(zip(self.named_by.values(), key, strict=True))).first()

    def filed(self) -> Iterable[Any]:
        """All that a file of configuration has."""
        return self.get_queryset()

    def hold(self) -> None:
        """Locks that a change takes until its transaction ends, before it reads anything."""
        hold_names()

    def keep(self, serializer: BaseSerializer[Any]) -> None:
        serializer.save()

    def remove(self, instance: Any) -> None:
        instance.delete()

    def _locked(self, row: Any) -> Any:
        found = self.get_queryset().select_for_update(of=("self",)).filter(pk=row.pk).first()
        if found is None:
            raise ConflictError("Someone else removed this at the same time.")
        return found

    def _read_again(self, row: Any) -> Any:
        return self.get_queryset().get(pk=row.pk)

    def _as_json(self, instance: Any) -> dict[str, Any]:
        return dict(self.get_serializer(instance).data)

    def _key(self, instance: Any) -> str:
        return str(getattr(instance, self.lookup_field))

    def _record(self, key: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
        self.allow(before, after)
        record_configuration(self.kind, key, before, after, self.context)

    def allow(self, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
        """Raises ForbiddenError where who asks may not make that of it."""
        allow_configuring(self.context, before, after)

    @property
    def context(self) -> Context:
        return self.on_behalf_of or context(self.request)
