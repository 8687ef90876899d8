"""A report as CSV: one line an item, one table for all, so that any spreadsheet opens it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from incidents.domain.csv import inert

COLUMNS = (
    "section", "name", "region", "team", "severity", "count", "value", "score", "first", "last", "title", "outcome",
    "indicator", "path"
)  # fmt: skip
Row = dict[str, Any]
Body = Mapping[str, Any]


def csv_of(report: Body) -> str:
    """Text with a header line. Nothing in it is a formula to a spreadsheet."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\r\n")
    writer.writeheader()
    for part in (
        _response,
        _runs,
        _blamed,
        _incidents,
        _analyses,
        _mitigations,
        _review_actions,
        _validations,
        _lemons,
        _repairs,
        _on_call,
        _alert_rules,
        _scorecards,
        _changes,
    ):
        for row in part(report):
            writer.writerow({name: inert(value) for name, value in row.items()})
    return text.getvalue()


def _response(report: Body) -> Iterator[Row]:
    if (found := report["response"]) is None:
        return
    for name in ("acknowledged", "right_team", "resolution"):
        for figure in ("median", "p90"):
            value = found[name][figure]
            yield {
                "section": "response",
                "name": f"{name} {figure} seconds",
                "count": found[name]["n"],
                "value": value,
            }
    for name in ("opened", "resolved", "open_at_end"):
        yield {"section": "response", "name": name, "count": found[name]}
    for name, value in found["hops"].items():
        yield {"section": "response", "name": f"hops {name}", "value": value}
    for one in found["causes"]:
        yield {"section": "causes", "name": one["cause"], "count": one["incidents"]}


def _runs(report: Body) -> Iterator[Row]:
    for one in report["runs"]["schedules"]:
        for outcome in ("named", "quiet", "inconclusive", "failed"):
            yield {
                "section": "runs",
                "name": one["schedule"] or one["analyzer"],
                "region": one["region"],
                "count": one[outcome],
                "outcome": outcome,
            }


def _blamed(report: Body) -> Iterator[Row]:
    for one in report["blamed"]:
        yield {
            "section": "blamed",
            "name": one["component"],
            "region": one["region"],
            "count": one["runs"],
            "score": one["score"],
            "first": one["first"],
            "last": one["last"],
        }


def _incidents(report: Body) -> Iterator[Row]:
    for section in ("opened", "resolved"):
        for one in report["incidents"][section]:
            yield {
                "section": section,
                "name": f"#{one['number']}",
                "team": one["team"],
                "severity": one["severity"],
                "first": one["opened_at"],
                "last": one.get("resolved_at"),
                "title": one["title"],
                "outcome": one.get("confirmed_cause"),
            }


def _analyses(report: Body) -> Iterator[Row]:
    for one in report["analyses"]:
        head = {"section": one["analyzer"], "region": one["region"], "outcome": one["status"]}
        for name, value in one["measures"].items():
            yield {**head, "name": name, "value": value if isinstance(value, int | float | str) else None}
        for suspect in one["suspects"]:
            yield {
                **head,
                "name": suspect["component"],
                "score": suspect["score"],
                "title": suspect["summary"],
                "indicator": suspect.get("indicator"),
                "path": " > ".join(suspect.get("path") or ()) or None,
            }


def _mitigations(report: Body) -> Iterator[Row]:
    for one in report.get("mitigations", ()):
        for name, value in one["gpu_hours"].items():
            yield {
                "section": "mitigation",
                "name": f"#{one['number']}",
                "value": value,
                "title": one["title"],
                "outcome": name,
            }


def _review_actions(report: Body) -> Iterator[Row]:
    for one in (report.get("review_actions") or {"actions": ()})["actions"]:
        yield {
            "section": "review action",
            "name": f"#{one['number']}",
            "title": one["text"],
            "outcome": one["owner"],
            "last": one["due"],
        }


def _validations(report: Body) -> Iterator[Row]:
    for one in (report.get("validations") or {"changes": ()})["changes"]:
        yield {
            "section": "validated change",
            "name": one["component"] or one["change"],
            "count": one["classes_violated"],
            "value": one["classes"],
            "first": one["at"],
            "title": one["summary"],
            "outcome": one["verdict"],
            "indicator": one["rule"],
            "path": " > ".join(one["witness"]) or None,
        }


def _lemons(report: Body) -> Iterator[Row]:
    for one in report.get("lemons", ()):
        for fleet in one["fleets"]:
            for scored in (*fleet["groups"], *fleet["lemons"]):
                yield {
                    "section": "lemons",
                    "name": scored["name"],
                    "region": one["region"],
                    "count": scored["members"] or None,
                    "value": scored["ratio"],
                    "title": f"{scored['ratio']:g} times its peers, q {scored['q_value']:g}",
                    "outcome": fleet["kind"],
                }


def _repairs(report: Body) -> Iterator[Row]:
    for one in report.get("lemons", ()):
        for rate in one["repairs"]:
            head = {"section": "repairs", "name": rate["name"], "region": one["region"]}
            for outcome in ("no_fault_found", "came_back"):
                yield {**head, "count": rate[outcome], "value": rate["incidents"], "outcome": outcome}


def _on_call(report: Body) -> Iterator[Row]:
    for one in (report.get("on_call") or {"people": ()})["people"]:
        head = {"section": "on-call load", "name": one["person"], "team": one["team"]}
        for figure in ("hours", "night_hours", "weekend_hours", "ratio", "acknowledge_seconds"):
            yield {**head, "value": one[figure], "outcome": figure.replace("_", " ")}
        for figure in ("interruptions", "night_interruptions", "acknowledged"):
            yield {**head, "count": one[figure], "outcome": figure.replace("_", " ")}


def _alert_rules(report: Body) -> Iterator[Row]:
    for one in (report.get("alert_rules") or {"rules": ()})["rules"]:
        head = {"section": "alert rules", "name": one["rule"]}
        yield {**head, "outcome": one["verdict"]}
        for figure in (
            "firings",
            "incidents",
            "calls",
            "acted",
            "ignored",
            "false_alarms",
            "flapped",
            "wasted_calls",
        ):
            yield {**head, "count": one[figure], "outcome": figure.replace("_", " ")}
        if (best := one["proposal"]) is not None:
            yield {
                **head,
                "count": best["calls_fewer"],
                "title": best["sentence"],
                "outcome": "proposal, fewer calls",
            }


def _scorecards(report: Body) -> Iterator[Row]:
    for one in report["scorecards"]:
        head = {"section": "score-card", "name": one["analyzer"]}
        for outcome in ("right", "matched", "found_alone", "found_first", "wrong", "missed"):
            yield {**head, "count": one[outcome], "outcome": outcome}
        for outcome in ("precision", "recall"):
            share = one[outcome]
            yield {**head, "count": share["trials"], "value": share["value"], "outcome": outcome}
        yield {**head, "value": one["median_lead_seconds"], "outcome": "median lead seconds"}


def _changes(report: Body) -> Iterator[Row]:
    for one in (report["changes"] or {"lines": ()})["lines"]:
        yield {"section": "changes", "name": one["what"], "value": one["now"], "title": one["sentence"]}
