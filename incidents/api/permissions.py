"""Permissions of configuration over HTTP: keys with `admin`, staff, and managers for their team."""

from __future__ import annotations

from django.contrib.auth.models import AbstractBaseUser
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from incidents.domain.permissions import Person, may, refusal
from incidents.people.permissions import people_allowed, person
from ingest.api.authentication import HasScope
from ingest.api.keys import ADMIN


class MayConfigure(HasScope):
    """Keys with `admin` and staff; where things belong to teams also managers, who are then asked for which."""

    def __init__(self) -> None:
        super().__init__(ADMIN)

    def has_permission(self, request: Request, view: APIView) -> bool:
        if super().has_permission(request, view):
            return True
        actor = _person(request)
        return bool(getattr(view, "by_team", False)) and actor is not None and actor.has("manager")


class MayAnalyze(BasePermission):
    """Of people, responders of any team may have analyzers run; keys are asked for their scope elsewhere."""

    def has_permission(self, request: Request, view: APIView) -> bool:  # noqa: ARG002
        actor = person(request.user.get_username()) if _person(request) is not None else None
        if actor is None or may(actor, "analyze", ()):
            return True
        self.message = f"{refusal(actor, 'analyze', (), people_allowed('analyze', ()))}."
        return False


class MayPropose(HasScope):
    """A key needs the scope to propose, or the one to act."""

    def __init__(self) -> None:
        super().__init__("incidents:propose")

    def has_permission(self, request: Request, view: APIView) -> bool:
        acts = HasScope("incidents:write")
        return super().has_permission(request, view) or acts.has_permission(request, view)


def _person(request: Request) -> Person | None:
    """The person who asks; None for a key, whose scope was checked, and for nobody."""
    if request.auth is not None or not isinstance(request.user, AbstractBaseUser):
        return None
    name = request.user.get_username()
    if getattr(request.user, "is_staff", False):
        return Person(name, is_staff=True)
    return person(name) or Person(name)
