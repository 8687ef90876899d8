"""Many connections served by one thread: what sends a benchmark's requests is to cost as little as it can, because it
shares the machine with what is measured. A thread for each connection costs twice to four times as much.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Sent:
    """Number of requests that were accepted, the seconds that they took, and the wait of each in milliseconds."""

    requests: int
    seconds: float
    waits: list[float]


@dataclass(slots=True)
class _Connection:
    socket: socket.socket
    unsent: memoryview = field(default_factory=lambda: memoryview(b""))
    waits: bool = False  # until the socket takes more
    answer: bytes = b""
    began: float = 0.0


def send(port: int, requests: Iterable[bytes], clients: int, seconds: float, yes: bytes) -> Sent:
    """Post whole HTTP requests from `clients` connections to loopback for a while, each the next when it is answered.

    Raises AssertionError for an answer whose first line is without `yes`, ConnectionError when the server hangs up.
    """
    source, waits = iter(requests), list[float]()
    begun = time.perf_counter()
    with selectors.DefaultSelector() as selector:
        try:
            for _ in range(clients):
                connection = _Connection(socket.create_connection(("127.0.0.1", port)))
                connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection.socket.setblocking(False)
                selector.register(connection.socket, selectors.EVENT_READ, connection)
                _post(selector, connection, source)
            while selector.get_map():
                for key, ready in selector.select(60):
                    connection = key.data
                    if ready & selectors.EVENT_WRITE:
                        _go_on(selector, connection)
                    if ready & selectors.EVENT_READ and _answered(connection):
                        waits.append((time.perf_counter() - connection.began) * 1000)
                        assert yes in connection.answer[:20], connection.answer.decode(errors="replace")
                        if time.perf_counter() < begun + seconds:
                            _post(selector, connection, source)
                        else:
                            selector.unregister(connection.socket)
                            connection.socket.close()
        finally:
            for key in list(selector.get_map().values()):
                key.data.socket.close()
    return Sent(len(waits), time.perf_counter() - begun, waits)


def _post(selector: selectors.BaseSelector, connection: _Connection, source: Iterator[bytes]) -> None:
    connection.unsent, connection.answer = memoryview(next(source)), b""
    connection.began = time.perf_counter()
    _go_on(selector, connection)


def _go_on(selector: selectors.BaseSelector, connection: _Connection) -> None:
    """Send what the socket takes; what it does not take at once is sent when it can be."""
    with contextlib.suppress(BlockingIOError):
        connection.unsent = connection.unsent[connection.socket.send(connection.unsent) :]
    if bool(connection.unsent) != connection.waits:
        connection.waits = not connection.waits
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.waits else 0)
        selector.modify(connection.socket, events, connection)


def _answered(connection: _Connection) -> bool:
    """Whether the answer is whole: status line, headers, and as much body as they say."""
    received = connection.socket.recv(65_536)
    if not received:
        raise ConnectionError(f"the server hung up after {connection.answer[:200]!r}")
    connection.answer += received
    return is_whole(connection.answer)


def is_whole(answer: bytes) -> bool:
    head, found, body = answer.partition(b"\r\n\r\n")
    length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
    return bool(found) and len(body) >= int(length or b"0")
