"""A configuration text is read as people mean it, and what is wrong with it is told with its line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.config.yaml import InvalidConfigurationError, read, write

KINDS = ("teams", "routes")
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**15), 10**15)
    | st.text(st.characters(codec="utf-8"), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


def fault(text: str) -> str:
    with pytest.raises(InvalidConfigurationError) as told:
        read(text, KINDS)
    return str(told.value)


@given(
    st.lists(
        st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=8), VALUES, max_size=4), max_size=3
    )
)
def test_what_is_written_is_read_again(items: list[dict[str, object]]) -> None:
    assert [one.values for one in read(write({"teams": items}), KINDS).items["teams"]] == items


@pytest.mark.parametrize(
    ("plain", "value"),
    [
        ("no", "no"),
        ("12:30", "12:30"),
        ("2026-01-02", "2026-01-02"),
        ("0x1f", "0x1f"),
        ("01", "01"),
        ("1e3", "1e3"),
        ("true", True),
        ("-3", -3),
        ("0.5", 0.5),
        ("~", None),
        ("", None),
        ("null", None),
    ],
)
def test_a_plain_scalar_is_what_json_would_have_or_a_text(plain: str, value: object) -> None:
    assert read(f"teams:\n- slug: {plain}\n", KINDS).items["teams"][0].values == {"slug": value}


def test_a_fault_in_a_value_names_its_line_and_the_way_to_it() -> None:
    document = read("version: 1\nteams:\n- slug: a\n- slug: b\n  name: B\n", KINDS)
    assert str(document.fault(("teams", 1, "name"), "is odd")) == "line 5: teams[2].name: is odd"


def test_a_fault_in_what_is_missing_names_the_line_of_what_it_is_missing_from() -> None:
    document = read("teams:\n- slug: a\n", KINDS)
    assert str(document.fault(("teams", 0, "name"), "is needed")) == "line 2: teams[1].name: is needed"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("teams: [", "line 1: is not valid YAML"),
        ("teams:\n- slug: a\n  slug: b\n", "line 3: is not valid YAML: `slug` is a duplicate key"),
        ("teams:\n- &a {slug: a}\n- *a\n", "line 3: is not valid YAML: aliases"),
        ("teams:\n- slug: !!python/object:os.system a\n", "line 2: is not valid YAML: the tag"),
        ("lamps: []\n", "line 1: lamps: is not a section; use teams, routes"),
        ("version: 2\n", "line 1: version: must be 1"),
        ("teams: all\n", "line 1: teams: must be a list"),
        ("teams:\n- storage\n", "line 2: teams[1]: must be a mapping"),
        ("- teams\n", "line 1: must be a mapping"),
        ("a: b\n---\nc: d\n", "is not valid YAML"),
        ("teams: " + "[" * 5_000, "is not valid YAML"),
        ("\0", "is not valid YAML"),
    ],
)
def test_a_text_that_is_wrong_is_refused_with_the_line(text: str, told: str) -> None:
    assert told in fault(text)


def test_a_text_that_is_too_large_is_refused() -> None:
    assert "larger than" in fault("#" * (5 * 2**20 + 1))


def test_all_that_is_wrong_is_told_at_once() -> None:
    assert len(fault("teams: 1\nlamps: 2\nversion: 3\n").splitlines()) == 3


def test_an_empty_text_configures_nothing() -> None:
    assert read("", KINDS).items == {}
