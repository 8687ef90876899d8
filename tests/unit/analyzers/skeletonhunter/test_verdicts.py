"""Verdicts of skeletonhunter: who is named, how, and when nobody is."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from analyzers.builtin.skeletonhunter import ANALYZER
from analyzers.runner import judge
from analyzers.simulators.deepview import EPOCH
from analyzers.simulators.region import stamp
from analyzers.simulators.training_network import EVENTS, SMALL, TABLES, TYPES, scenario
from analyzers.testing import check_analyzer
from tests.unit.analyzers.skeletonhunter.cases import TINY, case, last_window, made, verdict


def named(found: dict[str, Any]) -> list[str]:
    return [one["component"] for one in found["suspects"]]


@pytest.mark.simulated
def test_it_is_a_good_analyzer() -> None:
    check_analyzer(ANALYZER, case, seeds=[1])


@pytest.mark.simulated
@pytest.mark.parametrize("kind", [*TYPES, *TABLES])
def test_each_type_of_fault_is_named(kind: str) -> None:
    (truth,) = made(2, (kind,))[1]["faults"]
    found = verdict(2, kind)
    assert len(found["suspects"]) == 1
    assert named(found)[0] in {truth["component"], *truth["alike"]}


@pytest.mark.simulated
def test_a_switch_that_is_down_is_named_and_not_the_cards_at_it() -> None:
    shape = replace(SMALL, segments=3, hosts=3, spines=3, windows=2, underlay=True, containers=1)
    (truth,) = made(1, ("switch_offline",), shape=shape)[1]["faults"]
    assert named(verdict(1, "switch_offline", shape=shape)) == [truth["component"]]


@pytest.mark.simulated
@pytest.mark.parametrize("event", EVENTS)
def test_a_benign_event_accuses_nobody(event: str) -> None:
    assert named(verdict(4, event=event)) == []


@pytest.mark.simulated
def test_a_suspect_says_the_signal_and_the_path_to_a_symptom() -> None:
    (found,) = verdict(2, "rnic_port_down")["suspects"]
    assert found["indicator"] == "unreachable"
    assert found["path"][0] == found["component"]
    assert found["summary"].startswith(f"{found['component']} does not answer probes: anomalies on ")


def test_without_registered_endpoints_a_scheduled_run_says_so() -> None:
    window = made(1, ())[0]
    empty = {name: replace(sums, rows=0, keys={}, values={}) for name, sums in window.sums.items()}
    bare = replace(window, input="all", sums={**window.sums, "endpoints": empty["endpoints"]}, history=())
    assert judge(ANALYZER, bare)["reason"].startswith("no endpoint registered")


@pytest.mark.simulated
def test_the_phase_detect_shows_pairs_and_names_nobody() -> None:
    found = verdict(1, "rnic_firmware", phase="detect")
    assert found["status"] == "inconclusive"
    assert [piece["title"] for piece in found["evidence"]] == [
        "Anomalous pairs",
        "Round-trip times of the worst pairs",
    ]


def invalidated(*rails: int) -> dict[str, Any]:
    """Verdict on a pair of each of some cards of a host: round-trip times jump from 16 to 120 us after 90 seconds,
    nothing is lost, both layers are clean, and the flow is gone from the offloaded table.
    """
    rows, _ = scenario("test", 5, (), "", TINY)
    start = EPOCH + timedelta(seconds=300 + 90)
    for src in (f"endpoint/j0-0-r{rail}" for rail in rails):
        dst = next(one["dst"] for one in rows["probe"] if one["src"] == src)
        for row in rows["probe"]:
            if (row["src"], row["dst"]) == (src, dst) and row["time"] >= stamp(start, 0):
                row["rtt_us"] = [one + 104.0 for one in row["rtt_us"]]
        gone = f"vport/{dst.partition('/')[2]}"
        rows["flow_rule"] = [
            row
            for row in rows["flow_rule"]
            if (row["element"], row["match"], row["layer"]) != ("vswitch/h0", gone, "nic")
        ]
    return judge(ANALYZER, last_window(rows))


@pytest.mark.simulated
@pytest.mark.parametrize(("rails", "culprit"), [((0,), "nic/h0-0"), ((0, 1), "vswitch/h0")])
def test_an_invalidated_flow_names_the_card_and_those_of_several_cards_their_virtual_switch(
    rails: tuple[int, ...], culprit: str
) -> None:
    """The published case is that of one card (Liu et al., SIGCOMM 2025)."""
    (found,) = invalidated(*rails)["suspects"]
    assert (found["component"], found["indicator"]) == (culprit, "offloaded_rules")


OVERLAY = replace(TINY, underlay=False)


@pytest.mark.simulated
@pytest.mark.parametrize(
    ("kind", "culprit"),
    [("pcie_nic_error", "host"), ("repetitive_offloading", "vswitch"), ("suboptimal_offloading", "vswitch")],
)
def test_without_underlay_probes_offloaded_rules_tell_a_host_from_its_virtual_switch(
    kind: str, culprit: str
) -> None:
    (found,) = verdict(3, kind, shape=OVERLAY)["suspects"]
    assert found["component"].startswith(f"{culprit}/h")


def test_a_host_is_not_told_from_its_virtual_switch_by_rules_dumped_before_the_fault() -> None:
    rows, truth = scenario("test", 3, ("pcie_nic_error",), "", OVERLAY)
    onset = stamp(EPOCH, OVERLAY.windows * 5 - 5)
    rows["flow_rule"] = [row for row in rows["flow_rule"] if row["time"] < onset]
    (found,) = judge(ANALYZER, last_window(rows, OVERLAY))["suspects"]
    culprit = truth["faults"][0]["component"]
    assert found["component"].startswith("vswitch/")
    assert culprit in found["ambiguous_with"]
