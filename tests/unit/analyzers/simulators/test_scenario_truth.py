"""The schema of `truth.json`: what breaks it is refused by name."""

from pathlib import Path
from typing import Any

import pytest

from analyzers.simulators.deepview import EPOCH, Fault
from analyzers.simulators.region import truth_of
from analyzers.simulators.scenarios import SCENARIOS
from analyzers.simulators.truth import check_truth

FAULT = {
    "component": "tor/t1",
    "kind": "stop",
    "start": "2026-01-05T00:30:00Z",
    "end": "2026-01-05T01:00:00Z",
}


def truth(*faults: dict[str, Any], **other: Any) -> dict[str, Any]:
    span = {"start": "2026-01-05T00:00:00.000Z", "end": "2026-01-05T01:00:00.000Z"}
    return {"scenario": "one", "seed": 3, **span, "faults": list(faults), "benign": [], **other}


def test_a_fault_within_its_scenario_is_in_order() -> None:
    check_truth(truth(FAULT, {**FAULT, "component": "tor/t2", "severity": 0.5}, stories=[]))


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"component": "t1"}, r"faults\[0\]: component 't1' is not `kind/name`"),
        ({"kind": ""}, "kind '' is not a word"),
        ({"start": "2026-01-04T23:59:00Z"}, "not within the scenario"),
        ({"end": "2026-01-05T00:30:00Z"}, "not after its start"),
        ({"end": "2026-01-05T01:00:00"}, "not in UTC"),
        ({"end": "soon"}, "not an RFC 3339 instant"),
    ],
)
def test_a_broken_fault_is_named_with_what_is_wrong(broken: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check_truth(truth({**FAULT, **broken}))


def test_a_fault_without_a_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="kind missing"):
        check_truth(truth({key: value for key, value in FAULT.items() if key != "kind"}))


def test_an_event_lies_within_its_scenario_too() -> None:
    early = {"kind": "drain", "start": "2026-01-04T23:00:00Z", "end": "2026-01-05T01:00:00Z"}
    check_truth(truth(benign=[{**early, "start": FAULT["start"]}]))
    with pytest.raises(ValueError, match=r"benign\[0\].*not within the scenario"):
        check_truth(truth(benign=[early]))


def test_an_event_that_a_scenario_does_not_know_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no benign event 'upgrade'; there are clock_step"):
        SCENARIOS["deepview_healthy"].write(3, tmp_path, "upgrade")
    with pytest.raises(ValueError, match="only healthy ones"):
        SCENARIOS["voting_link"].write(3, tmp_path, "drain")


def test_a_truth_without_faults_key_is_refused() -> None:
    with pytest.raises(ValueError, match="faults missing"):
        check_truth({key: value for key, value in truth().items() if key != "faults"})


def test_one_fault_told_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="already"):
        check_truth(truth(FAULT, FAULT))


def test_a_seed_is_a_whole_number() -> None:
    with pytest.raises(ValueError, match="seed"):
        check_truth(truth(seed="3"))


def test_faults_of_a_region_are_called_by_how_much_fails() -> None:
    faults = tuple(Fault("tor/t1", severity, 0, 60) for severity in (0.9, 0.05, 0.004))
    assert [row["kind"] for row in truth_of(faults, EPOCH)] == ["stop", "gray", "faint"]
