"""What a file of configuration has beside what the API serves as lists of rows: members of teams, and channels.

Over HTTP they have addresses of their own (`people.py`, `notifications.py`); these are the same commands, item by item.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NoReturn

from django.contrib.auth import get_user_model
from rest_framework import serializers as s
from rest_framework.serializers import BaseSerializer

from incidents import people
from incidents.api.catalog import Catalog
from incidents.api.filed_silences import SilencesFile
from incidents.api.serializers import Strict
from incidents.catalog.models import Membership, Team
from incidents.delivery import addressbook
from incidents.delivery.models import ContactMethod
from incidents.domain.config_secrets import NotGiven, reference, resolved
from incidents.domain.permissions import ROLES
from incidents.domain.reaching import KINDS

ADDRESS, SECRET = "CHANNEL_ADDRESS", "CHANNEL_SECRET"


class MemberFileSerializer(Strict, s.Serializer[Membership]):
    team = s.SlugRelatedField(
        slug_field="slug",
        queryset=Team.objects.all(),
        error_messages={"does_not_exist": "there is no team {value}"},
    )
    user = s.SlugRelatedField(
        slug_field="username",
        queryset=get_user_model().objects.all(),
        error_messages={"does_not_exist": "nobody here is called {value}"},
    )
    role = s.ChoiceField(choices=ROLES)


class MembersFile(Catalog):
    """People in teams: one item each, so that a file may add one and leave the others."""

    queryset = Membership.objects.select_related("team", "user").order_by("team__slug", "user__username")
    serializer_class = MemberFileSerializer

    @property
    def named_by(self) -> Mapping[str, str]:
        return {"team": "team__slug", "user": "user__username"}

    def put(self, serializer: BaseSerializer[Membership]) -> None:
        row, given = serializer.instance, serializer.validated_data
        if row is None or row.role != given.get("role", row.role):
            people.set_member(given["team"], given["user"], given["role"], self.asking)

    def perform_destroy(self, instance: Membership) -> None:
        people.remove_member(instance.team, instance.user, self.asking)


class ChannelFileSerializer(Strict, s.Serializer[ContactMethod]):
    """The address and the secret are given, or a variable is named that holds them; they are never told."""

    name = s.CharField(max_length=60)
    kind = s.ChoiceField(choices=KINDS)
    address = s.CharField(max_length=addressbook.ADDRESS_LIMIT)
    secret = s.CharField(max_length=200, required=False, allow_null=True)
    most = s.IntegerField(required=False, allow_null=True)
    span = s.IntegerField(required=False)

    def to_representation(self, row: ContactMethod) -> dict[str, Any]:
        hidden = {
            "address": reference(ADDRESS, row.name),
            "secret": reference(SECRET, row.name) if row.secret else None,
        }
        for name in self.context["view"].replaced.get(row.pk, ()):
            hidden[name] = f"{hidden[name]} (changed)"
        return {"name": row.name, "kind": row.kind, **hidden, "most": row.most, "span": row.span}


class ChannelsFile(Catalog):
    """Addresses that teams share and policies call."""

    queryset = ContactMethod.objects.filter(user=None).order_by("name")
    serializer_class = ChannelFileSerializer
    lookup_field = "name"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.replaced: dict[int, list[str]] = {}
        """By row, of what is never told, what this file has changed: or nobody would see that it did."""

    def put(self, serializer: BaseSerializer[ContactMethod]) -> None:
        row = serializer.instance
        given = self._given(serializer.validated_data, row)
        if row is None:
            addressbook.add_method(None, given, self.asking)
            return
        kept = addressbook.hidden(row)
        addressbook.change_method(row, given, self.asking)
        self.replaced[row.pk] = addressbook.replaced(row, kept)

    def perform_destroy(self, instance: ContactMethod) -> None:
        addressbook.remove_method(instance, self.asking)

    def _given(self, told: Mapping[str, Any], row: ContactMethod | None) -> dict[str, Any]:
        """With what the variables hold; what is there and has none stays."""
        given = dict(told)
        for name in ("address", "secret"):
            if not isinstance(text := given.get(name), str):
                continue
            try:
                given[name] = resolved(text, self.environment)
            except NotGiven as lacking:
                if row is None or not getattr(row, name):
                    _refuse(name, str(lacking))
                del given[name]
        return given


def _refuse(field: str, variable: str) -> NoReturn:
    raise s.ValidationError({field: [f"set {variable} in the environment: it is to hold what is meant here"]})


FILED: Final[Mapping[str, type[Catalog]]] = {
    "members": MembersFile,
    "channels": ChannelsFile,
    "silences": SilencesFile,
}
