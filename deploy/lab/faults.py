"""Faults of the lab: a link or a switch that loses packets, or is down."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from deploy.lab import plan
from deploy.lab.namespaces import LabBuildError, run

Kind = Literal["none", "loss", "down"]


@dataclass(frozen=True, slots=True)
class Fault:
    """`percent` of the packets are lost each time one passes the component, in either direction."""

    kind: Kind = "none"
    component: str = ""
    percent: int = 30

    def ends(self) -> Iterator[tuple[str, str]]:
        """Places of the fault: a node, and its interface by which packets leave."""
        cable, switch = plan.component(self.component)
        if cable is not None:
            yield cable.lower, cable.upper
            yield cable.upper, cable.lower
        elif switch is not None:
            yield from ((switch, one.other(switch)) for one in plan.cables_of(switch))


@contextmanager
def broken(fault: Fault) -> Iterator[str]:
    """The fabric with the fault in it; gives how it was made. Repaired afterwards. Raises LabBuildError."""
    if fault.kind == "none":
        yield "nothing is broken"
    elif fault.kind == "down":
        _each(fault, "down")
        try:
            yield f"{fault.component} is down (ip link set down)"
        finally:
            _each(fault, "up")
    else:
        tool = _lossy(fault)
        try:
            yield f"{fault.component} loses {fault.percent} % of the packets each way ({tool})"
        finally:
            _lossless(fault, tool)


def _each(fault: Fault, state: str) -> None:
    for node, interface in fault.ends():
        run("ip", "-netns", plan.namespace(node), "link", "set", interface, state)


def _lossy(fault: Fault) -> str:
    """With netem where the kernel has it, else with a rule of nftables that drops at random."""
    try:
        for node, interface in fault.ends():
            _tc(node, "add", interface, "netem", "loss", f"{fault.percent}%")
    except LabBuildError:
        _lossless(fault, "netem")
    else:
        return "netem"
    if shutil.which("nft") is None:
        raise LabBuildError("this kernel has no netem, and `nft` is missing: install the package nftables")
    for node, interface in fault.ends():
        rules = (
            f"add table inet lab\nadd chain inet lab out_{interface} {{ type filter hook postrouting priority 0; }}\n"
            f'add rule inet lab out_{interface} oifname "{interface}" numgen random mod 100 < {fault.percent} drop\n'
        )
        run("ip", "netns", "exec", plan.namespace(node), "nft", "-f", "-", stdin=rules)
    return "nftables"


def _lossless(fault: Fault, tool: str) -> None:
    for node, interface in fault.ends():
        try:
            if tool == "netem":
                _tc(node, "delete", interface)
            else:
                run("ip", "netns", "exec", plan.namespace(node), "nft", "flush", "ruleset")
        except LabBuildError:
            continue  # it was never set there


def _tc(node: str, verb: str, interface: str, *more: str) -> None:
    run("tc", "-netns", plan.namespace(node), "qdisc", verb, "dev", interface, "root", *more)
