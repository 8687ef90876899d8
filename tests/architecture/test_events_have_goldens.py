"""Old events load for ever: every schema that a registered type ever had is kept as a file and still read.

`tests/golden/events/<type>.v<schema>.json` is a body as it was stored in that schema, with every key it may
have. Recipe for a new schema: leave the old file as it is, add one beside it, write the upcaster.
"""

from __future__ import annotations

import json

import pytest

from ingest.log import types
from ingest.log.types import Body
from tests.places import EVENTS

TYPES = [event_type for event_type in types.registered() if not event_type.name.startswith("test.")]
SCHEMAS = [(event_type.name, schema) for event_type in TYPES for schema in range(1, event_type.schema + 1)]


def golden(name: str, schema: int) -> Body:
    body: Body = json.loads((EVENTS / f"{name}.v{schema}.json").read_text())
    return body


@pytest.mark.parametrize(("name", "schema"), SCHEMAS)
def test_every_schema_of_every_event_type_has_a_golden(name: str, schema: int) -> None:
    assert (EVENTS / f"{name}.v{schema}.json").exists(), f"add tests/golden/events/{name}.v{schema}.json"


def test_every_golden_is_of_a_registered_type() -> None:
    """A type that disappears from the registry would leave stored events that nobody can read."""
    assert {path.name for path in EVENTS.iterdir()} <= {f"{name}.v{schema}.json" for name, schema in SCHEMAS}


@pytest.mark.parametrize(("name", "schema"), SCHEMAS)
def test_an_old_body_is_read_with_the_keys_of_the_newest_schema(name: str, schema: int) -> None:
    newest = golden(name, types.find(name).schema)
    assert set(types.upcast(name, schema, golden(name, schema))) == set(newest)


@pytest.mark.parametrize(("name", "schema"), SCHEMAS)
def test_an_upcaster_leaves_the_stored_body_alone(name: str, schema: int) -> None:
    body = golden(name, schema)
    types.upcast(name, schema, body)
    assert body == golden(name, schema)


@pytest.mark.parametrize(("name", "schema"), SCHEMAS)
def test_a_golden_could_have_been_stored(name: str, schema: int) -> None:
    assert json.loads(types.record_body(golden(name, schema))[0]) == golden(name, schema)
