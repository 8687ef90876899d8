"""Events once recorded are read for ever: the goldens fold, and read as sentences."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest

from incidents.domain.incident.evolve import EVENT_TYPES, fold
from incidents.domain.incident.finding import finding_from
from incidents.domain.incident.state import Incident, make
from incidents.domain.incident.timeline import actor_name, sentence
from ingest.log import types
from tests.places import EVENTS
from tests.unit.incidents.incident.cases import NOON, Recorded

SCHEMAS = [(name, schema) for name in EVENT_TYPES for schema in range(1, types.find(name).schema + 1)]


def golden(type_: str, schema: int = 1) -> Recorded:
    """As the log gives it: a body stored in an old schema, with the keys of the newest."""
    body: dict[str, Any] = json.loads((EVENTS / f"{type_}.v{schema}.json").read_text())
    return Recorded(type_, types.upcast(type_, schema, body), "user:alice", NOON)


@pytest.mark.parametrize(("type_", "schema"), SCHEMAS)
def test_every_recorded_event_folds_for_ever(type_: str, schema: int) -> None:
    later = [golden(type_, schema)] if type_ != "incident.opened" else []
    state = fold([golden("incident.opened"), *later])
    assert state is not None
    assert state.number == 1


@pytest.mark.parametrize(("type_", "schema"), SCHEMAS)
def test_every_event_reads_as_a_sentence(type_: str, schema: int) -> None:
    assert len(sentence(golden(type_, schema))) > 5


def test_a_finding_without_indicator_and_path_is_read_and_one_with_them_keeps_them() -> None:
    body = json.loads((EVENTS / "finding.reported.v1.json").read_text())
    traced = {"indicator": "timeouts", "path": ["storage_cluster/s7", "vm/1"]}
    told = finding_from({**body, "suspect": body["suspect"] | traced})
    assert (finding_from(body).indicator, finding_from(body).path) == ("", ())
    assert {name: told.reference()[name] for name in traced} == traced


def test_the_opening_of_a_blamed_component_explains_itself() -> None:
    assert sentence(golden("incident.opened")) == (
        "deepview suspected storage_cluster/s7; the analyzer is sure;"
        " routed to Storage because rule 6 matched `storage_cluster/*`"
    )


def test_a_hand_over_names_both_teams_and_the_reason() -> None:
    said = sentence(golden("incident.reassigned"))
    assert said == "alice handed the incident over from storage to network: the ToR drops packets"


def test_an_opened_incident_is_what_its_constructor_makes_of_the_same_fields() -> None:
    state = fold([golden("incident.opened")])
    assert state is not None
    assert state == Incident(**vars(state))
    assert list(vars(state)) == [one.name for one in fields(Incident)]


def test_a_state_made_with_a_field_that_it_has_not_is_an_error() -> None:
    with pytest.raises(TypeError, match="Incident has no field colour"):
        make(Incident, colour="red")  # type: ignore[call-arg]


def test_an_event_before_the_opening_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"first event is incident\.opened"):
        fold([golden("incident.acknowledged")])


@pytest.mark.parametrize(
    ("actor", "name"), [("user:alice", "alice"), ("key:ci", "key ci"), ("system:incidents", "Dossier")]
)
def test_an_actor_is_named_as_people_would(actor: str, name: str) -> None:
    assert actor_name(actor) == name
