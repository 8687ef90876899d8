"""Evidence as pages show it, and the examples of the docs."""

import json
from datetime import UTC, datetime

import pytest

from frontend.evidence import Piece, chart_table, grouped, latest_of_each
from frontend.examples import example
from frontend.templatetags.dossier import message_piece
from incidents.queries import Evidence
from ingest.queries import TELEMETRY_KINDS


def piece(version: int, place: int = 0, analyzer: str | None = None) -> Evidence:
    now = datetime(2026, 11, 21, tzinfo=UTC)
    title = f"{version}.{place}"
    return Evidence(version, place, "text", title, [], [], {}, "…", now, "user:alice", analyzer, None, None)


def test_evidence_is_grouped_by_what_attached_it_newest_first() -> None:
    groups = grouped([piece(2, 0), piece(2, 1), piece(5)])
    assert [[one.title for one in group.pieces] for group in groups] == [["5.0"], ["2.0", "2.1"]]


def test_a_column_in_which_nothing_stands_is_not_shown() -> None:
    table = Piece(
        "table", "Blamed", ["component", "none", "failed"], [["tor/a", "", 0], ["tor/b", None, 2]], {}, ""
    )
    assert message_piece(table) == {
        "columns": ["component", "failed"],
        "rows": [["tor/a", 0], ["tor/b", 2]],
        "rest": [],
    }


@pytest.mark.parametrize(("many", "seen"), [(31, 31), (45, 45), (46, 30), (1000, 30)])
def test_of_a_long_table_the_rest_is_asked_for(many: int, seen: int) -> None:
    table = message_piece(
        Piece("table", "Blamed", ["component"], [[f"tor/{n}"] for n in range(many)], {}, "")
    )
    assert (len(table["rows"]), len(table["rest"])) == (seen, many - seen)


def test_each_analyzer_shows_its_latest_evidence_the_leader_first() -> None:
    by = ((1, "deepview"), (2, "voting"), (3, None), (4, "deepview"), (5, "voting"))
    groups = grouped(piece(version, analyzer=analyzer) for version, analyzer in by)
    current, older = latest_of_each(groups, "deepview")
    assert ([g.version for g in current], [g.version for g in older]) == ([4, 5], [3, 2, 1])


def test_what_a_person_attached_last_is_shown_with_it() -> None:
    groups = grouped([piece(1, analyzer="deepview"), piece(2)])
    assert [group.version for group in latest_of_each(groups, "deepview")[0]] == [1, 2]


def test_a_later_run_renews_what_its_analyzer_shows() -> None:
    shown = {"evidence": [{"kind": "text", "title": "Newer", "text": "…"}]}
    (group,) = grouped([piece(1, analyzer="deepview")])
    renewed = group.renewed({"analyzer": "deepview"}, shown)
    assert ([one.title for one in renewed.pieces], renewed.version) == (["Newer"], 1)


@pytest.mark.parametrize(
    "spec",
    [
        {"data": {"values": [{"x": 1}, {"x": 2, "y": 3}]}},
        {"data": {"name": "d"}, "datasets": {"d": [{"x": 1}, {"x": 2, "y": 3}]}},
        {"layer": [{"mark": "rule"}, {"data": {"values": [{"x": 1}, {"x": 2, "y": 3}]}}]},
    ],
)
def test_the_data_of_a_chart_is_a_table_wherever_it_stands(spec: dict[str, object]) -> None:
    assert chart_table(spec) == (["x", "y"], [[1, None], [2, 3]], 2)


def test_a_chart_without_rows_has_an_empty_table() -> None:
    assert chart_table({"data": {"values": [1, 2, 3]}}) == ([], [], 0)


@pytest.mark.parametrize("name", sorted(TELEMETRY_KINDS))
def test_every_kind_has_an_example_with_its_required_fields(name: str) -> None:
    kind = TELEMETRY_KINDS[name]
    required = {field.name for field in kind.fields if not field.optional}
    assert set(json.loads(example(kind))) == required
