"""Flow tables: how pairs are replayed, and which rules are wrong."""

from collections.abc import Mapping

import pytest

from analyzers.builtin.skeletonhunter.observed import Endpoint
from analyzers.builtin.skeletonhunter.tables import FlowTables, broken

A, B = "endpoint/a", "endpoint/b"
ENDPOINTS = {
    name: Endpoint(name, "j", f"host/h{name[-1]}", f"nic/h{name[-1]}-0", 0, "", -60.0) for name in (A, B)
}
PAIR = (A, B, "overlay")
WELL = {
    "vswitch/ha": {"vport/b": "vswitch/hb"},
    "vswitch/hb": {"vport/b": "vport/b", "vport/a": "vswitch/ha"},
}


def tables(
    software: Mapping[str, Mapping[str, str]], offloaded: Mapping[str, Mapping[str, str]] | None = None
) -> FlowTables:
    return FlowTables(
        {element: dict(rules) for element, rules in software.items()},
        {element: dict(rules) for element, rules in (offloaded or {}).items()},
        {"b": "vport/b", "a": "vport/a"},
    )


def test_a_pair_with_all_rules_reaches_its_destination() -> None:
    assert tables(WELL).replay(PAIR, ENDPOINTS).path == ("vswitch/ha", "vswitch/hb", "vport/b")


@pytest.mark.parametrize(
    ("software", "state", "element"),
    [
        ({**WELL, "vswitch/ha": {"vport/b": ""}}, "missing", "vswitch/ha"),
        ({**WELL, "vswitch/hb": {"vport/a": "vswitch/ha"}}, "missing", "vswitch/hb"),
        ({**WELL, "vswitch/hb": {"vport/b": "vswitch/ha"}}, "loop", "vswitch/hb"),
        ({**WELL, "vswitch/ha": {"vport/b": "vswitch/ha"}}, "loop", "vswitch/ha"),
        ({"vswitch/ha": {"vport/b": "vswitch/hc"}}, "unknown", "vswitch/hc"),
    ],
)
def test_a_replay_ends_where_the_rule_is_wrong(
    software: Mapping[str, Mapping[str, str]], state: str, element: str
) -> None:
    found = tables(software).replay(PAIR, ENDPOINTS)
    assert (found.state, found.element) == (state, element)


def test_an_absent_rule_accuses_whoever_sent_there_too() -> None:
    wrong = tables({**WELL, "vswitch/ha": {"vport/b": "vswitch/hc"}, "vswitch/hc": {"vport/a": "vswitch/ha"}})
    (found,) = broken(wrong, [PAIR], ENDPOINTS, [0])
    assert (found.element, found.others) == ("vswitch/hc", ("vswitch/ha",))


def test_absent_rules_accuse_nobody_where_pairs_that_answer_lack_theirs() -> None:
    gone = tables({"vswitch/ha": {}, "vswitch/hb": {}})
    assert broken(gone, [PAIR, (B, A, "overlay")], ENDPOINTS, [0]) == []


def test_an_offloaded_rule_that_is_not_there_is_a_mismatch() -> None:
    stale = tables(WELL, {"vswitch/ha": {"vport/c": "vswitch/hc"}})
    assert stale.mismatch(PAIR, ENDPOINTS) == "vswitch/ha"


def test_an_offloaded_rule_with_another_next_hop_is_a_mismatch() -> None:
    assert tables(WELL, {"vswitch/ha": {"vport/b": "vswitch/hc"}}).mismatch(PAIR, ENDPOINTS) == "vswitch/ha"


def test_equal_copies_are_no_mismatch() -> None:
    assert tables(WELL, {"vswitch/ha": {"vport/b": "vswitch/hb"}}).mismatch(PAIR, ENDPOINTS) is None
