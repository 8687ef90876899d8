"""Connections of foreign code in this thread: to addresses that may be reached, and to no others.

Apprise's plugins open connections of their own, to hosts that people typed. Checking the name beforehand is not enough:
a name may point elsewhere a moment later (DNS rebinding), and a service may redirect. An audit hook of the interpreter
(PEP 578) sees the address of each connection, whatever library makes it. It is no sandbox: which plugins run at all is
decided by the list in `apprise`.
"""

from __future__ import annotations

import ipaddress
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from django.conf import settings

from incidents.security.outbound import AddressRefusedError, check


class _Guarded(threading.local):
    on = False
    refused = ""


_guarded = _Guarded()
_SENDS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})


class AddressNotAllowedError(PermissionError):
    """The address is not allowed; the message says why."""


@contextmanager
def guarded() -> Iterator[list[str]]:
    """Check this thread's connections within the block; yields a list that holds afterwards why one was refused."""
    _install()
    why: list[str] = []
    _guarded.on, _guarded.refused = True, ""
    try:
        yield why
    finally:
        _guarded.on = False
        if _guarded.refused:
            why.append(_guarded.refused)


@cache
def _install() -> None:
    sys.addaudithook(_audit)


def _audit(event: str, args: tuple[Any, ...]) -> None:
    # The hook outlives this module: when the interpreter ends, its names are None and sockets are still closed.
    if _guarded is None or not _guarded.on or event not in _SENDS:
        return
    address = args[1]
    if address is None:  # a socket that is connected already
        return
    host = address[0] if isinstance(address, tuple) and address else address
    try:
        check(ipaddress.ip_address(str(host).partition("%")[0]), settings.OUTBOUND_ALLOWED_NETWORKS)
    except AddressRefusedError as error:
        why = str(error)
    except ValueError:
        why = "blocked connection to an address outside the internet"
    else:
        return
    _guarded.refused = _guarded.refused or why
    raise AddressNotAllowedError(why)
