"""Views of the inbox that are shared with a team, over HTTP as /api/v1/saved_views and in files of configuration.

What people keep for themselves is theirs alone, and in neither.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.utils import timezone
from rest_framework import serializers as s
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from incidents.api.editable import BySlug, Catalog
from incidents.api.incident.serializers import Strict, line
from incidents.domain.permissions import ForbiddenError
from incidents.domain.values import InvalidValueError
from incidents.people.permissions import actor_name
from incidents.queries import team_slugs
from incidents.saved_views import commands
from incidents.saved_views.models import SavedView
from incidents.search import query as search
from incidents.search.filters import ORDERS
from incidents.teams.models import Team
from ingest.api.authentication import HasScope
from ingest.api.keys import ADMIN

MOST_WORDS = 1000


class SavedViewSerializer(Strict, s.ModelSerializer[SavedView]):
    slug = s.SlugField(max_length=80)
    team = s.SlugRelatedField(
        slug_field="slug", queryset=Team.objects.all(), help_text="slug of the team that sees the view"
    )
    tab = s.ChoiceField(choices=commands.TABS, default=commands.USUAL["tab"])
    search = s.CharField(
        max_length=MOST_WORDS, allow_blank=True, default="", help_text="search, as in the inbox"
    )
    order = s.ChoiceField(choices=list(ORDERS), default=commands.USUAL["order"])

    class Meta:
        model = SavedView
        fields = ("slug", "name", "team", "tab", "search", "order")
        validators: tuple[Any, ...] = ()

    def to_representation(self, row: SavedView) -> dict[str, Any]:
        return commands.saved_view_as_json(row)

    def validate_name(self, name: str) -> str:
        return line("name", name)

    def validate_slug(self, slug: str) -> str:
        if self.instance is not None and slug != self.instance.slug:
            raise s.ValidationError("cannot be changed; create another view")
        if self.instance is None and SavedView.objects.filter(slug=slug, removed_at=None).exists():
            raise s.ValidationError("a view with this slug already exists")
        return slug

    def validate_search(self, text: str) -> str:
        # `owner:me` means the reader of the view.
        if problems := search.search_query(text, timezone.now(), "somebody", team_slugs()).problems:
            raise s.ValidationError("; ".join(map(str, problems))[:1000])
        return text

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        row = self.instance
        name, team = given.get("name", row and row.name), given.get("team", row and row.team)
        named = SavedView.objects.filter(team=team, name=name, removed_at=None)
        if (named if row is None else named.exclude(pk=row.pk)).exists():
            raise s.ValidationError({"name": ["the team already has a view with this name"]})
        before = {} if row is None else commands.saved_view_as_json(row)
        stored = {name: given.pop(name, before.get(name, "")) for name in commands.FIELDS}
        try:
            return {**given, "query": commands.canonical(urlencode(stored))}
        except InvalidValueError:
            raise s.ValidationError({"search": ["is too long"]}) from None


class MayShare(HasScope):
    """Keys with `admin`, staff, and people, who are then asked for which team."""

    def __init__(self) -> None:
        super().__init__(ADMIN)

    def has_permission(self, request: Request, view: APIView) -> bool:
        person = request.auth is None and isinstance(request.user, AbstractBaseUser)
        return person or super().has_permission(request, view)


class SavedViewsView(Catalog):
    """Searches of the inbox that a team shares."""

    kind = commands.KIND
    queryset = (
        SavedView.objects.filter(team__isnull=False, removed_at=None)
        .select_related("team")
        .order_by("name", "team__slug")
    )
    serializer_class = SavedViewSerializer
    pagination_class = BySlug
    lookup_field = "slug"

    def get_permissions(self) -> list[BasePermission]:
        return [HasScope("incidents:read") if self.request.method in SAFE_METHODS else MayShare()]

    def keep(self, serializer: BaseSerializer[SavedView]) -> None:
        maker = get_user_model().objects.filter(username=actor_name(self.context) or "").first()
        serializer.save(**({"maker": maker} if serializer.instance is None else {}))

    def remove(self, instance: SavedView) -> None:
        """It stays as what its undo in the console brings back."""
        instance.removed_at = timezone.now()
        instance.save(update_fields=["removed_at"])

    def allow(self, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
        name = actor_name(self.context)
        for thing in (before, after):
            if name is not None and thing is not None and not commands.responds(name, thing["team"]):
                raise ForbiddenError(
                    f"sharing a view with {thing['team']} requires the role responder in that team"
                )
