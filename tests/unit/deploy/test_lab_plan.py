"""The fabric of the fault lab, as planned."""

from pathlib import Path

import pytest

from deploy.lab import namespaces, plan
from deploy.lab.faults import Fault
from deploy.lab.probing import PATHS


def test_a_probe_between_leaves_passes_the_spine_of_its_plane_and_no_other() -> None:
    assert plan.hops(1, 8, 2) == (
        "link/h1~leaf1",
        "link/h8~leaf4",
        "link/leaf1~spine2",
        "link/leaf4~spine2",
        "switch/leaf1",
        "switch/leaf4",
        "switch/spine2",
    )


def test_a_probe_below_one_leaf_stays_there() -> None:
    assert plan.hops(3, 4, 1) == ("link/h3~leaf2", "link/h4~leaf2", "switch/leaf2")


def test_every_switch_knows_a_way_to_every_host_it_may_be_asked_for() -> None:
    for node in plan.SWITCHES:
        planes = [int(node[5:])] if node.startswith("spine") else plan.PLANES
        routes = {line.split()[2] for line in plan.build_commands(node) if line.startswith("route")}
        assert routes >= {f"{plan.address(host, plane)}/32" for host in plan.HOSTS for plane in planes}


def test_every_link_and_switch_is_on_the_way_of_some_probe() -> None:
    seen = {hop for path in PATHS for hop in plan.hops(path.src, path.dst, path.plane)}
    assert seen == set(plan.COMPONENTS)


def test_a_broken_link_loses_packets_at_both_ends() -> None:
    assert set(Fault("loss", "link/leaf1~spine1").ends()) == {("leaf1", "spine1"), ("spine1", "leaf1")}


def test_a_broken_switch_loses_packets_on_every_way_out() -> None:
    assert len(list(Fault("loss", "switch/spine1").ends())) == plan.LEAVES


def test_a_component_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(ValueError, match="no link/leaf1~leaf2; it has switch/leaf1"):
        plan.component("link/leaf1~leaf2")


@pytest.mark.parametrize("missing", ["ip", "tc", "nft"])
def test_a_lab_without_one_of_its_commands_says_which_script_installs_it(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for command in {"ip", "tc", "nft"} - {missing}:
        (tmp_path / command).symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path))
    reason = namespaces.why_not() or ""
    assert f"`{missing}`" in reason
    assert "deploy/install-lab.sh" in reason
