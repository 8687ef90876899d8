"""Views of a person, and the one that their inbox opens with."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Q

from incidents.saved_views.models import DefaultView, SavedView
from incidents.teams.models import Membership


def views_of(name: str) -> Sequence[SavedView]:
    """A person's own views and those of their teams; of somebody in no team, those of every team."""
    teams = Membership.objects.filter(user__username=name).values_list("team", flat=True)
    shared = Q(team__in=list(teams)) if teams else Q(team__isnull=False)
    found = SavedView.objects.filter(Q(team=None, maker__username=name) | shared, removed_at=None)
    return list(found.select_related("team", "maker").order_by("team__name", "name"))


def default_of(name: str) -> SavedView | None:
    row = (
        DefaultView.objects.filter(person__username=name, view__removed_at=None)
        .select_related("view")
        .first()
    )
    return None if row is None else row.view
