import pytest

from ingest.log import types
from ingest.log.types import Body, EventType, UnknownEventTypeError


def _name_parts(body: Body) -> Body:
    first, last = body["name"].split(" ")
    return {"first": first, "last": last}


def _add_title(body: Body) -> Body:
    return {**body, "title": None}


GREETED = EventType("test.greeted", schema=3, upcasters={1: _name_parts, 2: _add_title})


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(types, "_types", {})
    types.register(GREETED)


def test_an_old_body_passes_through_every_upcaster_in_turn() -> None:
    body = types.upcast("test.greeted", 1, {"name": "Alice Liddell"})
    assert body == {"first": "Alice", "last": "Liddell", "title": None}


def test_a_body_of_the_newest_schema_is_left_alone() -> None:
    body: Body = {"first": "Bob", "last": "", "title": "Dr"}
    assert types.upcast("test.greeted", 3, body) == body


def test_a_type_that_nobody_registered_is_unknown() -> None:
    with pytest.raises(UnknownEventTypeError, match=r"test\.waved is not registered"):
        types.find("test.waved")


def test_a_schema_from_the_future_is_refused() -> None:
    with pytest.raises(UnknownEventTypeError, match="knows up to 3"):
        types.upcast("test.greeted", 4, {})


def test_registering_the_same_type_again_is_harmless() -> None:
    assert types.register(GREETED) is GREETED


def test_one_name_cannot_mean_two_types() -> None:
    with pytest.raises(ValueError, match="registered twice"):
        types.register(EventType("test.greeted"))


@pytest.mark.parametrize("name", ["greeted", "Test.greeted", "test.", "test greeted", ""])
def test_a_name_is_dotted_lower_case(name: str) -> None:
    with pytest.raises(ValueError, match="dotted lower case"):
        EventType(name)


def test_a_schema_without_an_upcaster_from_each_older_one_is_refused() -> None:
    with pytest.raises(ValueError, match="needs an upcaster"):
        EventType("test.greeted", schema=3, upcasters={2: _add_title})
