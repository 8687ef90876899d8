from __future__ import annotations

from dataclasses import dataclass

from incidents.domain.components.impact import reached, touched
from incidents.domain.routing.rules import Service, Team

STORAGE = Team("storage", "Storage")


@dataclass(frozen=True)
class One:
    name: str
    parents: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()


FLEET = [
    One("rack/r1"),
    One("host/h1", ("rack/r1",)),
    One("host/h2", ("rack/r2",), ("tor/t1",)),
    One("vm/v1", ("host/h1",), ("disk/d1",)),
    One("vm/v2", ("host/h2",), ("rack/r1",)),
]
SERVICES = {
    "racks": Service("racks", "Racks", None, ("rack/*",)),
    "vms": Service("vms", "Machines", STORAGE, ("vm/*",)),
    "shop": Service("shop", "Shop", None, (), ("vms",)),
    "mail": Service("mail", "Mail", None, (), ("shop", "mail")),
    "idle": Service("idle", "Idle", None, ("lamp/*",)),
}


def test_what_it_contains_and_what_depends_on_it_fails_with_it() -> None:
    assert [(one.component, one.hops, one.because) for one in reached("rack/r1", FLEET)] == [
        ("host/h1", 1, "is contained in rack/r1"),
        ("vm/v2", 1, "depends on rack/r1"),
        ("vm/v1", 2, "is contained in host/h1"),
    ]


def test_what_only_others_name_counts_too() -> None:
    assert [one.component for one in reached("tor/t1", FLEET)] == ["host/h2", "vm/v2"]


def test_what_nobody_needs_takes_nothing_with_it() -> None:
    assert reached("vm/v1", FLEET) == reached("lamp/l9", FLEET) == []


def test_circles_end() -> None:
    circle = [One("a/a", ("b/b",)), One("b/b", ("a/a",))]
    assert [one.component for one in reached("a/a", circle)] == ["b/b"]


def test_services_are_touched_by_their_parts_and_by_what_they_depend_on() -> None:
    told = touched("rack/r1", reached("rack/r1", FLEET), SERVICES)
    assert [(one.slug, one.components, one.because) for one in told] == [
        ("vms", 2, "has 2 of them, such as vm/v2"),
        ("racks", 1, "has rack/r1"),
        ("shop", 0, "depends on Machines"),
        ("mail", 0, "depends on Shop"),
    ]
