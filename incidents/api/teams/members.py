"""Teams over HTTP, as /api/v1/teams. One that is removed takes its members and shared views with it, each recorded."""

from __future__ import annotations

from rest_framework.serializers import BaseSerializer

from incidents.api.editable import BySlug, Catalog
from incidents.api.incident.serializers import TeamSerializer
from incidents.api.incident.views import ConflictError
from incidents.api.oncall.schedules import SchedulesView
from incidents.incident.models import IncidentRow
from incidents.people import commands as people
from incidents.saved_views import commands as saved
from incidents.teams.models import Team
from incidents.teams.references import named_by


class TeamsView(Catalog):
    """People who work on incidents."""

    kind = "team"
    queryset = Team.objects.all()
    serializer_class = TeamSerializer
    pagination_class = BySlug
    lookup_field = "slug"

    def keep(self, serializer: BaseSerializer[Team]) -> None:
        if serializer.validated_data.get("is_default"):
            for former in self.get_queryset().filter(is_default=True).exclude(pk=_pk(serializer)):
                before = self._as_json(former)
                former.is_default = False
                former.save(update_fields=["is_default"])
                self._record(former.slug, before, self._as_json(former))
        serializer.save()

    def remove(self, instance: Team) -> None:
        if instance.is_default:
            raise ConflictError(f"{instance.name} is the default team; make another one the default first.")
        self._refuse_needed(instance)
        people.dissolve(instance, self.context)
        saved.remove_shared(instance, self.context)
        schedules = SchedulesView.acting_for(self.context)
        for schedule in instance.schedules.all():
            schedules.disown(schedule)
        instance.delete()

    def _refuse_needed(self, team: Team) -> None:
        unresolved = IncidentRow.objects.exclude(state="resolved")
        if unresolved.filter(team=team.slug).exists():
            raise ConflictError(f"{team.name} has incidents that are not resolved; hand them over first.")
        if unresolved.filter(handed_from=team.slug).exists():
            raise ConflictError(
                f"{team.name} handed over incidents that may still be returned to it; have them accepted first."
            )
        if named := named_by("team", team.slug):
            raise ConflictError(f"{team.name} is used by {named}; change that first.")


def _pk(serializer: BaseSerializer[Team]) -> int | None:
    return None if serializer.instance is None else serializer.instance.pk
