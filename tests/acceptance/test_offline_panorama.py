"""Alice has observations in a file: the gray failure is named when it begins, overloaded observers or not."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.commands import printed


def verdicts(files: Path, *more: str) -> list[dict[str, Any]]:
    given = f"observation={files}/observation.ndjson"
    told = printed("analyze", "panorama", "--input", given, "--every", "20s", "--json", *more)
    return [json.loads(line) for line in told.splitlines()]


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("panorama") / "files"
    printed("simulate", "panorama_overload", "--seed", "3", "--out", str(out))
    return out


def test_the_gray_failure_and_the_overloaded_observers_are_named_and_nobody_else(crowded: Path) -> None:
    faults = json.loads((crowded / "truth.json").read_text())["faults"]
    told = verdicts(crowded)
    assert [one["status"] for one in told] == ["quiet"] * 3 + ["named"] * 3
    named = {one["component"]: one["summary"] for one in told[-1]["suspects"]}
    assert set(named) == {fault["component"] for fault in faults}
    assert "is a gray failure" in named[faults[0]["component"]]


def test_the_published_method_accuses_healthy_processes_too(crowded: Path) -> None:
    faults = json.loads((crowded / "truth.json").read_text())["faults"]
    named = {one["component"] for one in verdicts(crowded, "--param", "method=paper")[-1]["suspects"]}
    assert named - {fault["component"] for fault in faults}
