"""ASGI front of the web process: reads each body on the event loop, then runs the WSGI application on a thread.

A thread is taken only when the whole body is here, so that a slow sender holds a connection and some memory and never a
thread. What is here:

- A deadline for every body: `DOSSIER_BODY_TIMEOUT_SECONDS`, and one second more for each RATE bytes that came.
- A body above SMALL bytes is read on only from a sender with a valid key or session. Without one a body may have SMALL
  bytes, and STRANGERS of them may be under way at a time.
- Liveness is answered on the loop, readiness and metrics have threads of their own.
- Intake (the endpoints of machines) may take every thread. All else together may take `DOSSIER_WEB_MAX_READS` of
  them, people who have not signed in an eighth. A read beyond that waits READ_PATIENCE seconds and is refused then,
  because reads are repeated; a write waits.
"""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from wsgiref.types import WSGIApplication, WSGIEnvironment

SMALL = 64 * 2**10
"""Bytes of a body that are read from anybody."""
RATE = 16 * 2**10
"""Bytes a second that a sender must keep up once DOSSIER_BODY_TIMEOUT_SECONDS are over."""
STRANGERS = 256
"""Unfinished bodies of unknown senders at a time in one process."""
WAITING = 200
"""Requests that may wait for a thread at a time, intake not counted."""
READ_PATIENCE = 10.0
"""Seconds that a read waits for its turn: consoles that show the same change ask for it at the same moment, and a page
that is some seconds late is better than none. What waits takes no thread; reads take half of WAITING at most, so that
they do not have an acknowledgement refused."""
GRACE = 0.5
"""Seconds before the sender of an unfinished body is asked for its key or session."""
LIVENESS = "/healthz"
PROBES = (LIVENESS, "/readyz", "/metrics")
FILES = "/static/"
SIGN_IN = "/accounts/"
BUSY = "Dossier is busy: too many requests at the same time. Try again in a second."
SLOW = "Nothing was stored: the body did not arrive in time."

T = TypeVar("T")
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Sender:
    """A sender as far as it is known without its body. `name` is empty for an unknown one; `most` is the largest body,
    in bytes, that it may send here."""

    name: str
    most: int


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes


class GatewayRefusedError(Exception):
    """The request is answered without the application."""

    def __init__(self, status: int, detail: str, retry_after: int | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.retry_after = status, detail, retry_after

    def answer(self) -> Answer:
        # Plain text: the console's scripts take that for "not now" and ask again.
        body = f"{self.detail}\n".encode()
        headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
        headers += [("Connection", "close"), ("Cache-Control", "no-store")]
        if self.retry_after is not None:
            headers.append(("Retry-After", str(self.retry_after)))
        return Answer(self.status, headers, body)


class UnreadBodyError(Exception):
    """The application refuses the request by its headers."""


class UnreadBody(io.RawIOBase):
    """The body of a request that the application refuses by its headers: reading it raises OSError."""

    def read(self, _size: int = -1) -> bytes:
        raise OSError("the body was not read")

    def readline(self, _size: int | None = -1) -> bytes:
        return self.read()


@dataclass(frozen=True, slots=True)
class Limits:
    """`threads`: of the application; `others`: how many may serve what is not intake; `seconds`:
    DOSSIER_BODY_TIMEOUT_SECONDS."""

    threads: int
    others: int
    seconds: float


@dataclass(slots=True)
class Gateway:
    """ASGI application around a WSGI one.

    `is_intake(environ)`: whether this is an endpoint of machines. `identify(environ)`: who sends, asked on a thread.
    `refused()`: called for each read that was refused.
    """

    pages: WSGIApplication
    limits: Limits
    is_intake: Callable[[WSGIEnvironment], bool]
    identify: Callable[[WSGIEnvironment], Sender]
    refused: Callable[[], None] = lambda: None
    _threads: ThreadPoolExecutor = field(init=False)
    _probes: ThreadPoolExecutor = field(init=False)
    _others: asyncio.Semaphore = field(init=False)
    _visitors: asyncio.Semaphore = field(init=False)
    _large: asyncio.Semaphore = field(init=False)
    _large_of: dict[str, asyncio.Semaphore] = field(default_factory=dict)
    _unknown: int = 0
    _waiting: int = 0

    def __post_init__(self) -> None:
        self._threads = ThreadPoolExecutor(self.limits.threads, "web")
        self._probes = ThreadPoolExecutor(2, "probe")
        self._others = asyncio.Semaphore(max(1, min(self.limits.others, self.limits.threads)))
        self._visitors = asyncio.Semaphore(max(1, self.limits.threads // 8))
        self._large = asyncio.Semaphore(self.limits.threads)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        environ = environ_of(scope)
        try:
            answer = await self._answer(environ, receive)
        except GatewayRefusedError as error:
            answer = error.answer()
        except ConnectionError:
            return  # the sender is gone
        await respond(send, answer)

    async def _answer(self, environ: WSGIEnvironment, receive: Receive) -> Answer:
        path = environ["PATH_INFO"]
        if path == LIVENESS:
            return run(self.pages, environ)
        if path in PROBES:
            return await self._run(environ, self._probes)
        intake = self.is_intake(environ)
        async with self._body(environ, receive, intake=intake):
            if intake:
                return await self._run(environ, self._threads)
            async with self._admitted(environ):
                return await self._run(environ, self._threads)

    async def on_thread(self, work: Callable[[WSGIEnvironment], T], environ: WSGIEnvironment) -> T:
        """Result of `work`, run on a thread of the application."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, environ)

    async def _run(self, environ: WSGIEnvironment, threads: ThreadPoolExecutor) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(threads, run, self.pages, environ)

    # Threads
    # ------------------------------------------------------------------------------------------------------
    @asynccontextmanager
    async def _admitted(self, environ: WSGIEnvironment) -> AsyncIterator[None]:
        """Around a request of a person or of the API. Raises GatewayRefusedError where it would wait too long."""
        is_file = environ["PATH_INFO"].startswith(FILES)
        is_read = environ["REQUEST_METHOD"] in ("GET", "HEAD") and not is_file
        if self._waiting >= (WAITING // 2 if is_read else WAITING):
            self.refused()
            raise GatewayRefusedError(503, BUSY, 1)
        async with AsyncExitStack() as held:
            self._waiting += 1
            try:
                if is_visitor(environ) and not is_file:
                    await held.enter_async_context(self._visitors)
                async with asyncio.timeout(READ_PATIENCE if is_read else None):
                    await held.enter_async_context(self._others)
            except TimeoutError:
                self.refused()
                raise GatewayRefusedError(503, BUSY, 1) from None
            finally:
                self._waiting -= 1
            yield

    # Bodies
    # ------------------------------------------------------------------------------------------------------
    @asynccontextmanager
    async def _body(self, environ: WSGIEnvironment, receive: Receive, *, intake: bool) -> AsyncIterator[None]:
        """Around a request with its body in `wsgi.input`. Raises GatewayRefusedError, or ConnectionError for a sender
        gone."""
        length = content_length(environ)
        async with AsyncExitStack() as held:
            if length != 0:
                body = Body(receive, self.limits.seconds, length)
                try:
                    environ["wsgi.input"] = await self._read(environ, body, held)
                except TimeoutError:
                    # Machines repeat after 503 what they give up after a 408.
                    raise (
                        GatewayRefusedError(503, SLOW, 5) if intake else GatewayRefusedError(408, SLOW)
                    ) from None
            yield

    async def _read(self, environ: WSGIEnvironment, body: Body, held: AsyncExitStack) -> io.IOBase:
        """The body, or one that cannot be read where the application refuses the request by its headers.

        `held` has what a body takes until it is answered. Raises TimeoutError, GatewayRefusedError, ConnectionError.
        """
        reading, known = asyncio.current_task(), list[asyncio.Task[Sender]]()

        def identify() -> None:
            known.append(asyncio.ensure_future(self._known(environ, body, held)))
            known[0].add_done_callback(stop)
            # One that ends after the request would take a place of an unknown sender and never leave it.
            held.callback(known[0].cancel)

        def stop(of: asyncio.Task[Sender]) -> None:
            if not of.cancelled() and of.exception() is not None and reading is not None:
                reading.cancel()

        # Read here and not in a task beside a timer, which would be a tenth of what an alert costs.
        grace = asyncio.get_running_loop().call_later(GRACE, identify)
        try:
            if await body.read(SMALL) and body.size <= SMALL:
                return body.file()
        except asyncio.CancelledError:
            if reading is None or not known or not known[0].done() or known[0].exception() is None:
                raise
            reading.uncancel()
        finally:
            grace.cancel()
            reading = None
        try:
            sender = await (known[0] if known else self._known(environ, body, held))
        except UnreadBodyError:
            return UnreadBody()
        if sender.name and not await body.read(min(SMALL, sender.most)):
            # A sender has places of its own. The wait for one has no deadline: meanwhile the body lies unread.
            mine = self._large_of.setdefault(sender.name, asyncio.Semaphore(max(1, self.limits.threads // 2)))
            await held.enter_async_context(mine)
            await held.enter_async_context(self._large)
        await body.read(sender.most)
        return body.file()

    async def _known(self, environ: WSGIEnvironment, body: Body, held: AsyncExitStack) -> Sender:
        """The sender of a body that is read on. Raises UnreadBodyError, GatewayRefusedError."""
        sender = await self.on_thread(self.identify, environ)
        if sender.most == 0 or (body.length is not None and body.length > sender.most):
            if not sender.name and sender.most:
                raise GatewayRefusedError(
                    413, f"Nothing was stored: without signing in a body has at most {sender.most} bytes."
                )
            raise UnreadBodyError
        if not sender.name:
            if self._unknown >= STRANGERS:
                raise GatewayRefusedError(503, BUSY, 1)
            self._unknown += 1
            held.callback(self._leave)
        return sender

    def _leave(self) -> None:
        self._unknown -= 1


class Body:
    """A body as it comes. `length` is None for one that comes in chunks of unknown number."""

    def __init__(self, receive: Receive, seconds: float, length: int | None) -> None:
        self.length = length
        self._receive, self._seconds = receive, seconds
        self._parts: list[bytes] = []
        self.size = 0
        self._spent = 0.0
        self.complete = False

    async def read(self, most: int) -> bool:
        """Read on until the body is complete or has more than `most` bytes; says whether it is complete.

        Raises TimeoutError at its deadline, ConnectionError when the sender has gone. Who cancels it must not read on:
        a message may be lost.
        """
        clock = asyncio.get_running_loop().time
        while not self.complete and self.size <= most:
            began = clock()
            async with asyncio.timeout(self._seconds + self.size / RATE - self._spent):
                message = await self._receive()
            self._spent += clock() - began
            if message["type"] == "http.disconnect":
                raise ConnectionResetError
            self._parts.append(message.get("body", b""))
            self.size += len(self._parts[-1])
            self.complete = not message.get("more_body", False)
        if self.complete and self.length is not None and self.size < self.length:
            raise ConnectionResetError  # cut short
        return self.complete

    def file(self) -> io.BytesIO:
        return io.BytesIO(self._parts[0] if len(self._parts) == 1 else b"".join(self._parts))


async def respond(send: Send, answer: Answer) -> None:
    """Send an answer, whole."""
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


def content_length(environ: WSGIEnvironment) -> int | None:
    """Bytes of the body by its header; None where it comes in chunks."""
    if "HTTP_TRANSFER_ENCODING" in environ:
        return None
    length = environ.get("CONTENT_LENGTH", "")
    return int(length) if length.isdecimal() else 0


def is_visitor(environ: WSGIEnvironment) -> bool:
    """Whether this comes from somebody who has not signed in, or is just about to."""
    if environ["PATH_INFO"].startswith(SIGN_IN):
        return True
    return "HTTP_AUTHORIZATION" not in environ and "sessionid=" not in environ.get("HTTP_COOKIE", "")


def run(pages: WSGIApplication, environ: WSGIEnvironment) -> Answer:
    """The answer of the WSGI application, whole."""
    rows: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(
        status: str, headers: list[tuple[str, str]], _exc_info: Any = None
    ) -> Callable[[bytes], object]:
        rows.append((status, headers))
        return lambda _: None

    result: Iterable[bytes] = pages(environ, start_response)
    try:
        body = b"".join(result)
    finally:
        if hasattr(result, "close"):
            result.close()
    status, headers = rows[-1]
    return Answer(int(status.partition(" ")[0]), headers, body)


def environ_of(scope: Scope) -> WSGIEnvironment:
    """The WSGI environment (PEP 3333) of an ASGI scope, with an empty body."""
    host, port = scope.get("server") or ("localhost", 0)
    environ: WSGIEnvironment = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": scope["path"].encode().decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": host,
        "SERVER_PORT": str(port),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": (scope.get("client") or ("",))[0],
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        "wsgi.input_terminated": True,
    }
    for raw, entry in scope["headers"]:
        if b"_" in raw:
            continue  # would pass for the header with a dash, that a proxy in front sets
        name, value = _variable(raw), entry.decode("latin-1")
        if name in environ:
            value = f"{environ[name]}{'; ' if name == 'HTTP_COOKIE' else ','}{value}"
        environ[name] = value
    return environ


_variables: dict[bytes, str] = {}


def _variable(header: bytes) -> str:
    """CGI's name of a header; the usual ones are remembered."""
    if (known := _variables.get(header)) is not None:
        return known
    name = header.decode("latin-1").upper().replace("-", "_")
    name = name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{name}"
    if len(_variables) < 1000:
        _variables[header] = name
    return name
