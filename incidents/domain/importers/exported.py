"""Answers of another system's API, as saved to files: the objects in them, by what they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from incidents.domain.importers.draft import Draft, InvalidImportError

Object = Mapping[str, Any]


@dataclass(slots=True)
class People:
    """User names by the ids and mail addresses of the other system; `known` are those of accounts that exist, by
    mail."""

    draft: Draft
    known: Mapping[str, str]
    names: dict[str, str] = field(default_factory=dict)

    def add(self, ids: Iterable[str], mail: str, full_name: str) -> str:
        """The user name of a person, who is added where no account has this address."""
        first, _, last = full_name.strip().partition(" ")
        name = self.known.get(mail.lower()) or self.draft.name("users", mail.partition("@")[0] or full_name)
        for one in (*ids, mail):
            self.names[one] = name
        if mail.lower() not in self.known:
            self.draft.add(
                "users",
                {"username": name, "email": mail, "first_name": first[:150], "last_name": last[:150]},
            )
        return name

    def of(self, where: str, *ids: object) -> str | None:
        """The user name for any of the ids; None, with a note, for a person missing in the files."""
        for one in ids:
            if isinstance(one, str) and one in self.names:
                return self.names[one]
        name = next((str(one) for one in ids if one), "?")
        self.draft.leave(where, f"the person {name} is in none of the files; add the list of users")
        return None


@dataclass(slots=True)
class Export:
    """Target of an import: `teams` are slugs by the ids of the other system, and by names where it uses them."""

    draft: Draft
    people: People
    now: datetime
    teams: dict[str, str] = field(default_factory=dict)


E = TypeVar("E", bound=Export)


def read_all(
    export: E,
    found: Mapping[str, list[tuple[str, Object]]],
    kinds: Iterable[tuple[str, Callable[[E, str, Object], None]]],
) -> Draft:
    """Every object of each kind, in the order of `kinds`: what others name comes before them."""
    for kind, read in kinds:
        for where, one in found.get(kind, []):
            read(export, where, one)
    return export.draft


def objects(files: Mapping[str, Any], keys: Iterable[str]) -> Iterator[tuple[str, Object]]:
    """Each object of the files with where it stands: of lists, of answers that hold one below one of the `keys`, or
    the file itself. Raises InvalidImportError."""
    for name, value in files.items():
        if isinstance(value, Mapping):
            found = next((value[key] for key in keys if isinstance(value.get(key), list | Mapping)), value)
        else:
            found = value
        many = found if isinstance(found, list) else [found]
        for place, one in enumerate(many):
            where = f"{name}: {place + 1}" if len(many) > 1 else name
            if not isinstance(one, Mapping):
                raise InvalidImportError(f"{where}: must be an object, as the API answers it")
            yield where, one


def sorted_by_kind(
    files: Mapping[str, Any], keys: Iterable[str], kind_of: Callable[[Object], str | None], what: str
) -> dict[str, list[tuple[str, Object]]]:
    """Objects by kind; those that `kind_of` does not know are an error, since nothing should be lost unnoticed."""
    found: dict[str, list[tuple[str, Object]]] = {}
    for where, one in objects(files, tuple(keys)):
        kind = kind_of(one)
        if kind is None:
            raise InvalidImportError(
                f"{where}: is not a {what}; its fields are {', '.join(sorted(one))[:200]}"
            )
        found.setdefault(kind, []).append((where, one))
    if not found:
        raise InvalidImportError(f"the files are empty: expected {what}")
    return found


def text(one: Object, *names: str) -> str:
    """The first of the fields that holds a text."""
    return next((str(one[name]) for name in names if isinstance(one.get(name), str) and one[name]), "")


def inner(one: Object, name: str) -> list[Object]:
    """The objects of a list field, empty where there is none."""
    value = one.get(name)
    return [part for part in value if isinstance(part, Mapping)] if isinstance(value, list) else []


def part(one: Object, name: str) -> Object:
    value = one.get(name)
    return value if isinstance(value, Mapping) else {}
