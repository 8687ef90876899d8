"""The analyzers at a glance: what parts of `make bench` tell, as tables."""

from tests.benchmarks.glance import counts, gather, lines, other, told
from tests.benchmarks.scoring import Tally, by_bins


def rows_of(*told_of: dict[str, object]) -> list[str]:
    return [line for line in lines({"part": [{"name": "x", **one} for one in told_of]}) if line]


def test_a_fault_stands_with_its_intervals_and_with_simpler_methods() -> None:
    tally = Tally(windows=10, found=8, false=0, missed=2)
    rival = Tally(windows=10, found=5, false=5, missed=5)
    row = rows_of(told("voting", "1 bad link", **counts(tally), beside={"majority": other(rival)}))[-1]
    assert row.startswith("| `voting`, 1 bad link | 1 [.676, 1] | .800 [.490, .943] | .889 [.568, .971] |")
    assert "| 0 of 10 [0, .278] | majority .500 / .500 |" in row


def test_what_is_told_twice_is_added() -> None:
    found = gather(
        {"part": [told("deepview", healthy=[1, 10]), told("deepview", healthy=[0, 30]), {"name": "x"}]}
    )
    assert found == {("deepview", ""): {"healthy": [1, 40]}}


def test_a_cell_without_a_figure_says_why() -> None:
    (_, _, row) = rows_of(told("colocation", seconds="0.1"))
    assert row.split(" | ")[1:] == ["– (accuses nobody)"] * 4 + [
        "0.1",
        "– (not measured)",
        "– (not measured) |",
    ]


def test_parts_that_failed_or_tell_nothing_give_no_table() -> None:
    assert list(lines({"append": [{"name": "x", "value": 1}], "voting": None})) == []


def test_cases_of_a_second_generator_are_added_and_those_that_break_stand_apart() -> None:
    well, badly = Tally(windows=10, found=10), Tally(windows=10, found=2, missed=8)
    rows = rows_of(
        told("voting", "second generator: bad1", **counts(well), beside={"007": other(well)}),
        told("voting", "second generator: noisy", **counts(badly), beside={"007": other(well)}),
    )
    assert [row.split(" | ")[:3] for row in rows[2:]] == [
        ["| `voting`, all 2 cases", "1 [.758, 1]", ".600 [.387, .781]"],
        ["| `voting`, noisy", "1 [.342, 1]", ".200 [.057, .510]"],
    ]
    assert rows[2].endswith("| 007 1 / 1 |")


def test_what_was_stated_on_both_generators_is_held_to_what_was_true() -> None:
    simulated, second = [(0.99, True)] * 40, [(0.99, True)] * 40 + [(0.99, False)] * 20 + [(0.4, True)]
    rows = rows_of(
        told("voting", stated=by_bins(simulated)),
        told("voting", stated=by_bins(second)),
    )
    cells = rows[-1].strip("| ").split(" | ")
    assert cells[0] == "`voting`"
    assert cells[1].startswith("-.60 ")
    assert cells[-1].startswith("**+.19 [")
    assert cells[-1].endswith(" of 100**")


def test_under_stress_more_may_be_stated_than_true() -> None:
    bins = by_bins([(0.96, True)] * 89 + [(0.96, False)] * 11)
    (usual, stressed) = rows_of(told("voting", stated=bins, stated_stress=bins))[-2:]
    assert "**" in usual
    assert "**" not in stressed


def test_both_generators_stand_side_by_side() -> None:
    well, badly = Tally(windows=10, found=10), Tally(windows=10, found=2, missed=8)
    rows = rows_of(
        told("voting", "1 bad link", **counts(well)),
        told("voting", "6 bad links", **counts(well)),
        told("voting", "second generator: noisy", **counts(badly), beside={"007": other(well)}),
        told("voting", stated=by_bins([(0.99, True)] * 60), stated_stress=by_bins([(0.4, True)])),
    )
    assert rows[2] == (
        "| `voting` | 1 [.839, 1] | 1 [.839, 1] | 1 [.342, 1] | .200 [.057, .510] | 007 1 / 1 | "
        "-.02 [-.02, +.04] of 61 |"
    )


def test_an_analyzer_of_one_generator_is_not_side_by_side() -> None:
    assert len(rows_of(told("voting", "1 bad link", **counts(Tally(windows=1, found=1))))) == 3
