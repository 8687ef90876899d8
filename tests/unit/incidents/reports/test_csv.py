"""A report as CSV."""

import csv
import io
import json
from typing import Any

from incidents.reports.csv import COLUMNS, csv_of
from tests.places import EVENTS

TICKET = {
    "number": 7,
    "title": "=HYPERLINK(1)",
    "severity": "error",
    "team": "storage",
    "opened_at": "2026-05-04T12:00:31Z",
}
REPORT: dict[str, Any] = {
    "response": None,
    "runs": {
        "schedules": [
            {"schedule": "deepview-1h@default", "analyzer": "deepview", "region": "default", "total": 3}
            | {"named": 1, "quiet": 2, "inconclusive": 0, "failed": 0}
        ]
    },
    "blamed": [
        {"component": "tor/t1", "region": "default", "runs": 1, "score": 0.9, "first": "a", "last": "b"}
    ],
    "incidents": {
        "opened": [TICKET],
        "resolved": [{**TICKET, "resolved_at": "2026-05-04T13:00:00Z", "confirmed_cause": "tor/t1"}],
    },
    "analyses": [],
    "scorecards": [],
    "changes": None,
}
GOLDEN = EVENTS / "report.produced.v2.json"


def rows() -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(csv_of(REPORT))))


def test_every_item_is_a_line_of_one_table() -> None:
    assert [row["section"] for row in rows()] == [*["runs"] * 4, "blamed", "opened", "resolved"]
    assert tuple(rows()[0]) == COLUMNS


def test_a_resolved_ticket_names_its_confirmed_cause() -> None:
    assert rows()[-1]["outcome"] == "tor/t1"


def test_a_title_that_looks_like_a_formula_is_not_one_for_a_spreadsheet() -> None:
    assert rows()[-1]["title"] == "'=HYPERLINK(1)"


def test_every_section_of_a_whole_report_has_lines() -> None:
    lines = csv.DictReader(io.StringIO(csv_of(json.loads(GOLDEN.read_text()))))
    assert {line["section"] for line in lines} == {
        "response", "causes", "runs", "blamed", "opened", "resolved", "tor_availability", "score-card", "changes"
    }  # fmt: skip


def test_a_suspect_has_its_indicator_and_its_path() -> None:
    suspect = {"component": "nic/h3-1", "score": 0.9, "summary": "It is slow."}
    analysis: dict[str, Any] = {"analyzer": "c4d", "region": "r", "status": "named", "measures": {}}
    analysis["suspects"] = [suspect, suspect | {"indicator": "duration", "path": ["nic/h3-1", "job/j"]}]
    lines = csv.DictReader(io.StringIO(csv_of({**REPORT, "analyses": [analysis]})))
    found = [(line["indicator"], line["path"]) for line in lines if line["section"] == "c4d"]
    assert found == [("", ""), ("duration", "nic/h3-1 > job/j")]


def test_an_empty_report_has_its_header() -> None:
    nothing = {**REPORT, "runs": {"schedules": []}, "blamed": [], "incidents": {"opened": [], "resolved": []}}
    assert csv_of(nothing) == ",".join(COLUMNS) + "\r\n"
