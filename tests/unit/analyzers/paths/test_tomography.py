"""Boolean tomography: each method against a slow, obvious one, and what it does by construction."""

from collections.abc import Sequence

import numpy as np
import pytest

from analyzers.builtin.paths import METHODS, Incidence, bad_paths, incidence, names_of, simpler_methods, solve
from analyzers.simulators.tables import paths_of

Path = tuple[frozenset[str], int, int]


def seen_of(paths: Sequence[Path]) -> Incidence:
    table = paths_of([sorted(members) for members, _, _ in paths])
    return incidence(table, np.array([path[1] for path in paths]), np.array([path[2] for path in paths]))


def answers(method: str, paths: Sequence[Path], threshold: float = 0.0, least: int = 1) -> list[set[str]]:
    seen = seen_of(paths)
    return [set(names_of(seen, one)) for one in solve(method, bad_paths(seen, threshold), least=least)]


def grid(bad: str = "", size: int = 4, failures: int = 5) -> list[Path]:
    """Components `left/i` and `right/j` cross; the paths of one fail."""
    pairs = [(f"left/{i}", f"right/{j}") for i in range(size) for j in range(size)]
    return [(frozenset(pair), 10, failures if bad in pair else 0) for pair in pairs]


def random_paths(seed: int) -> list[Path]:
    rng = np.random.default_rng(seed)
    paths = {}
    for _ in range(12):
        members = frozenset(f"link/{i}" for i in rng.choice(7, rng.integers(1, 4), replace=False))
        paths[members] = (members, 10, int(rng.integers(0, 3)) if rng.random() < 0.5 else 0)
    return list(paths.values())


def reference(method: str, paths: Sequence[Path], hit_ratio: float = 0.6) -> list[tuple[str, int, int]]:
    """Components blamed, with their bad paths and failures, found by plain loops over names."""
    number, marks = seen_of(paths).number(), seen_of(paths).mark
    names = sorted({name for members, _, _ in paths for name in members})
    bad = {members: failures for members, attempts, failures in paths if failures > 0}

    def hit(name: str) -> float:
        mine = [members for members, _, _ in paths if name in members]
        return sum(members in bad for members in mine) / len(mine)

    def cover(allowed: list[str]) -> list[tuple[str, int, int]]:
        left, found = dict(bad), list[tuple[str, int, int]]()
        while left and allowed:
            covers = {name: [one for one in left if name in one] for name in allowed}
            worth = {
                name: sum(left[one] for one in mine) if method == "pll" else len(mine)
                for name, mine in covers.items()
            }
            lead = max(allowed, key=lambda name: (worth[name], hit(name), -int(marks[number[name]])))
            if not worth[lead]:
                break
            found.append((lead, len(covers[lead]), sum(left[one] for one in covers[lead])))
            left = {one: lost for one, lost in left.items() if lead not in one}
        return found

    if method == "tomo":
        return cover([name for name in names if hit(name) == 1])
    if method == "coverage":
        return cover(names)
    if method == "pll":
        return cover([name for name in names if hit(name) > hit_ratio])
    best, cheapest = list[tuple[str, int, int]](), len(bad)
    for ratio in np.linspace(1, hit_ratio, 9):
        found = cover([name for name in names if hit(name) >= ratio - 1e-12])
        cost = len(found) + len(bad) - sum(covered for _, covered, _ in found)
        if cost < cheapest:
            best, cheapest = found, cost
    return best


@pytest.mark.simulated
@pytest.mark.parametrize("method", METHODS)
def test_each_method_agrees_with_plain_loops(method: str) -> None:
    for seed in range(25):
        seen = seen_of(random_paths(seed))
        found = [
            (seen.names[one.component], one.paths, int(one.failures))
            for one in solve(method, bad_paths(seen, 0.0), least=1)
        ]
        assert found == reference(method, random_paths(seed))


@pytest.mark.parametrize("method", METHODS)
def test_a_component_that_fails_all_its_paths_is_named(method: str) -> None:
    assert answers(method, grid("left/2")) == [{"left/2"}]


@pytest.mark.parametrize("method", METHODS)
def test_nobody_is_named_where_nothing_fails(method: str) -> None:
    assert answers(method, grid("nobody")) == []


def test_one_good_path_excuses_whoever_lies_on_it_from_tomography() -> None:
    paths = [
        (members, 10, 0 if members == {"left/2", "right/0"} else lost) for members, _, lost in grid("left/2")
    ]
    assert {"left/2"} not in answers("tomo", paths)


def test_pll_bears_a_good_path_among_many_bad_ones() -> None:
    paths = [
        (members, 10, 0 if members == {"left/2", "right/0"} else lost) for members, _, lost in grid("left/2")
    ]
    assert answers("pll", paths) == [{"left/2"}]


def test_coverage_accuses_whoever_chance_brought_together() -> None:
    paths = [(members, 10, int("left/1" in members and "right/0" not in members)) for members, _, _ in grid()]
    assert answers("coverage", paths) == [{"left/1"}]


def test_components_on_the_same_paths_are_one_entry() -> None:
    paths = [(members | {"twin/" + min(members)[-1]}, 10, lost) for members, _, lost in grid("left/2")]
    assert answers("pll", paths) == [{"left/2", "twin/2"}]


def test_failures_at_or_below_the_threshold_make_no_bad_path() -> None:
    assert answers("coverage", grid("left/2", failures=1), threshold=0.1) == []


def test_too_few_bad_paths_accuse_no_one() -> None:
    assert answers("coverage", grid("left/2"), least=5) == []


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_paths_does_not_matter(method: str) -> None:
    for seed in range(10):
        paths = random_paths(seed)
        assert answers(method, paths) == answers(method, paths[::-1])


@pytest.mark.parametrize("method", METHODS)
def test_other_names_in_another_order_give_the_same_answer(method: str) -> None:
    for seed in range(10):
        paths = random_paths(seed)
        other = [
            (frozenset(f"link/{9 - int(name[5:])}" for name in members), attempts, lost)
            for members, attempts, lost in paths
        ]
        back = [{f"link/{9 - int(name[5:])}" for name in one} for one in answers(method, other)]
        assert sorted(map(sorted, back)) == sorted(map(sorted, answers(method, paths)))


def test_paths_that_were_never_tried_are_left_out() -> None:
    assert seen_of([(frozenset({"link/1"}), 0, 0), (frozenset({"link/2"}), 5, 1)]).names == ("link/2",)


def test_an_empty_table_has_no_components() -> None:
    assert [solve(method, bad_paths(seen_of([]), 0.0)) for method in METHODS] == [()] * 4


def test_an_unknown_method_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="no method 'guess'; there are tomo, score, coverage, pll"):
        solve("guess", bad_paths(seen_of([]), 0.0))


def test_the_opinions_say_what_each_method_adds_and_misses() -> None:
    opinions = simpler_methods(seen_of(grid("left/2")), 0.0, ["left/2", "right/1"])
    assert {row[1:] for row in opinions.rows} == {("left/2", "some of the blamed")}
