"""Tools for assistants, asked by the client of the Model Context Protocol: over stdio and over HTTP."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest
import uvicorn
from django.core.handlers.wsgi import WSGIHandler
from django.db import connections
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from deploy.gateway import Gateway, Limits, Sender
from deploy.mcp import McpGateway
from incidents import commands, queries
from incidents.commands import Report
from ingest.api import keys
from ingest.queries import Context
from tests.integration.analyzers.runs.cases import Door, healthy, work
from tests.places import ROOT

READ, WRITE = ("incidents:read",), ("incidents:read", "incidents:write")
TABLE = {"kind": "table", "title": "Disks", "columns": ["disk", "ms"], "rows": [["sda", 91.25]] * 20}


@pytest.fixture
def url(log_database: str) -> Iterator[str]:  # noqa: ARG001
    """The address of a web server whose application is that of `deploy.web`."""

    def pages(environ: Any, start_response: Any) -> Any:
        try:
            return [b"".join(WSGIHandler()(environ, start_response))]
        finally:
            connections.close_all()

    def has_key(environ: Any) -> bool:
        try:
            return keys.authenticate(environ.get("HTTP_AUTHORIZATION")) is not None
        finally:
            connections.close_all()

    limits = Limits(threads=4, others=4, seconds=60)
    gateway = Gateway(pages, limits, lambda _: False, lambda _: Sender("somebody", 10**6))
    server = uvicorn.Server(uvicorn.Config(McpGateway(gateway, has_key), lifespan="off", log_config=None))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join()


@asynccontextmanager
async def over_http(url: str, key: str) -> AsyncIterator[Any]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"} if key else {}) as client,
        streamable_http_client(f"{url}/mcp", http_client=client) as streams,
    ):
        yield streams


def over_stdio(url: str, key: str) -> Any:
    environment = {**os.environ, "DOSSIER_URL": url, "DOSSIER_KEY": key}
    return stdio_client(
        StdioServerParameters(
            command=sys.executable, args=["-m", "deploy.client", "mcp"], env=environment, cwd=ROOT
        )
    )


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    assert answer.structured_content is not None
    return answer.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    (line,) = [one.text for one in answer.content if one.type == "text"]
    assert "\n" not in line
    return line


@pytest.mark.usefixtures("tally")
def test_an_assistant_reads_incidents_and_runs_with_what_they_rest_on(url: str) -> None:
    opened = commands.open_incident(
        Report("Rack 12 loses packets", component="tor/dc1-t12", evidence=(TABLE,)),
        Context("key:monitoring"),
    ).incident
    Door().post(healthy(a=9))
    key = keys.create("assistant", WRITE)

    async def night(client: Client) -> None:
        (listed,) = (await call(client, "list_incidents", search="rack"))["incidents"]
        assert (listed["number"], listed["title"]) == (opened.number, "Rack 12 loses packets")
        shown = await call(client, "read_incident", incident=str(opened.number))
        assert shown["incident"]["component"] == "tor/dc1-t12"
        (piece,) = shown["evidence"]
        assert (len(piece["rows"]), piece["more_rows"]) == (12, 8)
        cited = {one["event"]: one["position"] for one in shown["citations"] if "event" in one}
        assert {one["id"]: one["position"] for one in shown["events"]} == cited

        queued = await call(client, "run_analysis", analyzer="tally", length="1h", wait=0)
        assert queued["verdict"] is None
        await anyio.to_thread.run_sync(work)
        run = queued["run"]["id"]
        judged = await call(client, "read_run", run=run)
        assert [one["component"] for one in judged["verdict"]["suspects"]] == ["tor/a"]
        (citation,) = judged["citations"]
        assert (citation["run"], citation["window"]) == (run, judged["run"]["window"])
        assert citation["window_hash"]
        again = (await call(client, "what_if", run=run, params={}, wait=0))["run"]["id"]
        assert again != run
        runs = await call(client, "list_runs", analyzer="tally")
        assert {one["id"] for one in runs["runs"]} == {run, again}
        assert (await call(client, "on_call"))["schedules"] == []
        reason = {"reason": "latency of s7", "cites": [run]}
        made = await call(client, "propose_hand_over", incident="1", team="storage", **reason)
        (proposal,) = made["proposals"]["open"]
        assert (proposal["text"], proposal["cites"]) == ("hand over to storage", [run])
        theory = await call(
            client, "check_theory", incident="1", hops=[{"cause": "host/a", "effect": "tor/dc1-t12"}]
        )
        assert theory["theory"]["verdict"] == "cannot be tested"
        assert theory["citations"][-1]["position"] == theory["theory"]["position"]
        silence = {"matchers": 'alertname="DiskSlow"', "minutes": 60}
        made = await call(client, "propose_silence", incident="1", reason="swap", **silence)
        assert len(made["proposals"]["open"]) == 2

    async def both() -> None:
        async with Client(over_http(url, key)) as client:
            await night(client)
            http = await client.list_tools()
        async with Client(over_stdio(url, key)) as client:
            assert (await call(client, "list_incidents"))["incidents"][0]["number"] == opened.number
            assert http.tools == (await client.list_tools()).tools
            assert await refused(client, "read_run", run="yesterday") == "there is no run yesterday"

    anyio.run(both)
    assert queries.get("1").incident.team == "network"
    _refusals(url)


def _refusals(url: str) -> None:
    """A refusal, of what a key may not do or what has no meaning, is one line."""
    reader = keys.create("reader", READ)

    async def asked() -> None:
        async with Client(over_http(url, reader)) as client:
            assert await refused(client, "read_incident", incident="99") == "there is no incident 99"
            assert "is not a field" in await refused(client, "list_incidents", search="foo:bar")
            assert "limit: " in await refused(client, "list_runs", limit=0)
            unknown = await refused(client, "list_runs", state="done")
            assert unknown == "state: not an argument of list_runs; use analyzer, status, region, limit"
            denied = await refused(client, "run_analysis", analyzer="tally")
            assert denied == "The key lacks the scope incidents:write."
            denied = await refused(
                client, "propose_hand_over", incident="1", team="storage", reason="because"
            )
            assert denied == "The key lacks the scope incidents:propose."
        for key in ("", "dsr_unknown"):
            with pytest.raises(BaseExceptionGroup) as caught:
                async with Client(over_http(url, key)):
                    pass
            assert caught.group_contains(MCPError, match="The key is missing or not known")
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {reader}"}) as plain:
            assert (await plain.get(f"{url}/mcp")).status_code == 405
            assert (await plain.post(f"{url}/mcp", content=b" " * 300_000)).status_code == 413

    anyio.run(asked)
