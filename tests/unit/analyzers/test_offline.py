"""Files cut into windows: alignment, history, the choice of an input, refusals."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzers import offline
from analyzers.contract import (
    Analyzer,
    AsOf,
    Count,
    CountDistinct,
    Input,
    Params,
    Paths,
    Reduction,
    Sum,
    Verdict,
    Window,
    quiet,
)
from analyzers.offline import AnalysisInputError
from analyzers.runner import judge, verdict_json
from ingest.telemetry.decode.body import decode_ndjson
from ingest.telemetry.decode.columns import Bounds, Rows
from ingest.telemetry.kinds import KINDS

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)

TRIED = Reduction(
    "tried", "path_outcome", ("components",), {"attempts": Sum("attempts"), "failures": Sum("failures")}
)
PLACED = Reduction("placed", "placement", ("components",), {"units": Count()})
FAILED = Reduction(
    "failed",
    "unit_failure",
    ("components",),
    {"units": CountDistinct("unit")},
    as_of=AsOf(kind="placement", key="unit"),
)


def counting(window: Window, _: Params) -> Verdict:
    """A verdict that holds all that the window says, its history too."""

    def told(one: Window) -> dict[str, Any]:
        return {
            name: {column: values.tolist() for column, values in sums.values.items()}
            for name, sums in one.sums.items()
        }

    return quiet({"now": told(window), "before": [told(past) for past in window.history]})


ANALYZER = Analyzer(
    "counting",
    "1.0.0",
    "Counts",
    (Input("placement", (PLACED, FAILED)), Input("paths", (TRIED,))),
    (),
    counting,
    2,
)


def table(kind: str, rows: Sequence[dict[str, Any]]) -> Rows:
    body = "".join(json.dumps(row) + "\n" for row in rows).encode()
    return decode_ndjson(KINDS[kind], body, offline.REGION, Bounds())


def at(minutes: float) -> str:
    return (NOON + timedelta(minutes=minutes)).isoformat()


def tried(minutes: float, failures: int = 0, on: str = "tor/a") -> dict[str, Any]:
    return {"time": at(minutes), "components": [on], "attempts": 10, "failures": failures}


def cut(rows: Sequence[dict[str, Any]], every: timedelta | None = None) -> list[Window]:
    return list(
        offline.windows(ANALYZER, ANALYZER.inputs[1], {"path_outcome": table("path_outcome", rows)}, every)
    )


def told(windows: Sequence[Window]) -> list[bytes]:
    return [verdict_json(judge(ANALYZER, window)) for window in windows]


def test_all_rows_are_one_window_that_ends_just_after_the_last() -> None:
    (window,) = cut([tried(5), tried(90)])
    assert (window.start, window.end) == (
        NOON + timedelta(minutes=5),
        NOON + timedelta(minutes=90, microseconds=1),
    )


def test_windows_are_aligned_to_the_epoch_and_follow_each_other_without_gaps() -> None:
    windows = cut([tried(59), tried(185)], HOUR)
    assert [(window.start, window.end) for window in windows] == [
        (NOON + i * HOUR, NOON + (i + 1) * HOUR) for i in range(4)
    ]


def test_a_row_on_the_border_belongs_to_the_later_window() -> None:
    windows = cut([tried(0), tried(60)], HOUR)
    assert [window.sums["tried"].values["attempts"].tolist() for window in windows] == [[10], [10]]


def test_a_window_has_as_many_predecessors_as_the_analyzer_likes() -> None:
    windows = cut([tried(0), tried(60), tried(120), tried(180)], HOUR)
    assert [len(window.history) for window in windows] == [0, 1, 2, 2]
    assert [past.start for past in windows[3].history] == [NOON + HOUR, NOON + 2 * HOUR]


def test_a_predecessor_has_no_history_of_its_own() -> None:
    windows = cut([tried(0), tried(60), tried(120)], HOUR)
    assert all(past.history == () for past in windows[2].history)


def test_placements_before_the_first_failure_are_in_force_and_do_not_stretch_the_window() -> None:
    placed = table("placement", [{"time": at(-600), "unit": "vm/1", "components": ["tor/a"]}])
    failures = table("unit_failure", [{"time": at(7), "unit": "vm/1"}])
    tables = {"placement": placed, "unit_failure": failures}
    (window,) = offline.windows(ANALYZER, ANALYZER.inputs[0], tables)
    assert window.start == NOON + timedelta(minutes=7)
    assert window.sums["failed"].values["units"].tolist() == [1]
    assert offline.unplaced(window) is None


def test_failures_of_units_that_are_placed_later_are_told_of() -> None:
    placed = table("placement", [{"time": at(30), "unit": "vm/1", "components": ["tor/a"]}])
    failures = table("unit_failure", [{"time": at(7), "unit": "vm/1"}])
    (window,) = offline.windows(ANALYZER, ANALYZER.inputs[0], {"placement": placed, "unit_failure": failures})
    assert offline.unplaced(window) == (
        "1 row was left out: nothing in force at 2026-03-01T12:07:00Z says where their unit was placed"
    )


def test_topology_that_was_told_after_the_first_row_counts_as_it_first_was_and_is_told_of() -> None:
    told = [{"time": at(m), "component": "tor/a", "parents": [f"pod/{m}"]} for m in (30, 40)]
    tables = {
        "topology": table("topology", told),
        "path_outcome": table("path_outcome", [tried(7), tried(50)]),
    }
    places = Reduction("places", "topology", ("component", "parents"), {"n": Count()}, or_within=True)
    (window,) = offline.windows(ANALYZER, Input("placed", (TRIED, places)), tables)
    parents = window.sums["places"].keys["parents"]
    assert isinstance(parents, Paths)
    assert parents[0] == ("pod/30",)
    assert offline.placed_later(window) == (
        "1 component is first known after 2026-03-01T12:07:00Z, taken as first reported"
    )


def test_states_alone_are_looked_at_when_all_are_in_force() -> None:
    placed = table("placement", [{"time": at(m), "unit": f"vm/{m}", "components": ["tor/a"]} for m in (0, 3)])
    (window,) = offline.windows(ANALYZER, Input("placed", (PLACED,)), {"placement": placed})
    assert window.sums["placed"].values["units"].tolist() == [2]


def test_an_hour_without_failures_is_the_one_that_begins_when_all_is_placed() -> None:
    placed = table("placement", [{"time": at(m), "unit": f"vm/{m}", "components": ["tor/a"]} for m in (0, 3)])
    nothing = table("unit_failure", [{"time": at(7), "unit": "vm/1"}]).take(np.zeros(0, dtype=np.intp))
    tables = {"placement": placed, "unit_failure": nothing}
    (window,) = offline.windows(ANALYZER, ANALYZER.inputs[0], tables, HOUR)
    assert (window.start, window.end) == (NOON + HOUR, NOON + 2 * HOUR)
    assert window.sums["placed"].values["units"].tolist() == [2]
    assert window.sums["failed"].rows == 0


def test_files_that_are_all_empty_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "quiet.ndjson").write_bytes(b"")
    with pytest.raises(AnalysisInputError, match=r"quiet\.ndjson: the body holds no rows"):
        offline.read([f"unit_failure={tmp_path / 'quiet.ndjson'}"], BytesIO())


def test_no_rows_at_all_are_refused() -> None:
    nothing = table("path_outcome", [tried(0)]).take(np.zeros(0, dtype=np.intp))
    with pytest.raises(AnalysisInputError, match="there are no rows of path_outcome"):
        list(offline.windows(ANALYZER, ANALYZER.inputs[1], {"path_outcome": nothing}))


def test_a_stray_time_does_not_make_a_million_windows() -> None:
    with pytest.raises(AnalysisInputError, match="more than 100000"):
        cut([tried(0), tried(60 * 24 * 365 * 50)], timedelta(minutes=1))


def test_the_first_complete_input_is_chosen() -> None:
    assert offline.choose_input(ANALYZER, {"path_outcome", "placement"}).name == "paths"
    assert offline.choose_input(ANALYZER, {"path_outcome", "placement", "unit_failure"}).name == "placement"


def test_missing_kinds_are_named() -> None:
    with pytest.raises(AnalysisInputError) as refused:
        offline.choose_input(ANALYZER, ["placement"])
    assert str(refused.value) == (
        "counting requires placement and unit_failure, or path_outcome; given: placement"
    )


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("5m", 300), ("1h", 3600), ("2d", 172_800), ("250ms", 0.25)]
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert offline.duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "5", "0h", "-1h", "1 h", "1w", "h", "999999999d"])
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(AnalysisInputError, match="is not a duration such as 90s, 5m, 1h or 30d"):
        offline.duration(text)


MINUTES = st.integers(0, 300)
ROWS = st.lists(
    st.builds(tried, MINUTES, st.integers(0, 10), st.sampled_from(["tor/a", "tor/b", "tor/c"])),
    min_size=1,
    max_size=25,
)


@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_rows_means_nothing(rows: list[dict[str, Any]], random: Any) -> None:
    shuffled = random.sample(rows, len(rows))
    assert told(cut(shuffled, HOUR)) == told(cut(rows, HOUR))


@given(ROWS)
def test_a_cut_window_equals_the_one_window_of_its_own_rows(rows: list[dict[str, Any]]) -> None:
    for window in cut(rows, HOUR):
        inside = [row for row in rows if window.start <= datetime.fromisoformat(row["time"]) < window.end]
        if inside:
            (alone,) = cut(inside)
            sums = alone.sums["tried"].values, window.sums["tried"].values
            assert {name: [v[name].tolist() for v in sums] for name in sums[0]} == {
                name: [sums[0][name].tolist()] * 2 for name in sums[0]
            }


def test_a_file_is_read_by_its_ending(tmp_path: Path) -> None:
    lines = tmp_path / "mine.ndjson"
    lines.write_text(json.dumps(tried(0)) + "\n")
    array = tmp_path / "mine.json"
    array.write_text(json.dumps([tried(0)]))
    for path in (lines, array):
        assert offline.read([f"path_outcome={path}"], BytesIO())["path_outcome"].count == 1


def test_a_dash_reads_lines_from_standard_input() -> None:
    tables = offline.read(["path_outcome=-"], BytesIO(json.dumps(tried(0)).encode()))
    assert tables["path_outcome"].count == 1


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ([], "--input KIND=FILE is missing: which rows should be read?"),
        (["mine.ndjson"], "--input mine.ndjson: is not of the form KIND=FILE"),
        (["path_outcome="], "--input path_outcome=: is not of the form KIND=FILE"),
        (["path_outcom=x.ndjson"], "there is no telemetry kind path_outcom; there are benchmark, "),
        (["path_outcome=gone.ndjson"], "gone.ndjson: No such file or directory"),
        (["path_outcome=-", "placement=-"], "--input placement=-: standard input can be read only once"),
    ],
)
def test_a_request_that_cannot_be_read_is_refused(given: list[str], complaint: str) -> None:
    with pytest.raises(AnalysisInputError) as refused:
        offline.read(given, BytesIO(json.dumps(tried(0)).encode()))
    assert str(refused.value).startswith(complaint)


def test_the_first_bad_row_is_named_with_file_field_and_reason(tmp_path: Path) -> None:
    path = tmp_path / "mine.ndjson"
    path.write_text(
        "\n".join(json.dumps(row) for row in (tried(0), tried(1, failures=11), tried(2, failures=12)))
    )
    with pytest.raises(AnalysisInputError) as refused:
        offline.read([f"path_outcome={path}"], BytesIO())
    assert str(refused.value) == f"{path}: row 2, failures: is more than attempts (and 1 more)"
