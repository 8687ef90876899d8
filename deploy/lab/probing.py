"""Probes between the hosts of the fabric: UDP echoes over every plane, as rows of the kind `probe`.

One process holds a socket in each host's namespace; what it sends is routed by the kernels of the switches in between.
"""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import permutations
from typing import Any

from deploy.lab import plan
from deploy.lab.namespaces import inside

PORT = 7007
PATIENCE = 0.2  # seconds after the last probe of a round
BURST = 64  # probes sent before answers are looked for
_PACKET = struct.Struct("!cI")
_ASK, _ANSWER = b"?", b"!"
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Path:
    src: int
    dst: int
    plane: int


PATHS = tuple(Path(src, dst, plane) for src, dst in permutations(plan.HOSTS, 2) for plane in plan.PLANES)


@contextmanager
def prober() -> Iterator[Prober]:
    """A socket a host and plane, each in its host's namespace."""
    sockets: dict[tuple[int, int], socket.socket] = {}
    try:
        for host in plan.HOSTS:
            with inside(f"h{host}"):
                for plane in plan.PLANES:
                    one = sockets[host, plane] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                    one.setblocking(False)
                    one.bind((plan.address(host, plane), PORT))
        yield Prober(sockets)
    finally:
        for one in sockets.values():
            one.close()


class Prober:
    def __init__(self, sockets: dict[tuple[int, int], socket.socket]) -> None:
        self.sockets = sockets
        self.selector = selectors.DefaultSelector()
        for one in sockets.values():
            self.selector.register(one, selectors.EVENT_READ)
        self.number = 0

    def round(self, probes: int, paths: Sequence[Path] = PATHS) -> list[Row]:
        """Send `probes` over every path and wait for the answers; a row a path."""
        began = datetime.now(UTC)
        sent: dict[int, tuple[int, int]] = {}
        times: list[list[float]] = [[] for _ in paths]
        for turn in range(probes):
            for place, path in enumerate(paths):
                self.number = (self.number + 1) % 2**32
                sent[self.number] = (place, time.perf_counter_ns())
                self._send(path)
                if turn * len(paths) + place and not place % BURST:
                    self._receive(sent, times, 0)
        deadline = time.perf_counter() + PATIENCE
        while sent and (left := deadline - time.perf_counter()) > 0:
            self._receive(sent, times, left)
        while sent and self._receive(sent, times, 0):
            pass  # what waits here is not lost: a busy machine kept this process from reading it
        return [_row(path, began, probes, found) for path, found in zip(paths, times, strict=True)]

    def _send(self, path: Path) -> None:
        to = (plan.address(path.dst, path.plane), PORT)
        try:
            self.sockets[path.src, path.plane].sendto(_PACKET.pack(_ASK, self.number), to)
        except OSError:
            return  # the host's own link is down: the probe is lost before it left

    def _receive(self, sent: dict[int, tuple[int, int]], times: list[list[float]], seconds: float) -> bool:
        """Read what came, waiting at most so long; whether anything did."""
        ready = self.selector.select(seconds)
        for key, _ in ready:
            here = key.fileobj
            assert isinstance(here, socket.socket)
            for packet, sender in _waiting(here):
                sort, number = _PACKET.unpack(packet)
                if sort == _ASK:
                    _answer(here, number, sender)
                elif number in sent:
                    place, left = sent.pop(number)
                    times[place].append((time.perf_counter_ns() - left) / 1000)
        return bool(ready)


def _waiting(here: socket.socket) -> Iterator[tuple[bytes, Any]]:
    while True:
        try:
            packet, sender = here.recvfrom(64)
        except BlockingIOError:
            return
        except OSError:  # an ICMP answer to an earlier probe, such as "host unreachable"
            continue
        if len(packet) == _PACKET.size:
            yield packet, sender


def _answer(here: socket.socket, number: int, sender: Any) -> None:
    try:
        here.sendto(_PACKET.pack(_ANSWER, number), sender)
    except OSError:
        return


def _row(path: Path, began: datetime, sent: int, found: list[float]) -> Row:
    return {
        "time": began.isoformat(),
        "src": f"host/h{path.src}",
        "dst": f"host/h{path.dst}",
        "sent": sent,
        "lost": sent - len(found),
        "rtt_us": [round(one, 1) for one in found],
        "hops": list(plan.hops(path.src, path.dst, path.plane)),
    }
