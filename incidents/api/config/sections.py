"""Sections of a configuration file beside the lists of the API: members of teams, silences, contact methods and
channels.

Over HTTP they have addresses of their own (`people.py`, `silences.py`, `notifications.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rest_framework import serializers as s
from rest_framework.serializers import BaseSerializer

from incidents.api.chat import ChatWorkspacesFile
from incidents.api.config.contacts import ChannelsFile, ContactMethodsFile, Person, RulesFile
from incidents.api.config.integrations import AnalysisSchedulesFile, IntegrationsFile, WebhooksFile
from incidents.api.config.silences import SilencesFile
from incidents.api.data_sources import DataSourcesFile
from incidents.api.editable import Catalog
from incidents.api.incident.serializers import Strict
from incidents.domain.permissions import ROLES
from incidents.people import commands as people
from incidents.teams.models import Membership, Team


class MemberFileSerializer(Strict, s.Serializer[Membership]):
    team = s.SlugRelatedField(
        slug_field="slug",
        queryset=Team.objects.all(),
        error_messages={"does_not_exist": "no team {value}"},
    )
    user = Person()
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
            people.set_member(given["team"], given["user"], given["role"], self.context)

    def perform_destroy(self, instance: Membership) -> None:
        people.remove_member(instance.team, instance.user, self.context)


FILED: Final[Mapping[str, type[Catalog]]] = {
    "members": MembersFile,
    "channels": ChannelsFile,
    "contact_methods": ContactMethodsFile,
    "notification_rules": RulesFile,
    "silences": SilencesFile,
    "webhooks": WebhooksFile,
    "data_sources": DataSourcesFile,
    "chat_workspaces": ChatWorkspacesFile,
    "integrations": IntegrationsFile,
    "analysis_schedules": AnalysisSchedulesFile,
}
