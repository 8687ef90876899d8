"""Network namespaces: made, entered and removed with `ip` and setns(2). Nothing outside them is changed."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.lab import plan

PLACE = Path("/run/netns")
CLONE_NEWNET = 0x40000000  # linux/sched.h
TIMEOUT = 20.0  # seconds a command may take


class LabBuildError(RuntimeError):
    """The lab cannot be built here; the message says what is missing."""


def why_not() -> str | None:
    """Reason why the lab cannot run on this machine, or None if it can."""
    for command, package in (("ip", "iproute2"), ("tc", "iproute2"), ("nft", "nftables")):
        if shutil.which(command) is None:
            return (
                f"the command `{command}` is missing: install the package {package} (deploy/install-lab.sh)"
            )
    if os.geteuid() != 0:
        return "the lab makes network namespaces: it must run as root"
    probe = f"{plan.PREFIX}probe-{os.getpid()}"  # of this process: another may be asking, too
    try:
        run("ip", "netns", "add", probe)
    except LabBuildError as error:
        return f"network namespaces cannot be made here: {error}"
    run("ip", "netns", "delete", probe)
    return None


def run(*command: str, stdin: str | None = None) -> str:
    """The output of a command. Raises LabBuildError with what it complained about."""
    try:
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LabBuildError(f"{command[0]}: {error}") from error
    if done.returncode:
        raise LabBuildError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[:500]}")
    return done.stdout


def existing() -> list[str]:
    """The lab's namespaces on this machine."""
    return sorted(one.name for one in PLACE.glob(f"{plan.PREFIX}*")) if PLACE.exists() else []


def clean() -> int:
    """Remove what a killed lab left; how many namespaces that were."""
    found = existing()
    for name in found:
        run("ip", "netns", "delete", name)
    return len(found)


@contextmanager
def fabric() -> Iterator[None]:
    """The whole fabric, up and forwarding; gone afterwards. One at a time on a machine. Raises LabBuildError."""
    with _alone():
        clean()
        try:
            _build()
            yield
        finally:
            clean()


@contextmanager
def _alone() -> Iterator[None]:
    with (Path(tempfile.gettempdir()) / "dossier-lab.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LabBuildError("another lab is running on this machine") from error
        yield


def _build() -> None:
    for node in plan.NODES:
        run("ip", "netns", "add", plan.namespace(node))
    run("ip", "-batch", "-", stdin="".join(f"{line}\n" for line in map(_cable, plan.CABLES)))
    for node in plan.NODES:
        lines = "".join(f"{line}\n" for line in plan.build_commands(node))
        run("ip", "-netns", plan.namespace(node), "-batch", "-", stdin=lines)
        if node in plan.SWITCHES:
            with inside(node):
                Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    _wait_until_up()


def _wait_until_up() -> None:
    """The kernel brings a link into use up to a second after it was set up, and loses what is sent until then."""
    deadline = time.monotonic() + TIMEOUT
    while down := [node for node in plan.NODES if _down(node)]:
        if time.monotonic() > deadline:
            raise LabBuildError(f"links of {', '.join(down)} did not come up within {TIMEOUT:.0f} s")
        time.sleep(0.05)


def _down(node: str) -> list[str]:
    """The links of a node that carry nothing yet."""
    links = json.loads(run("ip", "-netns", plan.namespace(node), "-json", "link", "show"))
    return [link["ifname"] for link in links if link["link_type"] != "loopback" and link["operstate"] != "UP"]


def _cable(cable: plan.Cable) -> str:
    here, there = plan.namespace(cable.lower), plan.namespace(cable.upper)
    # Made where they belong: no interface ever appears in the machine's own namespace.
    return f"link add {cable.upper} netns {here} type veth peer name {cable.lower} netns {there}"


@contextmanager
def inside(node: str) -> Iterator[None]:
    """This thread, and every socket it makes meanwhile, in the namespace of a node."""
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        with (PLACE / plan.namespace(node)).open("rb") as there:
            _enter(there.fileno())
        try:
            yield
        finally:
            _enter(own)
    finally:
        os.close(own)


def _enter(descriptor: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, f"setns: {os.strerror(number)}")
