"""All configuration as one document: as it is, and made to be as a document says.

Over the very views and serializers of the API, so that a file is checked as a request is and every change is recorded
as one. What a document does not name stays as it is; with `prune` what is missing in the lists that it has is removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import ProtectedError
from rest_framework.exceptions import APIException, ValidationError

from incidents.api.catalog import Catalog
from incidents.domain.config_text import BadConfiguration, Document, Fault, Item, Path
from ingest.queries import Context

_PART = re.compile(r"\[([0-9]{1,6})\]|([^.\[\]]+)")
Catalogs = Mapping[str, type[Catalog]]
READER = Context("system:configuration")


@dataclass(frozen=True, slots=True)
class Change:
    """One thing before and after, as the API shows it; None before is a creation, None after a removal."""

    kind: str
    key: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


class _Undone(Exception):
    """Carries nothing out: thrown to leave a transaction."""


def exported(catalogs: Catalogs) -> dict[str, list[dict[str, Any]]]:
    """Everything that is configured, by kind; only what can be written."""
    return {
        kind: [_written(one, row) for row in one.get_queryset()]
        for kind, one in ((kind, view.acting_for(READER)) for kind, view in catalogs.items())
    }


def apply(
    document: Document, catalogs: Catalogs, who: Context, *, prune: bool = False, dry: bool = False
) -> list[Change]:
    """Make it so, all of it or nothing; `dry` says what would change. Raises BadConfiguration."""
    done: list[Change] = []
    try:
        with transaction.atomic():
            _carry_out(document, catalogs, who, prune, done)
            if dry:
                raise _Undone
    except _Undone:
        pass
    return done


def _carry_out(document: Document, catalogs: Catalogs, who: Context, prune: bool, done: list[Change]) -> None:
    views = {kind: catalogs[kind].acting_for(who) for kind in document.items}
    faults = list(_doubled(document, views))
    # Things name each other, also of their own kind: whatever cannot be done yet is tried again while others can.
    left = [item for items in document.items.values() for item in items]
    while left and not faults:
        waiting: dict[int, tuple[Item, list[Fault]]] = {}
        for item in left:
            if found := _set(document, views[item.kind], item, done):
                waiting[id(item)] = item, found
        if len(waiting) == len(left):
            faults = [fault for _, found in waiting.values() for fault in found]
        left = [item for item, _ in waiting.values()]
    if faults:
        raise BadConfiguration(faults)
    if prune:
        _prune(document, views, done)


def _doubled(document: Document, views: Mapping[str, Catalog]) -> Iterator[Fault]:
    for kind, items in document.items.items():
        field, seen = views[kind].lookup_field, set()
        for item in items:
            key = item.values.get(field)
            if not isinstance(key, str) or not key:
                yield document.fault((kind, item.place, field), "is needed: it says which one is meant")
            elif key in seen:
                yield document.fault((kind, item.place, field), f"`{key[:60]}` stands here twice")
            seen.add(key)


def _set(document: Document, view: Catalog, item: Item, done: list[Change]) -> list[Fault]:
    """Create or change one; what is wrong with it."""
    key, path = item.values[view.lookup_field], (item.kind, item.place)
    try:
        with transaction.atomic():
            row = view.get_queryset().filter(**{view.lookup_field: key}).first()
            before = None if row is None else _written(view, row)
            serializer = view.get_serializer(row, data=dict(item.values), partial=row is not None)
            serializer.is_valid(raise_exception=True)
            view.put(serializer)
            kept: Any = serializer.instance
            after = _written(view, view.get_queryset().get(pk=kept.pk))
    except ValidationError as error:
        return [document.fault((*path, *way), reason) for way, reason in _reasons(error.detail)]
    except (APIException, IntegrityError) as error:
        return [document.fault(path, str(getattr(error, "detail", None) or "it is there already"))]
    if before != after:
        done.append(Change(item.kind, str(key), before, after))
    return []


def _reasons(detail: Any, way: Path = ()) -> Iterator[tuple[Path, str]]:
    if isinstance(detail, dict):
        for name, inner in detail.items():
            yield from _reasons(inner, way if name == "non_field_errors" else (*way, *_parts(str(name))))
    elif isinstance(detail, list):
        for at, inner in enumerate(detail):
            yield from _reasons(inner, (*way, at) if isinstance(inner, dict) else way)
    else:
        yield way, str(detail)


def _parts(name: str) -> Path:
    """`layers[0].turn`, as the domain names what is wrong within a field, in parts."""
    return tuple(int(place) if place else part for place, part in _PART.findall(name))


def _written(view: Catalog, row: Any) -> dict[str, Any]:
    serializer: Any = view.get_serializer(row)
    told = serializer.data
    return {
        name: told[name] for name, field in serializer.fields.items() if not field.read_only and name in told
    }


def _prune(document: Document, views: Mapping[str, Catalog], done: list[Change]) -> None:
    left = [
        (kind, view, row)
        for kind, view in reversed(list(views.items()))
        for row in view.get_queryset()
        if str(getattr(row, view.lookup_field))
        not in {one.values[view.lookup_field] for one in document.items[kind]}
    ]
    while left:
        waiting: list[tuple[str, Catalog, Any]] = []
        faults: list[Fault] = []
        for kind, view, row in left:
            key, before = str(getattr(row, view.lookup_field)), _written(view, row)
            try:
                with transaction.atomic():
                    view.perform_destroy(row)
            except (APIException, ProtectedError) as error:
                waiting.append((kind, view, view.get_queryset().get(**{view.lookup_field: key})))
                reason = getattr(error, "detail", None) or "something else names it"
                faults.append(
                    document.fault((kind,), f"`{key}` is missing here and cannot be removed: {reason}")
                )
            else:
                done.append(Change(kind, key, before, None))
        if len(waiting) == len(left):
            raise BadConfiguration(faults)
        left = waiting


def differences(change: Change) -> Sequence[tuple[str, Any, Any]]:
    """The fields that differ, with what each was and is; all of them for what comes or goes."""
    before, after = change.before or {}, change.after or {}
    names = list(dict.fromkeys((*before, *after)))
    return [
        (name, before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)
    ]
