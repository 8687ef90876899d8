"""`/mcp` of the web server: Model Context Protocol over streamable HTTP, each POST on its own.

Tools, answers and errors are those of `dossier mcp` (`deploy.client.mcp`). What a tool asks of the API goes through the
gateway like any request, with the key of the POST: permissions, limits of threads and logs are the same. The package is
loaded with the first request, since it takes a second and few installations use it.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import urllib.error
import urllib.request
from collections.abc import Callable
from email.message import Message as Headers
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from wsgiref.types import WSGIEnvironment

from deploy.client.errors import UNREACHABLE, ClientError
from deploy.client.server import Server
from deploy.client.settings import Account
from deploy.gateway import (
    SLOW,
    Answer,
    Body,
    Gateway,
    GatewayRefusedError,
    Message,
    Receive,
    Scope,
    Send,
    content_length,
    environ_of,
    respond,
)

if TYPE_CHECKING:
    from mcp.server.mcpserver import Context
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

PATH = "/mcp"
LARGEST = 256 * 2**10
"""Bytes of a message."""
PASSED_ON = (
    b"authorization",
    b"host",
    b"forwarded",
    b"x-forwarded-for",
    b"x-forwarded-host",
    b"x-forwarded-proto",
)
"""Headers of the POST that its requests to the API have too."""
BEARER = "Bearer "
INVALID_REQUEST = -32600
"""Of JSON-RPC 2.0."""


class McpGateway:
    """ASGI application: `/mcp` is answered here, everything else by the gateway.

    `has_key(environ)`: whether the request has a valid key, asked on a thread; raises where the database is away.
    """

    def __init__(self, gateway: Gateway, has_key: Callable[[WSGIEnvironment], bool]) -> None:
        self._gateway, self._has_key = gateway, has_key
        self._manager: Callable[[], StreamableHTTPSessionManager] | None = None
        self._loading = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != PATH:
            await self._gateway(scope, receive, send)
            return
        try:
            message = await self._message(scope, receive)
        except GatewayRefusedError as error:
            await respond(send, _refusal(error))
        except ConnectionError:
            return  # the sender is gone
        else:
            await self._serve(scope, message, receive, send)

    async def _message(self, scope: Scope, receive: Receive) -> bytes:
        """The body of a POST with a key. Raises GatewayRefusedError, or ConnectionError for a sender gone."""
        if scope["method"] != "POST":
            raise GatewayRefusedError(405, f"{PATH} takes POST only: it has no sessions and no streams.")
        environ = environ_of(scope)
        if not await self._gateway.on_thread(self._has_key, environ):
            raise GatewayRefusedError(
                401, "The key is missing or not known. Send it as Authorization: Bearer KEY."
            )
        body = Body(receive, self._gateway.limits.seconds, content_length(environ))
        try:
            if await body.read(LARGEST) and body.size <= LARGEST:
                return body.file().getvalue()
        except TimeoutError:
            raise GatewayRefusedError(408, SLOW) from None
        raise GatewayRefusedError(413, f"A message has at most {LARGEST} bytes.")

    async def _serve(self, scope: Scope, message: bytes, receive: Receive, send: Send) -> None:
        parts = [message]

        async def received() -> Message:
            if parts:
                return {"type": "http.request", "body": parts.pop(), "more_body": False}
            return await receive()

        manager = (await self._loaded())()
        async with manager.run():
            await manager.handle_request(scope, received, send)

    async def _loaded(self) -> Callable[[], StreamableHTTPSessionManager]:
        async with self._loading:
            if self._manager is None:
                # On a thread: on a busy machine it takes longer than the supervisor waits for the event loop.
                self._manager = await asyncio.to_thread(self._load)
            return self._manager

    def _load(self) -> Callable[[], StreamableHTTPSessionManager]:
        """Factory of session managers: each serves one request."""
        from mcp.server.transport_security import TransportSecuritySettings

        from deploy.client.mcp import mcp_server

        logging.getLogger("mcp").setLevel(logging.WARNING)

        def connect(context: Context[Any, Any]) -> Server:
            posted = context.request_context.request
            assert posted is not None  # over HTTP there is one
            return GatewayServer(self._gateway, posted.scope)

        server = mcp_server(connect)
        # A key is in every request, so no name that resolves here can speak for a person: hosts are Django's to check.
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)

        def manager() -> StreamableHTTPSessionManager:
            server.streamable_http_app(json_response=True, stateless_http=True, transport_security=security)
            return server.session_manager

        manager()  # loads what it needs
        return manager


def _refusal(error: GatewayRefusedError) -> Answer:
    """As clients of the protocol show it: an error of JSON-RPC."""
    reason = {"code": INVALID_REQUEST, "message": error.detail}
    body = json.dumps({"jsonrpc": "2.0", "id": None, "error": reason}).encode()
    headers = [
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(body))),
        ("Connection", "close"),
    ]
    headers += {401: [("WWW-Authenticate", "Bearer")], 405: [("Allow", "POST")]}.get(error.status, [])
    return Answer(error.status, headers, body)


class GatewayServer(Server):
    """The API of this process with the key of a request, for a tool on a thread of anyio."""

    def __init__(self, gateway: Gateway, scope: Scope) -> None:
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        key = headers.get(b"authorization", b"").decode("latin-1").removeprefix(BEARER)
        super().__init__(Account(f"{scope['scheme']}://{host}", key))
        self._gateway, self._scope = gateway, scope

    def _open(self, request: urllib.request.Request, patience: float) -> io.BufferedIOBase:
        import anyio.from_thread

        try:
            answer: Answer = anyio.from_thread.run(self._ask, request, patience)
        except TimeoutError:
            raise ClientError("the API does not answer in time", UNREACHABLE) from None
        if answer.status < 300:
            return io.BytesIO(answer.body)
        headers = Headers()
        for name, value in answer.headers:
            headers[name] = value
        reason = HTTPStatus(answer.status).phrase
        body = io.BytesIO(answer.body)
        raise self.refusal(
            urllib.error.HTTPError(request.full_url, answer.status, reason, headers, body)
        ) from None

    async def _ask(self, request: urllib.request.Request, patience: float) -> Answer:
        """The answer of the gateway. Raises TimeoutError."""
        place = urlsplit(request.full_url)
        data = request.data if isinstance(request.data, bytes) else b""
        headers = [(name, value) for name, value in self._scope["headers"] if name in PASSED_ON]
        headers += [(b"content-type", b"application/json"), (b"content-length", str(len(data)).encode())]
        scope = {
            **self._scope,
            "method": request.get_method(),
            "path": place.path,
            "raw_path": place.path.encode(),
            "query_string": place.query.encode(),
            "headers": headers,
        }
        parts: list[Message] = [{"type": "http.request", "body": data, "more_body": False}]
        sent: list[Message] = []

        async def receive() -> Message:
            return parts.pop() if parts else {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            sent.append(message)

        await asyncio.wait_for(self._gateway(scope, receive, send), patience)
        start, *rest = sent
        named = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in start["headers"]]
        return Answer(start["status"], named, b"".join(one.get("body", b"") for one in rest))
