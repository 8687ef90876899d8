"""Containers and needs of a component, as in force at a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from ingest.queries import component, topology_at
from ingest.telemetry.decode.builder import Assembly
from ingest.telemetry.decode.columns import Bounds
from ingest.telemetry.kinds import KINDS
from ingest.telemetry.store.write import Delivery, receive

pytestmark = pytest.mark.usefixtures("log_database")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def tell(at: datetime, name: str, region: str = "default", **more: Any) -> None:
    kind = KINDS["topology"]
    assembly = Assembly(kind, region)
    row = {"time": at, "component": name, **more}
    assembly.add({field.name: [row.get(field.name)] for field in kind.all_fields}, np.ones(1, np.int64))
    receive(assembly.rows(Bounds()), Delivery("test", bytes(32), 1))


def test_a_component_is_known_from_its_time_on() -> None:
    tell(NOON, "tor/1", parents=["row/1"], depends_on=["power/1"], labels={"vendor": "x"})
    found = component("tor/1", NOON)
    assert found is not None
    assert (found.parents, found.depends_on, dict(found.labels)) == (
        ("row/1",),
        ("power/1",),
        {"vendor": "x"},
    )
    assert component("tor/1", NOON - HOUR) is None


def test_a_later_row_replaces_the_whole_of_the_earlier() -> None:
    tell(NOON, "tor/1", parents=["row/1"], labels={"vendor": "x"})
    tell(NOON + HOUR, "tor/1", parents=["row/2"])
    then, now = component("tor/1", NOON), component("tor/1", NOON + HOUR)
    assert then is not None
    assert now is not None
    assert (then.parents, now.parents, dict(now.labels)) == (("row/1",), ("row/2",), {})


def test_a_component_that_is_gone_is_not_in_force() -> None:
    tell(NOON, "tor/1")
    tell(NOON + HOUR, "tor/1", active=False)
    assert "tor/1" in topology_at("default", NOON).components
    assert "tor/1" not in topology_at("default", NOON + HOUR).components


def test_regions_have_topologies_of_their_own() -> None:
    tell(NOON, "tor/1", "north")
    tell(NOON, "tor/2", "south")
    assert list(topology_at("north", NOON).components) == ["tor/1"]
    assert topology_at("nowhere", NOON).components == {}


def test_what_is_above_a_component_is_found_at_any_remove() -> None:
    tell(NOON, "host/1", parents=["tor/1"], depends_on=["storage/1"])
    tell(NOON, "tor/1", parents=["row/1"])
    tell(NOON, "row/1", parents=["dc/1"], depends_on=["tor/1"])  # a circle is no trap
    assert topology_at("default", NOON).above("host/1") == ("tor/1", "storage/1", "row/1", "dc/1")
