"""Channels and notification rules in a file of configuration; addresses are not in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from rest_framework import serializers as s
from rest_framework.serializers import BaseSerializer

from incidents.api.editable import Catalog
from incidents.api.incident.serializers import Strict
from incidents.domain.config.secrets import reference
from incidents.domain.notifications.delivery import DEFAULT_BUNDLE, KINDS
from incidents.notifications import contact_methods
from incidents.notifications.models import ContactMethod, Preferences


class ChannelFileSerializer(Strict, s.Serializer[ContactMethod]):
    """Address and secret as values or as names of environment variables; never shown."""

    name = s.CharField(max_length=60)
    kind = s.ChoiceField(choices=KINDS)
    address = s.CharField(max_length=contact_methods.ADDRESS_LIMIT)
    secret = s.CharField(max_length=200, required=False, allow_null=True)
    most = s.IntegerField(required=False, allow_null=True)
    span = s.IntegerField(required=False)

    def to_representation(self, row: ContactMethod) -> dict[str, Any]:
        prefix = ("CHANNEL", row.name) if row.user is None else ("METHOD", row.user.username, row.name)
        hidden = {
            "address": reference(f"{prefix[0]}_ADDRESS", *prefix[1:]),
            "secret": reference(f"{prefix[0]}_SECRET", *prefix[1:]) if row.secret else None,
        }
        for name in self.context["view"].replaced.get(row.pk, ()):
            hidden[name] = f"{hidden[name]} (changed)"
        user = {} if row.user is None else {"user": row.user.username}
        return {**user, "name": row.name, "kind": row.kind, **hidden, "most": row.most, "span": row.span}


class ChannelsFile(Catalog):
    """Addresses that teams share and policies call."""

    queryset = ContactMethod.objects.filter(user=None).order_by("name")
    serializer_class: type[BaseSerializer[ContactMethod]] = ChannelFileSerializer
    lookup_field = "name"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.replaced: dict[int, list[str]] = {}
        """By row, of what is never told, what this file has changed: or nobody would see that it did."""

    def put(self, serializer: BaseSerializer[ContactMethod]) -> None:
        row = serializer.instance
        given = self._given(serializer.validated_data, row)
        user = given.pop("user", None)
        if row is None:
            contact_methods.add_method(user, given, self.context)
            return
        stored = contact_methods.hidden(row)
        contact_methods.change_method(row, given, self.context)
        self.replaced[row.pk] = contact_methods.replaced(row, stored)

    def perform_destroy(self, instance: ContactMethod) -> None:
        contact_methods.remove_method(instance, self.context)

    def _given(self, body: Mapping[str, Any], row: ContactMethod | None) -> dict[str, Any]:
        """With what the variables hold; what is there and has none stays."""
        given = dict(body)
        kind = given.get("kind") or (row.kind if row else "")
        for name in ("address", "secret"):
            if isinstance(text := given.get(name), str):
                stored = getattr(row, name) if row else ""
                stand_in = contact_methods.STAND_INS.get(kind, text) if name == "address" else "unset"
                given[name] = self.filed_secret(name, text, stored, stand_in)
        return given


class Person(s.SlugRelatedField[User]):
    def __init__(self) -> None:
        super().__init__(
            slug_field="username",
            queryset=get_user_model().objects.all(),
            error_messages={"does_not_exist": "no user {value}"},
        )


class ContactMethodFileSerializer(ChannelFileSerializer):
    user = Person()

    def get_fields(self) -> dict[str, s.Field[Any, Any, Any, Any]]:
        fields = super().get_fields()
        return {"user": fields.pop("user"), **fields}


class ContactMethodsFile(ChannelsFile):
    """Contact methods of people, in a file."""

    queryset = (
        ContactMethod.objects.filter(user__isnull=False)
        .select_related("user")
        .order_by("user__username", "name")
    )
    serializer_class = ContactMethodFileSerializer

    @property
    def named_by(self) -> Mapping[str, str]:
        return {"user": "user__username", "name": "name"}


class RulesFileSerializer(Strict, s.Serializer[Preferences]):
    user = Person()
    rules = s.JSONField(required=False)
    quiet_hours = s.JSONField(required=False, allow_null=True)
    bundle_seconds = s.IntegerField(required=False)

    def to_representation(self, row: Preferences) -> dict[str, Any]:
        return {"user": row.user.username, **contact_methods.preferences_as_json(row.user)}


class RulesFile(Catalog):
    """By which of their methods people want to be reached, and when."""

    queryset = Preferences.objects.select_related("user").order_by("user__username")
    serializer_class = RulesFileSerializer

    @property
    def named_by(self) -> Mapping[str, str]:
        return {"user": "user__username"}

    def filed(self) -> Iterable[Preferences]:
        """Not of those with whom everything is as it is without rules."""
        return self.get_queryset().exclude(rules=[], quiet__isnull=True, bundle_seconds=DEFAULT_BUNDLE)

    def put(self, serializer: BaseSerializer[Preferences]) -> None:
        given, row = dict(serializer.validated_data), serializer.instance
        user = given.pop("user")
        stored = {} if row is None else contact_methods.preferences_as_json(user)
        contact_methods.set_preferences(user, {**stored, **given}, self.context)

    def perform_destroy(self, instance: Preferences) -> None:
        contact_methods.set_preferences(instance.user, {}, self.context)
