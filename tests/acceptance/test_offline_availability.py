"""Alice has a month of outages and uptimes in files: she is told what the class is worth, who spends it, and how far
placement matters."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.commands import printed


def simulated(scenario: str, out: Path) -> tuple[Path, set[str]]:
    printed("simulate", scenario, "--seed", "3", "--out", str(out))
    truth = json.loads((out / "truth.json").read_text())
    return out, {fault["component"] for fault in truth["faults"]}


def named(verdict: dict[str, Any]) -> set[str]:
    return {suspect["component"] for suspect in verdict["suspects"]}


def test_tors_with_bad_firmware_are_named_from_outages_and_topology(tmp_path: Path) -> None:
    files, bad = simulated("tor_outages", tmp_path / "files")
    given = ["--input", f"outage={files}/outage.ndjson", "--input", f"topology={files}/topology.ndjson"]
    verdict = json.loads(
        printed("analyze", "tor_availability", *given, "--param", "window_days=30", "--json")
    )
    assert named(verdict) == bad
    assert verdict["measures"]["devices"] == 128


def test_the_figure_of_the_talk_is_printed_from_a_file_of_outages() -> None:
    rows = [
        {
            "device": f"tor/t{i}",
            "start": f"2026-03-{i + 2:02d}T10:00:00Z",
            "end": f"2026-03-{i + 2:02d}T{'12:00' if i == 9 else '10:20'}:00Z",
            "cause": "hard" if i == 9 else "soft",
        }
        for i in range(10)
    ]
    arguments = ["--input", "outage=-", "--param", "devices=10000", "--param", "window_days=30"]
    told = printed(
        "analyze", "tor_availability", *arguments, stdin="".join(json.dumps(row) + "\n" for row in rows)
    )
    assert "99.99993 %" in told
    assert told.splitlines()[1] == "quiet: no component at fault"


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str]]:
    return simulated("uptime_month", tmp_path_factory.mktemp("month") / "files")


def test_units_that_are_down_again_and_again_are_named(month: tuple[Path, set[str]]) -> None:
    files, bad = month
    told = printed("analyze", "availability", "--input", f"uptime={files}/uptime.ndjson", "--json")
    assert named(json.loads(told)) == bad


def test_the_planted_share_lies_in_the_interval(month: tuple[Path, set[str]]) -> None:
    files, _ = month
    told = json.loads(printed("analyze", "colocation", "--input", f"uptime={files}/uptime.ndjson", "--json"))
    assert told["measures"]["low"] <= 0.114 <= told["measures"]["high"]
