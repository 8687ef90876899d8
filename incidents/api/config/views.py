"""All configuration as one document: as it is, and made to be as a document says.

Over the very views and serializers of the API, so that a file is checked as a request is and every change is recorded
as one. What a document does not name stays as it is; with `prune` what is missing in the lists that it has is removed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import ProtectedError
from rest_framework.exceptions import APIException, ValidationError

from incidents.api.editable import Catalog
from incidents.domain.config.yaml import Document, Fault, InvalidConfigurationError, Item, Path
from incidents.domain.permissions import ForbiddenError
from incidents.domain.values import CommandRefusedError, InvalidValueError
from ingest.queries import Context

_PART = re.compile(r"\[([0-9]{1,6})\]|([^.\[\]]+)")
Catalogs = Mapping[str, type[Catalog]]
Views = Mapping[str, Catalog]
Key = tuple[str, ...]
READER = Context("system:configuration")


@dataclass(frozen=True, slots=True)
class Change:
    """One thing before and after, as the API shows it; None before is a creation, None after a removal."""

    kind: str
    key: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    unset: tuple[str, ...] = ()
    """Variables of secrets that the environment lacks; only in a dry run."""


class _RollbackError(Exception):
    """Carries nothing out: thrown to leave a transaction."""


def exported(catalogs: Catalogs) -> dict[str, list[dict[str, Any]]]:
    """Everything that is configured, by kind; only what can be written."""
    return {
        kind: [_written(one, row) for row in one.filed()]
        for kind, one in ((kind, view.acting_for(READER)) for kind, view in catalogs.items())
    }


def apply(
    document: Document,
    catalogs: Catalogs,
    context: Context,
    *,
    environment: Mapping[str, str] | None = None,
    prune: bool = False,
    dry: bool = False,
    look: Callable[[], None] = lambda: None,
) -> list[Change]:
    """Make it so, all of it or nothing; `dry` says what would change. Raises InvalidConfigurationError.

    `environment` holds the secrets that the document only names; a dry run goes on without them. `look` is called once
    it is so, also in a dry run.
    """
    done: list[Change] = []
    views = {kind: catalogs[kind].acting_for(context) for kind in document.items}
    for view in views.values():
        view.environment = environment or {}
    try:
        with transaction.atomic():
            unset = _carry_out(document, views, prune, done)
            if unset and not dry:
                raise InvalidConfigurationError(unset)
            look()
            if dry:
                raise _RollbackError
    except _RollbackError:
        pass
    return done


def _carry_out(document: Document, views: Views, prune: bool, done: list[Change]) -> list[Fault]:
    """Variables of secrets that the environment lacks, as faults. Raises InvalidConfigurationError."""
    unset: list[Fault] = []
    faults = list(_doubled(document, views))
    # Things name each other, also of their own kind: whatever cannot be done yet is tried again while others can.
    left = [item for items in document.items.values() for item in items]
    while left and not faults:
        waiting: dict[int, tuple[Item, list[Fault]]] = {}
        for item in left:
            if found := _set(document, views[item.kind], item, done, unset):
                waiting[id(item)] = item, found
        if len(waiting) == len(left):
            faults = [fault for _, found in waiting.values() for fault in found]
        left = [item for item, _ in waiting.values()]
    if faults:
        raise InvalidConfigurationError(faults)
    if prune:
        _prune(document, views, done)
    return unset


def _doubled(document: Document, views: Views) -> Iterator[Fault]:
    for kind, items in document.items.items():
        fields, seen = list(views[kind].named_by), set()
        for item in items:
            lacking = [name for name in fields if not _names(item.values.get(name))]
            for name in lacking:
                yield document.fault((kind, item.place, name), "is required: it identifies the object")
            if lacking:
                continue
            if (key := _key(views[kind], item.values)) in seen:
                yield document.fault((kind, item.place, fields[-1]), f"`{_called(key)[:60]}` is a duplicate")
            seen.add(key)


def _names(value: object) -> bool:
    """Whether something can be called so; the database takes no NUL."""
    return isinstance(value, str) and bool(value) and "\0" not in value


def _key(view: Catalog, values: Mapping[str, Any]) -> Key:
    return tuple(str(values[name]) for name in view.named_by)


def _called(key: Key) -> str:
    return "/".join(key)


def _set(
    document: Document, view: Catalog, item: Item, done: list[Change], unset: list[Fault]
) -> list[Fault]:
    """Create or change one; what is wrong with it."""
    key, path = _key(view, item.values), (item.kind, item.place)
    view.unset = {}
    try:
        with transaction.atomic():
            row = view.find(key)
            before = None if row is None else _written(view, row)
            serializer = view.get_serializer(row, data=dict(item.values), partial=row is not None)
            serializer.is_valid(raise_exception=True)
            view.put(serializer)
            stored = view.find(key)
            after = None if stored is None else _written(view, stored)
    except ValidationError as error:
        return [document.fault((*path, *way), reason) for way, reason in _reasons(error.detail)]
    except InvalidValueError as error:
        return [document.fault((*path, *_parts(error.field)), error.reason)]
    except (APIException, IntegrityError, CommandRefusedError, ForbiddenError) as error:
        return [document.fault(path, _why(error) or "already exists")]
    if before != after:
        done.append(Change(item.kind, _called(key), before, after, tuple(view.unset.values())))
    unset += [
        document.fault((*path, field), f"set {variable} in the environment: with the value to use here")
        for field, variable in view.unset.items()
    ]
    return []


def _why(error: Exception) -> str:
    return str(getattr(error, "detail", None) or getattr(error, "reason", None) or "")


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
    fields = serializer.data
    return {
        name: fields[name]
        for name, field in serializer.fields.items()
        if not field.read_only and name in fields
    }


def _prune(document: Document, views: Views, done: list[Change]) -> None:
    left: list[tuple[str, Catalog, Mapping[str, Any]]] = []
    for kind, view in reversed(list(views.items())):
        named = {_key(view, one.values) for one in document.items[kind]}
        there = [_written(view, row) for row in view.filed()]
        left += [(kind, view, entry) for entry in there if _key(view, entry) not in named]
    while left:
        waiting: list[tuple[str, Catalog, Mapping[str, Any]]] = []
        faults: list[Fault] = []
        for kind, view, entry in left:
            key = _key(view, entry)
            if (found := view.find(key)) is None:
                continue  # it went with what it was part of
            try:
                with transaction.atomic():
                    view.perform_destroy(found)
            except (APIException, ProtectedError, CommandRefusedError, ForbiddenError) as error:
                waiting.append((kind, view, entry))
                reason = _why(error) or "another object refers to it"
                faults.append(
                    document.fault(
                        (kind,), f"`{_called(key)}` is missing here and cannot be removed: {reason}"
                    )
                )
            else:
                done.append(Change(kind, _called(key), entry, None))
        if len(waiting) == len(left):
            raise InvalidConfigurationError(faults)
        left = waiting


def differences(change: Change) -> Sequence[tuple[str, Any, Any]]:
    """The fields that differ, with what each was and is; all of them for what comes or goes."""
    before, after = change.before or {}, change.after or {}
    names = list(dict.fromkeys((*before, *after)))
    return [
        (name, before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)
    ]
