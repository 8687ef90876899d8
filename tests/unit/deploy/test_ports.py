"""Ports of the servers are looked at before anything starts."""

from __future__ import annotations

import socket
from contextlib import ExitStack, closing, suppress

import pytest
from django.conf import settings

from deploy.supervisor.programs import listen, listen_for
from deploy.supervisor.supervisor import StartupError, open_ports
from tests.senders.daemons import free_port


@pytest.mark.parametrize("bind", ["192.0.2.1", "2001:db8::1"])
def test_what_is_no_address_of_this_machine_is_named(bind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "BIND_ADDRESS", bind)
    with pytest.raises(
        StartupError, match=r"DOSSIER_BIND_ADDRESS is .* cannot be opened: .* such as 127\.0\.0\.1"
    ):
        open_ports()


def test_a_taken_port_is_named_with_one_that_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr(settings, "BIND_ADDRESS", "127.0.0.1")
        monkeypatch.setattr(settings, "PORT", taken.getsockname()[1])
        with pytest.raises(StartupError, match=rf"PORT {settings.PORT} is in use.*PORT=\d+ "):
            open_ports()


# Sockets
# ----------------------------------------------------------------------------------------------------------
def test_connections_are_spread_over_the_processes_of_a_port_and_leave_one_that_ended() -> None:
    port = free_port()
    opened = listen_for({"web-1": port, "web-2": port, "events": free_port()})
    first, second = opened["web-1"], opened["web-2"]
    with closing(first), closing(second), closing(opened["events"]):
        for one in (first, second):
            one.listen(256)
        with pytest.raises(OSError, match="in use"):
            listen(port)
        assert min(waiting(port, first, second)) > 25
        first.shutdown(socket.SHUT_RDWR)  # as the supervisor does for one that ended
        assert waiting(port, second) == [100]
        first.listen(256)
        assert min(waiting(port, first, second)) > 25


def waiting(port: int, *listening: socket.socket) -> list[int]:
    """Of a hundred connections those that each socket has."""
    taken = []
    with ExitStack() as held:
        for _ in range(100):
            held.enter_context(socket.create_connection(("127.0.0.1", port)))
        for one in listening:
            one.setblocking(False)
            count = 0
            with suppress(BlockingIOError):
                while True:
                    held.enter_context(one.accept()[0])
                    count += 1
            taken.append(count)
    return taken
