"""Root given up: what `manage.py up` and `run` start as root goes on as the owner of DOSSIER_HOME.

A home that is root's is given to a user id that no other program of the machine has. Root is needed for three things,
and kept until they are done: to open a port below 1024, to give that home away, and to have `initdb` run, which wants a
user with a name. In a home of somebody else root touches nothing: links could wait there.
"""

from __future__ import annotations

import ctypes
import grp
import hashlib
import os
import pwd
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg2

CODE = Path(__file__).resolve().parents[1]
OWN_IDS = range(61184, 65520)
"""User ids for services without an account; systemd takes those of DynamicUser= from the same range."""
NEEDED = (
    (CODE / "manage.py", os.R_OK),
    (Path(sys.executable), os.X_OK),
    (Path(os.__file__), os.R_OK),
    (Path(psycopg2.__file__), os.R_OK),
)
"""Paths that the user of Dossier must be able to read: the checkout, the interpreter, its library, our packages."""
PR_SET_DUMPABLE = 4


class PrivilegeError(RuntimeError):
    """Root cannot be given up here; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Account:
    """A user and group by their numbers. The user may have no name."""

    uid: int
    gid: int

    @property
    def name(self) -> str | None:
        with suppress(KeyError):
            return pwd.getpwuid(self.uid).pw_name
        return None

    def __str__(self) -> str:
        return f"user id {self.uid}" if self.name is None else f"user {self.name}"


def owner(home: Path) -> Account:
    """Account for the processes that root starts for this home: its owner; where that is root, or nobody yet, an id of
    its own. Not `nobody`, which other daemons are, too: they could read the data and stop the servers."""
    with suppress(FileNotFoundError):
        found = home.stat()
        if found.st_uid != 0:
            with suppress(KeyError):
                return Account(found.st_uid, pwd.getpwuid(found.st_uid).pw_gid)
            return Account(found.st_uid, found.st_gid)
    taken = {entry.pw_uid for entry in pwd.getpwall()} | {entry.gr_gid for entry in grp.getgrall()}
    first = int(digest(home), 16) % len(OWN_IDS)
    own = next(one for one in (*OWN_IDS[first:], *OWN_IDS[:first]) if one not in taken)
    return Account(own, own)


def digest(path: Path) -> str:
    return hashlib.sha256(str(path).encode()).hexdigest()[:12]


def is_roots(home: Path) -> bool:
    return not home.exists() or home.stat().st_uid == 0


def is_root() -> bool:
    """Whether this process is root, or could be again."""
    return os.getuid() == 0


def act_as_owner(home: Path) -> None:
    """As root, and where the home is somebody else's: act as that user from now on, until `raised`.

    Raises PrivilegeError where that user cannot get to the code or the home.
    """
    if os.geteuid() != 0 or is_roots(home):
        return
    account = owner(home)
    if problem := obstacle(home, account):
        raise PrivilegeError(problem)
    _act_as(account)


@contextmanager
def raised() -> Iterator[None]:
    """As root within the block, where that is possible."""
    before = Account(os.geteuid(), os.getegid())
    if is_root():
        os.seteuid(0)
        os.setegid(0)
    try:
        yield
    finally:
        if is_root():
            _act_as(before)


def give_up(account: Account, home: Path) -> None:
    """Be this user from now on, without a way back. Raises PrivilegeError where the system refuses."""
    name = account.name
    try:
        os.seteuid(0)
        os.setgroups([] if name is None else os.getgrouplist(name, account.gid))
        os.setresgid(account.gid, account.gid, account.gid)
        os.setresuid(account.uid, account.uid, account.uid)
    except PermissionError as error:
        raise PrivilegeError(
            f"root here may not become {account}: {error.strerror}. Start it as that user."
        ) from error
    # Else nothing of this user may look at its processes: `--replace` reads the settings, a start what is left over.
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    # Libraries are to look for this user's files, and not for root's, which it cannot read.
    os.environ["HOME"] = str(home) if name is None else pwd.getpwnam(name).pw_dir
    for variable in ("USER", "LOGNAME"):
        os.environ[variable] = name or "dossier"
    for variable in [one for one in os.environ if one.startswith("XDG_")]:
        del os.environ[variable]


def obstacle(home: Path, account: Account) -> str | None:
    """Reason why this user cannot run Dossier from here, in a sentence or two; None where it can. Call it as root."""
    above = next(path for path in home.parents if path.exists())
    needed = [*NEEDED, (above, os.X_OK)]
    sys.stdout.flush()
    if (pid := os.fork()) == 0:
        code = len(needed) + 1
        try:
            os.setgroups([] if account.name is None else os.getgrouplist(account.name, account.gid))
            os.setgid(account.gid)
            os.setuid(account.uid)
            code = next((place for place, (path, way) in enumerate(needed, 1) if not os.access(path, way)), 0)
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code == 0:
        return None
    if not 0 < code <= len(needed):
        return f"root here may not become {account}. Start it as another user."
    place = needed[code - 1][0]
    advice = (
        "Set DOSSIER_HOME to a directory that this user can enter."
        if place == above
        else "Install Dossier below a directory that every user may enter, such as /opt."
    )
    return f"{account} cannot access {place}. {advice}"


def _act_as(account: Account) -> None:
    if os.geteuid() == 0 and account.uid != 0:
        os.setgroups([] if account.name is None else os.getgrouplist(account.name, account.gid))
    os.setegid(account.gid)
    os.seteuid(account.uid)
