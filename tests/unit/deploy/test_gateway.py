"""The gateway in front of the WSGI application: who gets a thread, and how long a body may take."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from deploy.gateway import SMALL, Gateway, Limits, Sender

PATIENCE = 30  # seconds
Part = bytes | float | None
"""Of a body; a number of seconds before the next one, None for a sender that sends no more and stays."""


class Application:
    """A WSGI application that answers the bytes of its body; reads of /slow wait until they may go."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.inside = threading.Semaphore(0)

    def __call__(self, environ: Any, start_response: Any) -> Any:
        if environ["PATH_INFO"] == "/slow":
            self.inside.release()
            assert self.go.wait(PATIENCE)
        if environ["PATH_INFO"] == "/broken":
            raise RuntimeError("broken")
        try:
            body = environ["wsgi.input"].read()
        except OSError:
            start_response("401 Unauthorized", [])
            return []
        start_response("200 OK", [])
        return [str(len(body)).encode()]


LIMITS = Limits(threads=4, others=3, seconds=1000)


def gateway(application: Application, limits: Limits = LIMITS) -> Gateway:
    """Bob has a key for 1 MB; nobody else is known."""

    def identify(environ: Any) -> Sender:
        if environ.get("HTTP_AUTHORIZATION") == "bob":
            return Sender("bob", 10**6)
        return Sender("", 0 if environ["PATH_INFO"].startswith("/intake") else SMALL)

    return Gateway(application, limits, lambda environ: environ["PATH_INFO"].startswith("/intake"), identify)


async def ask(
    application: Gateway,
    path: str,
    *parts: Part,
    method: str = "GET",
    length: int | None = None,
    authorization: str = "",
) -> tuple[int, bytes]:
    """Status and body of the answer."""
    if parts and length is None:
        length = sum(len(part) for part in parts if isinstance(part, bytes))
    told = {"authorization": authorization} if authorization else {}
    if length is not None:
        told["content-length"] = str(length)
    scope = {
        "type": "http", "method": method, "path": path, "query_string": b"", "http_version": "1.1", "scheme": "http",
        "headers": [(name.encode(), value.encode()) for name, value in told.items()],
    }  # fmt: skip
    coming = list(parts)
    answered: list[Any] = []

    async def receive() -> dict[str, Any]:
        if not coming:
            return {"type": "http.disconnect"}
        part = coming.pop(0)
        if isinstance(part, float):
            await asyncio.sleep(part)
            part = coming.pop(0)
        if part is None:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": part, "more_body": bool(coming)}

    async def send(message: Any) -> None:
        answered.append(message)

    await application(scope, receive, send)
    return (answered[0]["status"], answered[1]["body"]) if answered else (0, b"")


def trial(story: Callable[[Application], Coroutine[Any, Any, None]]) -> None:
    application = Application()
    try:
        asyncio.run(asyncio.wait_for(story(application), PATIENCE))
    finally:
        application.go.set()


async def inside(application: Application, number: int) -> None:
    for _ in range(number):
        assert await asyncio.to_thread(application.inside.acquire, timeout=PATIENCE)


def test_a_read_that_waits_too_long_is_refused_and_intake_and_probes_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("deploy.gateway.READ_PATIENCE", 0.05)

    async def story(application: Application) -> None:
        front = gateway(application)
        known = "bob"
        slow = [asyncio.ensure_future(ask(front, "/slow", authorization=known)) for _ in range(LIMITS.others)]
        await inside(application, LIMITS.others)
        assert (await ask(front, "/incidents", authorization=known))[0] == 503
        for path in ("/intake", "/healthz", "/readyz", "/metrics"):
            assert (await ask(front, path))[0] == 200, path
        application.go.set()
        assert [(await one)[0] for one in slow] == [200] * LIMITS.others
        assert (await ask(front, "/incidents", authorization=known))[0] == 200

    trial(story)


def test_reads_that_wait_leave_room_for_a_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deploy.gateway.WAITING", 4)
    monkeypatch.setattr("deploy.gateway.READ_PATIENCE", 10 * PATIENCE)

    async def story(application: Application) -> None:
        front = gateway(application)
        slow = [
            asyncio.ensure_future(ask(front, "/slow", authorization="bob")) for _ in range(LIMITS.others + 2)
        ]
        await inside(application, LIMITS.others)
        assert (await ask(front, "/incidents", authorization="bob"))[0] == 503
        write = asyncio.ensure_future(ask(front, "/acknowledge", method="POST", authorization="bob"))
        application.go.set()
        assert (await write)[0] == 200
        assert [(await one)[0] for one in slow] == [200] * len(slow)

    trial(story)


def test_reads_at_the_same_moment_wait_for_each_other() -> None:
    async def story(application: Application) -> None:
        front = gateway(application)
        asked = [asyncio.ensure_future(ask(front, "/slow", authorization="bob")) for _ in range(50)]
        await inside(application, LIMITS.others)
        assert not application.inside.acquire(blocking=False)
        application.go.set()
        assert [(await one)[0] for one in asked] == [200] * 50

    trial(story)


def test_a_write_waits_for_a_thread() -> None:
    async def story(application: Application) -> None:
        front = gateway(application)
        known = "bob"
        slow = [asyncio.ensure_future(ask(front, "/slow", authorization=known)) for _ in range(LIMITS.others)]
        await inside(application, LIMITS.others)
        write = asyncio.ensure_future(ask(front, "/incidents", b"abc", method="POST", authorization=known))
        await asyncio.sleep(0)
        assert not write.done()
        application.go.set()
        assert await write == (200, b"3")
        await asyncio.gather(*slow)

    trial(story)


def test_people_who_have_not_signed_in_leave_threads_to_others() -> None:
    async def story(application: Application) -> None:
        front = gateway(application)
        slow = [asyncio.ensure_future(ask(front, "/slow")) for _ in range(20)]
        await inside(application, 1)
        assert (await ask(front, "/incidents", authorization="bob"))[0] == 200
        assert not application.inside.acquire(blocking=False)
        application.go.set()
        await asyncio.gather(*slow)

    trial(story)


def test_threads_are_free_again_after_a_request_that_failed() -> None:
    async def story(application: Application) -> None:
        front = gateway(application)
        for _ in range(2 * LIMITS.threads):
            with pytest.raises(RuntimeError, match="broken"):
                await ask(front, "/broken")
        assert (await ask(front, "/"))[0] == 200

    trial(story)


@pytest.mark.parametrize(
    ("path", "status", "known"),
    [("/form", 408, ""), ("/intake", 503, "bob"), ("/intake", 401, "")],
)
def test_a_body_that_stays_away_is_given_up(path: str, status: int, known: str) -> None:
    async def story(application: Application) -> None:
        front = gateway(application, replace(LIMITS, seconds=0.01))
        # The unknown sender of intake is refused by its headers, long before its deadline.
        front = front if status != 401 else gateway(application)
        assert (await ask(front, path, b"a", None, length=100, method="POST", authorization=known))[
            0
        ] == status

    trial(story)


def test_unfinished_bodies_take_no_thread() -> None:
    async def story(application: Application) -> None:
        front = gateway(application)
        slow = [
            asyncio.ensure_future(
                ask(front, "/intake", b"a", None, length=9, method="POST", authorization="bob")
            )
            for _ in range(60)
        ]
        slow += [
            asyncio.ensure_future(ask(front, "/form", b"a", None, length=9, method="POST")) for _ in range(60)
        ]
        await asyncio.sleep(0)
        for path in ("/intake", "/form"):
            assert await ask(front, path, b"abc", method="POST") == (200, b"3")
        for one in slow:
            one.cancel()
        await asyncio.gather(*slow, return_exceptions=True)

    trial(story)


@pytest.mark.parametrize(
    ("path", "size", "known", "status"),
    [
        ("/form", SMALL + 1, "", 413),
        ("/form", 10**6, "bob", 200),
        ("/intake", 10**6, "bob", 200),
        ("/intake", 10**6, "", 401),
        (
            "/intake",
            10**6 + 1,
            "bob",
            401,
        ),  # which the real application refuses by the length
    ],
)
def test_a_large_body_takes_a_known_sender(path: str, size: int, known: str, status: int) -> None:
    async def story(application: Application) -> None:
        parts = [b"a" * SMALL] * (size // SMALL) + [b"a" * (size % SMALL)]
        answer = await ask(gateway(application), path, *parts, method="POST", authorization=known)
        assert answer[0] == status
        assert status != 200 or int(answer[1]) == size

    trial(story)


def test_large_bodies_of_one_sender_that_never_end_leave_places_to_others() -> None:
    async def story(application: Application) -> None:
        front = gateway(application)
        one: Awaitable[Any] | None = None
        slow = []
        for _ in range(20):
            one = ask(
                front, "/intake", b"a" * (SMALL + 1), None, length=10**6, method="POST", authorization="bob"
            )
            slow.append(asyncio.ensure_future(one))
        while not front._large_of or not front._large_of["bob"].locked():
            await asyncio.sleep(0)
        assert not front._large.locked()
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)

    trial(story)


@pytest.mark.parametrize(("known", "statuses"), [("bob", {200}), ("", {200, 401})])
def test_a_body_that_comes_while_its_sender_is_asked_for_is_whole(
    known: str, statuses: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deploy.gateway.GRACE", 0.0)

    async def story(application: Application) -> None:
        front = gateway(application)

        async def one(number: int) -> tuple[int, bytes]:
            late = number * 2e-5  # seconds: before, at and after the moment when the sender is known
            parts = (b"ab", late, b"cd", late, b"e")
            return await ask(front, "/intake", *parts, length=5, method="POST", authorization=known)

        answers = [await one(number) for number in range(100)]
        assert {status for status, _ in answers} <= statuses
        assert {body for status, body in answers if status == 200} <= {b"5"}

    trial(story)


def test_a_sender_found_unknown_after_its_answer_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deploy.gateway.GRACE", 0.0)

    async def story(application: Application) -> None:
        front = gateway(application)
        known, found = front.identify, threading.Event()

        def identify(environ: Any) -> Sender:
            assert found.wait(PATIENCE)
            return known(environ)

        front.identify = identify
        answers = [await ask(front, "/form", b"ab", 0.01, b"c", length=3, method="POST") for _ in range(3)]
        found.set()
        assert answers == [(200, b"3")] * 3
        await asyncio.to_thread(front._threads.shutdown)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert front._unknown == 0

    trial(story)


def test_a_body_that_is_cut_short_reaches_nobody() -> None:
    async def story(application: Application) -> None:
        front = gateway(application)
        assert await ask(front, "/intake", b"abc", length=9, method="POST", authorization="bob") == (0, b"")

    trial(story)
