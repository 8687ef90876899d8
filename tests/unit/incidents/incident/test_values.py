from __future__ import annotations

import math
from typing import Any

import pytest

from incidents.domain.incident import commands as c
from incidents.domain.incident.commands import Report
from incidents.domain.values import EVIDENCE_BYTES, InvalidValueError, check_evidence, check_labels

TABLE: dict[str, Any] = {"kind": "table", "title": "Blamed", "columns": ["component"], "rows": [["disk/1"]]}
CHART: dict[str, Any] = {
    "kind": "chart",
    "title": "Over time",
    "chart": {"mark": "bar", "data": {"values": []}},
}


@pytest.mark.parametrize(
    "title", ["", "  ", "two\nlines", "two\u2028lines", "tfel\u202e", "nul\0", "\ud800", "x" * 301]
)
def test_a_title_is_one_printable_line(title: str) -> None:
    with pytest.raises(InvalidValueError, match=r"^title: "):
        Report(title)


@pytest.mark.parametrize("component", ["s7", "storage/", "7storage/s7", "storage/s 7", "/s7"])
def test_a_component_is_kind_and_name(component: str) -> None:
    with pytest.raises(InvalidValueError, match=r"^component: .*kind/name"):
        Report("x", component=component)


def test_an_empty_dedup_key_is_refused_because_it_would_join_everything() -> None:
    with pytest.raises(InvalidValueError, match=r"^dedup_key: "):
        Report("x", dedup_key="")


@pytest.mark.parametrize("href", ["javascript:alert(1)", "ftp://example.org", "example.org", ""])
def test_a_link_leads_to_the_web(href: str) -> None:
    with pytest.raises(InvalidValueError, match="href"):
        c.Link(href)


def test_a_confirmed_cause_may_be_none() -> None:
    assert c.Resolve("none").confirmed_cause == "none"


def test_labels_are_texts() -> None:
    with pytest.raises(InvalidValueError, match=r"^labels.rack: must be a text"):
        check_labels("labels", {"rack": 7})


@pytest.mark.parametrize("item", [TABLE, CHART, {"kind": "text", "title": "Why", "text": "It fails."}])
def test_evidence_in_the_shape_of_a_verdict_is_taken(item: dict[str, Any]) -> None:
    assert check_evidence("evidence", [item])[0]["title"] == item["title"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"kind": "image"}, "kind"),
        ({"title": ""}, "title"),
        ({"rows": [["disk/1", 2]]}, r"rows\[0\]"),
        ({"rows": [[{"nested": 1}]]}, r"rows\[0\]"),
        ({"rows": [[math.nan]]}, "rows"),
        ({"rows": [["nul\0"]]}, "rows"),
        ({"rows": [["x"]] * 1001}, "rows"),
        ({"colour": "red"}, "colour"),
        ({"chart": {"mark": "bar"}}, "chart"),
    ],
)
def test_evidence_in_another_shape_is_refused_by_field(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidValueError, match=rf"^evidence\[0\]\.{field}"):
        check_evidence("evidence", [TABLE | change])


def test_a_chart_that_fetches_its_data_is_refused() -> None:
    chart = CHART | {"chart": {"mark": "bar", "data": {"url": "https://example.org/who-looks"}}}
    with pytest.raises(InvalidValueError, match="inline"):
        check_evidence("evidence", [chart])


def test_evidence_nested_without_end_is_refused() -> None:
    nested: list[Any] = []
    for _ in range(100):
        nested = [nested]
    with pytest.raises(InvalidValueError, match="nested deeper"):
        check_evidence("evidence", [CHART | {"chart": {"mark": nested}}])


def test_evidence_is_bounded_in_bytes() -> None:
    big = {
        "kind": "chart",
        "title": "Big",
        "chart": {"data": {"values": ["x" * 1000] * (EVIDENCE_BYTES // 1000)}},
    }
    with pytest.raises(InvalidValueError, match="bytes"):
        check_evidence("evidence", [big])
