"""Bodies of status pages in a process: rendered by one request, whoever else comes has the last one."""

from __future__ import annotations

import threading
from datetime import datetime

from frontend.views.status_pages.bodies import Bodies, Body, Known


def body(text: str) -> Body:
    return Body.of(text, "text/plain")


def test_a_body_is_rendered_once_for_a_version() -> None:
    rendered: list[str] = []

    def render(slug: str, _: datetime) -> Body:
        rendered.append(slug)
        return body(f"{slug} {len(rendered)}")

    bodies = Bodies()
    first = [bodies.body("cloud", Known(1, True), "html", render) for _ in range(3)]
    assert {one.content for one in first} == {b"cloud 1"}
    assert bodies.body("cloud", Known(2, True), "html", render).content == b"cloud 2"
    assert first[0].etag != bodies.body("cloud", Known(2, True), "html", render).etag


def test_while_one_request_renders_the_others_have_the_last_body() -> None:
    bodies = Bodies()
    bodies.body("cloud", Known(1, True), "html", lambda _slug, _now: body("old"))
    begun, go_on = threading.Event(), threading.Event()

    def slowly(_slug: str, _now: datetime) -> Body:
        begun.set()
        assert go_on.wait(30)
        return body("new")

    thread = threading.Thread(target=bodies.body, args=("cloud", Known(2, True), "html", slowly))
    thread.start()
    assert begun.wait(30)
    during = bodies.body("cloud", Known(2, True), "html", slowly)
    go_on.set()
    thread.join()
    assert during.content == b"old"
    assert bodies.body("cloud", Known(2, True), "html", slowly).content == b"new"
