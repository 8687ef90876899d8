"""Alice has probes in a file and no server: the links that lose packets are named, and nobody before they do."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.commands import printed


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("links") / "files"
    printed("simulate", "voting_many", "--seed", "3", "--out", str(out))
    return out


def verdicts(files: Path, analyzer: str, *more: str) -> list[dict[str, Any]]:
    given = f"probe={files}/probe.ndjson"
    told = printed("analyze", analyzer, "--input", given, "--every", "5m", "--json", *more)
    return [json.loads(line) for line in told.splitlines()]


def test_all_bad_links_are_named_from_the_window_in_which_they_fail(simulated: Path) -> None:
    truth = json.loads((simulated / "truth.json").read_text())
    told = verdicts(simulated, "voting")
    assert [one["status"] for one in told] == ["quiet"] * 4 + ["named"] * 2
    named = [{suspect["component"] for suspect in one["suspects"]} for one in told[4:]]
    assert named == [{fault["component"] for fault in truth["faults"]}] * 2


def test_maximum_coverage_names_them_as_well_and_gives_no_probability(simulated: Path) -> None:
    truth = json.loads((simulated / "truth.json").read_text())
    told = verdicts(simulated, "boolean", "--param", "method=coverage")[-1]
    assert {fault["component"] for fault in truth["faults"]} <= {one["component"] for one in told["suspects"]}
    assert {one["score"] for one in told["suspects"]} == {None}
