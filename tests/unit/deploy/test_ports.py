"""Ports of the servers are looked at before anything starts."""

from __future__ import annotations

import socket

import pytest
from django.conf import settings

from deploy.supervisor.supervisor import StartupError, open_ports


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
