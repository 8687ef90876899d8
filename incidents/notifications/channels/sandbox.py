"""What foreign code may do in the thread that runs it: speak to allowed addresses, and nothing else.

Apprise has more than a hundred plugins, and its addresses are what people typed. Some would read a file that an address
names, start a program, or speak to whatever an address points to. An audit hook of the interpreter (PEP 578) sees all
of that, whatever library does it and after every redirect or resolution of a name; it refuses in guarded threads alone.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import certifi
from django.conf import settings

from incidents.domain.addresses import AddressRefusedError, check


class _Guarded(threading.local):
    on = False
    refused = ""


_guarded = _Guarded()
_RUNS = frozenset({"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty"})
_SENDS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_CHANGES = frozenset({"os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod"})


class SandboxError(PermissionError):
    """The guard refused."""


@contextmanager
def guarded() -> Iterator[list[str]]:
    """Guard this thread within the block; yields a list that afterwards holds why something was refused, if it was."""
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
    _readable()  # not from inside the hook
    sys.addaudithook(_audit)


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if not _guarded.on:
        return
    if event in _SENDS:
        _check_address(args[1])
    elif event in _RUNS or event in _CHANGES:
        _refuse(f"it would do what no message needs ({event})")
    elif event == "open":
        _check_file(args[0], args[1])


def _check_address(address: Any) -> None:
    if address is None:  # a socket that is connected already
        return
    host = address[0] if isinstance(address, tuple) and address else address
    try:
        check(ipaddress.ip_address(str(host).partition("%")[0]), settings.OUTBOUND_ALLOWED_NETWORKS)
    except AddressRefusedError as error:
        _refuse(str(error))
    except ValueError:
        _refuse("it would speak to something that is no address of the internet")


def _check_file(path: Any, mode: Any) -> None:
    if isinstance(path, int):
        return
    name = os.path.normpath(os.fsdecode(path))  # `…/../` leads out of where it begins
    writes = isinstance(mode, str) and any(letter in mode for letter in "wax+")
    if writes or not any(name == place or name.startswith(f"{place}/") for place in _readable()):
        _refuse("it would open a file of this machine")


@cache
def _readable() -> tuple[str, ...]:
    """Python itself, its packages, certificates and time zones."""
    trusted = ssl.get_default_verify_paths()
    places = [
        sys.prefix,
        sys.base_prefix,
        sys.exec_prefix,
        str(Path(certifi.where()).parent),
        "/usr/share/zoneinfo/",
    ]
    places += [place for place in (trusted.cafile, trusted.capath, trusted.openssl_cafile) if place]
    places += [
        "/etc/ssl/certs",
        "/usr/lib/ssl/certs",
        "/etc/mime.types",
        "/etc/apache2/mime.types",
        "/etc/localtime",
    ]
    return tuple(os.path.normpath(place) for place in places)


def _refuse(why: str) -> None:
    _guarded.refused = _guarded.refused or why
    raise SandboxError(why)
