"""Putting back what somebody removed: made once more as the log of changes says that it was.

Through the view and serializer that the API makes it by, so that it is checked and recorded as anything that is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.db import IntegrityError
from rest_framework.exceptions import APIException, ValidationError

from incidents.api.editable import Catalog
from incidents.api.escalation import PoliciesView
from incidents.api.oncall.schedules import SchedulesView
from incidents.api.routing.services import ServicesView
from incidents.api.routing.views import RoutesView
from incidents.api.saved_views import SavedViewsView
from incidents.api.status_pages import StatusPagesView
from incidents.api.suppression.views import InhibitionsView, MaintenanceView
from incidents.api.teams.members import TeamsView
from ingest.queries import Context, configured

RESTORABLE: Final[dict[str, type[Catalog]]] = {
    view.kind: view
    for view in (
        TeamsView,
        ServicesView,
        RoutesView,
        PoliciesView,
        SchedulesView,
        MaintenanceView,
        InhibitionsView,
        SavedViewsView,
        StatusPagesView,
    )
}
"""Kinds that the log holds whole. Secrets, and the text of calendars, are not in it."""


class RestoreError(ValueError):
    """It is there, was never there, or cannot be as it was any more; the text says which."""


def restore(kind: str, key: str, context: Context) -> str:
    """Make what was removed last under this key as it was; its name. Raises RestoreError, KeyError, ForbiddenError."""
    view = RESTORABLE[kind].acting_for(context)
    return made_again(kind, key, view.get_serializer, view.put)


def made_again(kind: str, key: str, serializer_of: Callable[..., Any], keep: Callable[[Any], object]) -> str:
    """The same of any kind, by the serializer that reads it and by what keeps what that has read."""
    changes = configured(kind, key)
    last = changes[-1].body if changes else {}
    before: Any = last.get("before")
    if not isinstance(before, dict) or last.get("after") is not None:
        raise RestoreError(f"{key} was not removed")
    shape: Any = serializer_of()
    given = {
        name: before[name] for name, field in shape.fields.items() if not field.read_only and name in before
    }
    serializer = serializer_of(data=given)
    try:
        serializer.is_valid(raise_exception=True)
        keep(serializer)
    except ValidationError as error:
        raise RestoreError(f"{key} cannot be as it was: {_first(error.detail)}") from None
    except (APIException, IntegrityError) as error:
        raise RestoreError(f"{key} cannot be put back: {getattr(error, 'detail', 'it is there')}") from None
    return str(before.get("name") or key)


def _first(value: Any) -> str:
    while isinstance(value, dict | list) and value:
        value = next(iter(value.values())) if isinstance(value, dict) else value[0]
    return str(value).rstrip(".")
