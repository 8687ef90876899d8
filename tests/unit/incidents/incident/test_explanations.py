"""Whether a cause explains an alert elsewhere, how far away, and in which words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.incident.alerts import MOST_HOPS, Links, explain, explains
from tests.unit.incidents.incident.cases import after, blamed, finding, opened

T12, H1, VM = "tor/t12", "host/h1", "vm/v1"


def test_a_component_in_the_cause_is_explained_by_it() -> None:
    found = explain(H1, {T12}, {H1: Links(parents=(T12,))})
    assert found is not None
    assert (found.cause, found.hops, found.how) == (T12, 1, "host/h1 is contained in tor/t12")


def test_the_sentence_names_every_step() -> None:
    links = {VM: Links(parents=(H1,)), H1: Links(depends_on=("power/p1",))}
    found = explain(VM, {"power/p1"}, links)
    assert found is not None
    assert found.how == "vm/v1 is contained in host/h1, which depends on power/p1"


def test_a_path_that_crosses_the_cause_is_told_as_such() -> None:
    found = explain(VM, {"link/a~b"}, {VM: Links(path=("link/a~b", "tor/a"))})
    assert found is not None
    assert found.how == "vm/v1 has a path that crosses link/a~b"


def test_the_cause_itself_is_no_step_away() -> None:
    found = explain(T12, {T12}, {})
    assert found is not None
    assert found.hops == 0


def test_what_contains_the_cause_is_not_explained_by_it() -> None:
    assert explain("row/r1", {T12}, {T12: Links(parents=("row/r1",))}) is None


def test_the_nearest_cause_wins() -> None:
    links = {VM: Links(parents=(H1,)), H1: Links(parents=(T12,))}
    found = explain(VM, {T12, H1}, links)
    assert found is not None
    assert found.cause == H1


def test_of_equally_near_causes_the_one_that_contains_it_wins() -> None:
    found = explain(H1, {"a/needed", T12}, {H1: Links(parents=(T12,), depends_on=("a/needed",))})
    assert found is not None
    assert found.cause == T12


def test_a_cycle_ends() -> None:
    assert explain("a/1", {"c/1"}, {"a/1": Links(("b/1",)), "b/1": Links(("a/1",))}) is None


def chain(length: int) -> dict[str, Links]:
    return {f"x/{n}": Links(parents=(f"x/{n + 1}",)) for n in range(length)}


def test_a_cause_further_away_than_the_bound_explains_nothing() -> None:
    assert explain("x/0", {f"x/{MOST_HOPS}"}, chain(9)) is not None
    assert explain("x/0", {f"x/{MOST_HOPS + 1}"}, chain(9)) is None


NAMES = st.sampled_from([f"n/{n}" for n in range(6)])
EDGES = st.lists(NAMES, max_size=3).map(tuple)
GRAPHS = st.dictionaries(NAMES, st.builds(Links, EDGES, EDGES, EDGES))


@given(NAMES, st.sets(NAMES), GRAPHS)
def test_it_agrees_with_distances_found_by_brute_force(
    start: str, causes: set[str], links: dict[str, Links]
) -> None:
    reached, within = {start}, 0 if start in causes else None
    for hops in range(1, MOST_HOPS + 1):
        reached |= {up for name in reached for _, up in links.get(name, Links()).each()}
        if within is None and reached & causes:
            within = hops
    found = explain(start, causes, links)
    assert (None if found is None else found.hops) == within


@given(NAMES, st.sets(NAMES, min_size=1), GRAPHS)
def test_the_order_in_which_links_are_told_is_irrelevant(
    start: str, causes: set[str], links: dict[str, Links]
) -> None:
    turned = {
        name: Links(one.parents[::-1], one.depends_on[::-1], one.path[::-1])
        for name, one in reversed(links.items())
    }
    assert explain(start, causes, links) == explain(start, sorted(causes, reverse=True), turned)


def test_a_ticket_explains_while_an_analyzer_blames_its_cause() -> None:
    assert explains(after(blamed(finding())))


def test_a_ticket_that_nobody_blames_explains_nothing() -> None:
    assert not explains(after(opened(component=T12)))


def test_a_forecast_explains_nothing_yet() -> None:
    assert not explains(after(blamed(finding(forecast=True))))
