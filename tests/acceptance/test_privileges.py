"""Root given up at the start: who a home's processes are, and what such a user may still do."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg2
import pytest

from deploy import privileges
from deploy.embedded import Home, give, start_broker, start_postgres, stop
from deploy.privileges import OWN_IDS, Account, PrivilegeError, act_as_owner, give_up, is_roots, owner, raised
from deploy.supervisor import root_start

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture
def home() -> Iterator[Home]:
    """A home that every user gets to, with a path short enough for sockets."""
    one = Home(Path(tempfile.mkdtemp(prefix="dossier-p-")) / "home")
    one.root.parent.chmod(0o755)
    yield one
    shutil.rmtree(one.root.parent)


def in_child(act: Callable[[], object]) -> str:
    """Result of `act`, as text, in a process of its own: this one stays root."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            told = str(act())
        except BaseException:  # noqa: BLE001  # the parent's tests must not go on in it
            told = traceback.format_exc()
        os.write(writing, told.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told_in:
        told = told_in.read()
    os.waitpid(child, 0)
    return told


def anybody() -> Account:
    nobody = pwd.getpwnam("nobody")
    return Account(nobody.pw_uid, nobody.pw_gid)


def test_a_home_of_roots_gets_an_id_that_nobody_else_has(home: Home) -> None:
    home.root.mkdir()
    account = owner(home.root)
    assert account.uid in OWN_IDS
    assert account.name is None
    assert owner(home.root) == account


def test_a_home_of_a_user_is_run_by_that_user(home: Home) -> None:
    home.root.mkdir()
    os.chown(home.root, anybody().uid, anybody().gid)
    assert owner(home.root) == anybody()


def test_the_owner_runs_postgres_and_broker_and_is_never_root_again(home: Home) -> None:
    account = owner(home.root)

    def act() -> object:
        home.claim().close()
        give(home, account, cluster=True)
        give_up(account, home.root)
        postgres, broker = start_postgres(home), start_broker(home)
        database = psycopg2.connect(home.database_url)
        with database.cursor() as cursor:
            cursor.execute("SELECT 42")
            row = cursor.fetchone()
        owners = {Path(f"/proc/{pid}").stat().st_uid for pid in (os.getpid(), postgres.pid, broker.pid)}
        stop(broker)
        stop(postgres)
        try:
            os.seteuid(0)
        except PermissionError:
            return row, owners, os.environ["HOME"]
        return "root again"

    assert in_child(act) == str(((42,), {account.uid}, str(home.root)))
    strangers = [path for path in home.root.rglob("*") if path.lstat().st_uid != account.uid]
    assert strangers == []


def test_another_user_gets_to_the_database_by_no_open_directory(home: Home) -> None:
    account = owner(home.root)

    def visit(go: int, told: int) -> None:
        os.read(go, 1)
        give_up(anybody(), home.root)
        try:
            psycopg2.connect(home.database_url)
        except psycopg2.OperationalError as error:
            os.write(told, str(error).encode())
        os._exit(0)

    def act() -> object:
        give(home, account, cluster=True)
        (waiting, go), (told, telling) = os.pipe(), os.pipe()
        if os.fork() == 0:
            visit(waiting, telling)
        os.close(telling)
        give_up(account, home.root)
        postgres = start_postgres(home)
        home.run.chmod(0o711)
        os.write(go, b"!")
        answer = os.read(told, 1000).decode()
        stop(postgres)
        return answer

    assert "Permission denied" in in_child(act)


def test_root_writes_nothing_of_its_own_into_a_home_of_a_user(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(privileges, "NEEDED", ())
    home.root.mkdir()
    os.chown(home.root, anybody().uid, anybody().gid)

    def act() -> object:
        act_as_owner(home.root)
        home.claim().close()
        with raised():
            above = os.geteuid()
        return os.geteuid(), above

    assert in_child(act) == str((anybody().uid, 0))
    assert (home.root / "lock").stat().st_uid == anybody().uid


def test_a_home_whose_user_cannot_get_to_it_is_refused(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privileges, "NEEDED", ())
    home.root.mkdir()
    os.chown(home.root, anybody().uid, anybody().gid)
    home.root.parent.chmod(0o700)
    with pytest.raises(
        PrivilegeError, match=f"user nobody cannot access {home.root.parent}. Set DOSSIER_HOME"
    ):
        act_as_owner(home.root)


def test_root_that_stays_says_why(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    private = home.root.parent / "private"
    private.mkdir(mode=0o700)
    (private / "manage.py").touch()
    monkeypatch.setattr(privileges, "NEEDED", ((private / "manage.py", os.R_OK),))
    root_start.leave_root(home, said.append)
    assert os.getuid() == 0
    assert is_roots(home.root)
    assert len(said) == 1
    assert said[0].startswith("all processes run as root, including pages and analyzers: user id")
    assert "private/manage.py. Install Dossier below" in said[0]
