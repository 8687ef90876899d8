"""Receivers for tests: real HTTP servers on this machine that remember what they got."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[["Got"], tuple[int, dict[str, str], bytes]]


@dataclass(frozen=True, slots=True)
class Got:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Sink:
    port: int
    got: list[Got] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"


def _ok(_: Got) -> tuple[int, dict[str, str], bytes]:
    return 200, {}, b"thanks"


@contextmanager
def http_sink(answer: Answer = _ok) -> Iterator[Sink]:
    """An HTTP server that answers as `answer` says; requests are remembered before it is asked."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            got = Got(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            sink.got.append(got)
            status, headers, text = answer(got)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(text)

        do_GET = do_PUT = do_POST

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    sink = Sink(server.server_address[1])
    with _serving(server):
        yield sink


@contextmanager
def raw_sink(talk: Callable[[socket.socket], None]) -> Iterator[Sink]:
    """A TCP server that talks as it likes: for trickling and lying receivers."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                talk(self.request)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    server = Server(("127.0.0.1", 0), Handler)
    with _serving(server):
        yield Sink(server.server_address[1])


@contextmanager
def _serving(server: socketserver.TCPServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
