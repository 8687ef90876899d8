"""Validation of changes: the automata against the enumeration of all paths, each relation, and input that is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzers.rela import (
    InvalidSnapshotError,
    InvalidSpecificationError,
    Snapshot,
    ValidationError,
    check,
    read_snapshot,
)

LOCATIONS = "abc"
LONGEST = 4
EVERY = ["".join(path) for length in range(1, LONGEST + 1) for path in product(LOCATIONS, repeat=length)]
BEFORE = ("a b d", "a c d")


def snapshot(classes: Mapping[str, Iterable[str]], **labels: str) -> Snapshot:
    rows = [
        {"class": name, "paths": [path.split() for path in paths], "labels": labels}
        for name, paths in classes.items()
    ]
    return read_snapshot("x.json", json.dumps({"classes": rows, "locations": list("abcdef")}).encode())


def verdict(text: str, before: Iterable[str], after: Iterable[str], **labels: str) -> dict[str, Any]:
    return check(snapshot({"one": before}, **labels), snapshot({"one": after}, **labels), text)


def test_other_traffic_may_not_change_where_nothing_is_said_of_it() -> None:
    found = verdict("nochange", BEFORE, ("a b d", "a e d"))
    assert found["verdict"] == "violated"
    wrong = found["violations"][0]
    assert (wrong["witness"], wrong["taken_before"], wrong["taken_after"]) == (["a", "c", "d"], True, False)
    assert wrong["expected"] == "the path must stay"
    assert wrong["after"] == [["a", "b", "d"], ["a", "e", "d"]]


@pytest.mark.parametrize(
    ("text", "after", "witness"),
    [
        ("nochange", BEFORE, None),
        ("add(a e d)", (*BEFORE, "a e d"), None),
        ("add(a e d)", BEFORE, "a e d"),
        ("add(a e d)", ("a b d", "a e d"), "a c d"),
        ("remove(. c .)", ("a b d",), None),
        ("remove(. c .)", BEFORE, "a c d"),
        ("replace(a c d, a e d)", ("a b d", "a e d"), None),
        ("replace(a c d, a e d)", (*BEFORE, "a e d"), "a c d"),
        ("replace(a f d, a e d)", BEFORE, None),
        ("any(. (e|f) .) on . c .", ("a b d", "a f d"), None),
        ("any(. (e|f) .) on . c .", ("a b d",), "a c d"),
        ("any(. (e|f) .) on . c .", ("a b d", "a e d", "a d"), "a d"),
        ("any on . c .", ("a b d",), None),
        ("any(. e .) on . f .", (*BEFORE, "a e d"), "a e d"),
        ("drop", ("a drop",), None),
        ("drop", ("a b d",), "a b d"),
        ("any(.* drop) on .* c .*", ("a b d", "a c drop"), None),
        ("nochange on . b . else any", ("a b d", "f"), None),
        ("nochange on . b . else any", ("a c d",), "a b d"),
    ],
)
def test_a_relation_holds_or_names_the_shortest_path_that_breaks_it(
    text: str, after: tuple[str, ...], witness: str | None
) -> None:
    found = verdict(text, BEFORE, after)
    assert found["verdict"] == ("holds" if witness is None else "violated")
    assert [" ".join(one["witness"]) for one in found["violations"]] == ([] if witness is None else [witness])


def test_the_first_selector_that_matches_decides() -> None:
    text = "zone south = b*\nfor dst=10.0.0.0/8: remove(a south d)\nfor *: nochange"
    assert verdict(text, BEFORE, ("a c d",), dst="10.2.0.0/16")["verdict"] == "holds"
    assert verdict(text, BEFORE, ("a c d",), dst="192.0.2.0/24")["violations"][0]["selector"] == {}


def test_a_rule_that_no_class_has_a_path_for_is_noted() -> None:
    assert verdict("replace(a f d, a e d)", BEFORE, BEFORE)["notes"] == [
        "line 1: no class has a path that `replace(a f d, a e d)` speaks of"
    ]


def test_classes_with_the_same_forwarding_are_one_violation() -> None:
    classes = {f"flow-{n}": BEFORE for n in range(30)}
    found = check(snapshot(classes), snapshot(dict.fromkeys(classes, ("a b d",))), "nochange")
    assert (found["groups"], found["classes_violated"], found["violations_total"]) == (1, 30, 1)
    assert found["violations"][0]["classes_total"] == 30


# Against the enumeration of all paths up to a length
# ----------------------------------------------------------------------------------------------------------
def _expressions(depth: int) -> st.SearchStrategy[str]:
    atom = st.sampled_from([*LOCATIONS, "."])
    if depth == 0:
        return atom
    inner = _expressions(depth - 1)
    return st.one_of(
        atom,
        st.tuples(inner, inner).map(" ".join),
        st.tuples(inner, inner).map(lambda both: f"({both[0]} | {both[1]})"),
        st.tuples(inner, st.sampled_from("*+?")).map(lambda both: f"({both[0]}){both[1]}"),
    )


EXPRESSIONS = _expressions(2)
NAMED = st.lists(st.sampled_from(EVERY), min_size=1, max_size=2).map(
    lambda paths: " | ".join(" ".join(path) for path in paths)
)
Described = tuple[str, tuple[str, ...], str | None]
"""Relation, its path sets and its zone."""
RULES: st.SearchStrategy[Described] = st.one_of(
    st.tuples(st.sampled_from(["nochange", "any", "drop"]), st.just(()), st.none() | EXPRESSIONS),
    st.tuples(st.just("add"), st.tuples(NAMED), st.none() | EXPRESSIONS),
    st.tuples(st.just("remove"), st.tuples(EXPRESSIONS), st.none() | EXPRESSIONS),
    st.tuples(st.just("replace"), st.tuples(EXPRESSIONS, NAMED), st.none() | EXPRESSIONS),
    st.tuples(st.just("any"), st.tuples(EXPRESSIONS), EXPRESSIONS),
)
PATHS = st.frozensets(st.sampled_from(EVERY), max_size=4)


def _inside(expression: str) -> set[str]:
    pattern = re.compile(expression.replace(" ", ""))
    return {path for path in EVERY if pattern.fullmatch(path)}


def _written(rule: Described) -> str:
    relation, sets, zone = rule
    return relation + (f"({', '.join(sets)})" if sets else "") + ("" if zone is None else f" on {zone}")


def _keeps(rules: list[Described], before: frozenset[str], after: frozenset[str]) -> bool:
    """The rules by sets of paths, written from their description in the documentation."""
    left = set(EVERY)
    for relation, written, zone in [*rules, ("nochange", (), None)]:
        sets = [_inside(one) for one in written]
        if relation == "drop":
            sets = [set()]
        everything = not written and relation in ("any", "drop", "nochange")
        where = _inside(zone) if zone else set(EVERY) if everything else set()
        scope = left & where.union(*sets)
        left -= scope
        old, new = before & scope, after & scope
        if relation in ("any", "drop"):
            moved = new <= sets[0] and bool(new) if sets and old & where else old == new
            fine = moved if sets else True
        elif relation == "nochange":
            fine = old == new
        elif relation == "remove":
            fine = new == old - sets[0]
        elif relation == "add":
            fine = new == old | (sets[0] & scope if (old & where if zone else before) else set())
        else:
            fine = new == (old - sets[0] | (sets[1] & scope) if old & sets[0] else old)
        if not fine:
            return False
    return True


@given(st.lists(RULES, min_size=1, max_size=3), PATHS, PATHS, st.booleans())
def test_the_verdict_is_that_of_enumerating_all_paths(
    rules: list[Described], before: frozenset[str], after: frozenset[str], alike: bool
) -> None:
    after = before | frozenset(sorted(after)[:1]) if alike else after
    old, new = ({"one": [" ".join(path) for path in sorted(paths)]} for paths in (before, after))
    found = check(snapshot(old), snapshot(new), " else ".join(map(_written, rules)))
    assert (found["verdict"] == "holds") == _keeps(rules, before, after)
    for wrong in found["violations"]:
        path = "".join(wrong["witness"])
        assert (path in before, path in after) == (wrong["taken_before"], wrong["taken_after"])


def graph(edges: list[str], ends: str = "d") -> Snapshot:
    made = {"starts": ["a"], "edges": [list(edge) for edge in edges], "ends": list(ends)}
    return read_snapshot("g.json", json.dumps({"classes": [{"class": "one", "graph": made}]}).encode())


def test_graphs_with_loops_are_compared_exactly() -> None:
    looping = graph(["ab", "bc", "cb", "cd"])
    assert check(looping, looping, "nochange")["verdict"] == "holds"
    found = check(graph(["ab", "bc", "cd"]), looping, "nochange")
    assert found["violations"][0]["witness"] == list("abcbcd")


@pytest.mark.parametrize(("edges", "end"), [(["ab", "bc", "cb", "ad"], "loop"), (["ab", "ad"], "drop")])
def test_a_part_of_a_graph_without_an_end_is_a_loop_or_a_drop(edges: list[str], end: str) -> None:
    found = check(graph(["ad"]), graph(edges), "nochange")
    assert found["violations"][0]["witness"] == ["a", "b", end]


def test_paths_and_graphs_and_traces_of_batfish_say_the_same() -> None:
    traces = [
        {"disposition": "ACCEPTED", "hops": [{"node": one} for one in "abd"]},
        {"disposition": "NO_ROUTE", "hops": [{"node": {"name": one}} for one in "ac"]},
    ]
    raw = json.dumps({"classes": [{"class": "one", "traces": traces}]}).encode()
    assert check(graph(["ab", "bd", "ac"]), read_snapshot("t", raw), "nochange")["verdict"] == "holds"
    table = read_snapshot("t.csv", b"class,path\none,a b d\none,a c drop\n")
    assert check(table, read_snapshot("t", raw), "nochange")["verdict"] == "holds"


# Input that is wrong
# ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no rule"),
        ("nochange on a (b", "line 1: expected `)`, found the end"),
        ("nochange on a b)", "found ')'"),
        ("nochange on a**", "not two"),
        ("nochange on spine-9", "is called 'spine-9'"),
        ("path old = a b\nnochange on odl", "did you mean old?"),
        ("zone z = x*\nnochange on z", "line 1: no location"),
        ("zone z = a\nzone z = b\nnochange", "line 2: z is defined twice"),
        ("zone a = b\nnochange", "a is the name of a location and of a definition"),
        ("path p = p a\nnochange on p", "defined by itself"),
        ("add(a .* d)", "use `any(...) on ...`"),
        ("any(a b d)", "any(PATHS) on PATHS"),
        ("replace(a b d)", "expected `,`"),
        ("for dst: nochange", "no NAME=VALUE"),
        ("forbid a", "expected one of nochange"),
        ("nochange on a $ b", "cannot read '$'"),
        ("nochange on " + "(" * 60 + "a" + ")" * 60, "more than 50 parentheses"),
        ("nochange on .* a" + " ." * 30, "more than 500 states"),
        ("nochange on " + "a " * 6000, "more than 5,000 parts"),
        ("".join(f"path p{n} = p{n + 1} a\n" for n in range(70)) + "nochange on p0", "more than 50 def"),
        ("nochange else " * 100 + "any", "more than 100 rules"),
        ("#" * 70_000, "longer than"),
    ],
)  # fmt: skip
def test_a_specification_that_is_wrong_names_line_and_reason(text: str, reason: str) -> None:
    with pytest.raises(InvalidSpecificationError, match=re.escape(reason)):
        verdict(text, BEFORE, BEFORE)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "neither JSON nor CSV"),
        (b"{", "x: Input data was truncated"),
        (b'{"classes": [{"class": "one"}]}', "needs one of"),
        (b'{"classes": [{"class": "one", "paths": [["a", 3]]}]}', "$.classes[0].paths[0][1]"),
        (b'{"classes": [{"class": "one", "paths": [["a b"]]}]}', "$.classes[0].paths[0][0]"),
        (b'{"classes": [{"class": "one", "paths": [[]]}]}', "$.classes[0].paths[0]"),
        (b'{"classes": [{"class": "one", "paths": []}, {"class": "one", "paths": []}]}', "is there twice"),
        (b'{"format": "other/2", "classes": []}', "is not dossier.forwarding/1"),
        (b"class,path,dst\none,a b,x\none,a c,y\n", "line 3: class one has other labels"),
        (b"class,path\none,a b,z\n", "line 2: 3 columns instead of 2"),
        (b'{"classes": [{"class": "o", "graph": {"starts": ["loop"], "edges": [], "ends": []}}]}', "loop cannot be"),
        (b"\xff\xfe", "x: "),
    ],
)  # fmt: skip
def test_a_snapshot_that_is_wrong_names_place_and_reason(raw: bytes, reason: str) -> None:
    with pytest.raises(InvalidSnapshotError, match=re.escape(reason)):
        read_snapshot("x", raw)


def test_a_product_that_is_too_large_is_refused() -> None:
    one = snapshot({"one": BEFORE})
    with pytest.raises(ValidationError, match="need more than 3 steps"):
        check(one, one, "nochange", 3)
    tangle = graph([a + b for a in "abcef" for b in "abcdef"])
    many = " else ".join(f"nochange on .* a {'. ' * n}b .*" for n in range(5))
    with pytest.raises(ValidationError, match="check fewer classes at a time"):
        check(tangle, tangle, many, 20_000)
