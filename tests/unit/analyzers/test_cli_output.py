"""A verdict on a terminal: what is blamed, how sure, and the short tables behind it."""

from typing import Any

from analyzers.cli_output import MOST_ROWS, TERMINAL, brief, whole

SUSPECT: dict[str, Any] = {
    "component": "storage_cluster/s7",
    "rank": 1,
    "score": 0.934,
    "p_value": 1.2e-9,
    "q_value": 3e-8,
    "estimate": {"failure_rate": 0.021, "low": 0.018, "high": 0.0243},
    "ambiguous_with": [],
    "summary": "Storage cluster s7 fails 2.1 % of the disks that depend on it.",
}


def verdict(status: str = "named", **more: Any) -> dict[str, Any]:
    return {
        "analyzer": "deepview",
        "version": "1.0.0",
        "params": {"method": "binomial"},
        "window": {"start": "2026-03-01T11:00:00Z", "end": "2026-03-01T12:00:00Z"},
        "status": status,
        "reason": None,
        "assumptions": [],
        "suspects": [SUSPECT] if status == "named" else [],
        "measures": {"paths": 4096, "seconds": 0.0123},
        "evidence": [],
        **more,
    }


def evidence(kind: str, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "title": "Runners-up", "columns": [], "rows": [], "chart": {}, "text": "", **more}


def test_a_named_verdict_is_read_from_top_to_bottom() -> None:
    assert whole(verdict()) == [
        "deepview 1.0.0  2026-03-01 11:00:00 to 12:00:00 UTC",
        "named: 1 suspect",
        "",
        "#  suspect             probability  failure rate (95 %)        p",
        "1  storage_cluster/s7        0.934  2.1 % (1.8 to 2.43)  1.2e-09",
        "",
        "1. Storage cluster s7 fails 2.1 % of the disks that depend on it.",
        "",
        "paths 4096  seconds 0.0123",
        "parameters: method=binomial",
    ]


def test_a_quiet_verdict_says_so() -> None:
    assert whole(verdict("quiet"))[1] == "quiet: no component at fault"


def test_an_inconclusive_verdict_says_why() -> None:
    assert whole(verdict("inconclusive", reason="no path has units"))[1] == "inconclusive: no path has units"


def test_what_cannot_be_told_apart_is_listed_shortly() -> None:
    many = {**SUSPECT, "ambiguous_with": [f"tor/{i}" for i in range(5)]}
    assert any("tor/0, tor/1, tor/2 and 2 more" in line for line in whole(verdict(suspects=[many])))


def test_a_column_that_no_suspect_has_is_left_out() -> None:
    bare = {**SUSPECT, "score": None, "p_value": None, "estimate": None}
    assert "#  suspect" in whole(verdict(suspects=[bare]))


def test_in_short_a_suspect_without_figures_has_its_summary() -> None:
    bare = {**SUSPECT, "score": None, "p_value": None, "estimate": None}
    assert brief(verdict(suspects=[bare]))[1] == f"    1  storage_cluster/s7  {SUSPECT['summary']}"


def test_what_only_some_suspects_have_is_a_dash_for_the_others() -> None:
    bare = {**SUSPECT, "score": None, "rank": 2}
    lines = whole(verdict(suspects=[SUSPECT, bare]))
    assert any(line.split()[:3] == ["2", "storage_cluster/s7", "–"] for line in lines)


def test_indicator_and_path_follow_the_summary() -> None:
    traced = {**SUSPECT, "indicator": "timeouts", "path": ["storage_cluster/s7", "vm/1"]}
    assert whole(verdict(suspects=[traced]))[6:9] == [
        "1. Storage cluster s7 fails 2.1 % of the disks that depend on it.",
        "   indicator: timeouts",
        "   path: storage_cluster/s7 > vm/1",
    ]


def test_rows_without_times_are_not_said_to_be_of_1970() -> None:
    epoch = {"start": "1970-01-01T00:00:00Z", "end": "1970-01-01T00:00:00Z"}
    assert whole(verdict(window=epoch))[0] == "deepview 1.0.0  (rows without times)"


def test_a_long_table_is_cut_and_says_so() -> None:
    table = evidence("table", columns=["component", "units"], rows=[[f"tor/{i}", i] for i in range(40)])
    lines = whole(verdict(evidence=[table]))
    assert sum(line.startswith("tor/") for line in lines) == MOST_ROWS
    assert "and 30 more rows (--json has them)" in lines


def test_a_chart_is_mentioned_and_a_text_is_shown() -> None:
    both = [evidence("chart", chart={"mark": "line"}), evidence("text", title="Why", text="Because.")]
    lines = whole(verdict(evidence=both))
    assert "Runners-up (a chart: --json has it)" in lines
    assert lines[lines.index("Why") + 1] == "Because."


def test_in_short_each_window_is_a_line_and_each_suspect_another() -> None:
    assert brief(verdict()) == [
        "2026-03-01 11:00:00 to 12:00:00 UTC  named: 1 suspect",
        "    1  storage_cluster/s7  probability 0.934  rate 2.1 % (1.8 to 2.43)",
    ]


def test_only_a_terminal_gets_escape_sequences() -> None:
    assert "\x1b" not in "".join(whole(verdict()))
    assert "\x1b[31mnamed" in "".join(whole(verdict(), TERMINAL))


def test_an_assumption_that_does_not_hold_comes_before_those_that_do() -> None:
    checked = [
        {"name": "history", "holds": True, "detail": "24 windows before."},
        {"name": "topology", "holds": False, "detail": "5 % of the failures pass no suspect."},
    ]
    lines = whole(verdict(assumptions=checked))
    at = lines.index("assumptions")
    assert lines[at + 1 : at + 3] == [
        "  topology does not hold: 5 % of the failures pass no suspect.",
        "  history holds: 24 windows before.",
    ]
