"""Embedded Postgres and broker: their life, and what happens when their parent is killed."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg2
import pytest
from redis import Redis

from deploy import embedded
from deploy.embedded import EmbeddedError, Home, start_broker, start_postgres, stop
from tests.places import ROOT

PARENT = """
import sys, time
from pathlib import Path
from deploy.embedded import Home, start_broker, start_postgres
home = Home(Path(sys.argv[1]))
lock = home.claim()
print(start_postgres(home).pid, start_broker(home).pid, flush=True)
time.sleep(60)
"""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture
def fresh() -> Iterator[Home]:
    """A home with a short path, as sockets need one."""
    home = Home(Path(tempfile.mkdtemp(prefix="dossier-e-")))
    home.root.chmod(0o755)
    yield home
    home.forget()


@pytest.fixture(scope="module")
def empty_cluster() -> Iterator[Path]:
    """A cluster as `initdb` makes it, once for the tests that are about what comes after it."""
    home = Home(Path(tempfile.mkdtemp(prefix="dossier-c-")))
    home.root.chmod(0o755)
    stop(start_postgres(home))
    yield home.postgres
    home.forget()


@pytest.fixture
def made(fresh: Home, empty_cluster: Path) -> Home:
    """A home that has been started and stopped once."""
    shutil.copytree(empty_cluster, fresh.postgres, symlinks=True)
    return fresh


Start = Callable[[Home], tuple[subprocess.Popen[str], list[int]]]


@pytest.fixture
def parent() -> Iterator[Start]:
    """Starts the servers of a home as children of a process of their own."""
    started: list[subprocess.Popen[str]] = []

    def start(home: Home) -> tuple[subprocess.Popen[str], list[int]]:
        command = [sys.executable, "-c", PARENT, str(home.root)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        return process, [int(word) for word in process.stdout.readline().split()]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def ended(pid: int) -> bool:
    """Gone, or dead and waiting to be collected by whoever adopted it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def answer(home: Home) -> int:
    connection = psycopg2.connect(home.database_url)
    with connection.cursor() as cursor:
        cursor.execute("SELECT 42")
        row = cursor.fetchone()
    connection.close()
    assert row is not None
    return int(row[0])


def test_both_servers_answer_and_stop(fresh: Home) -> None:
    postgres, broker = start_postgres(fresh), start_broker(fresh)
    assert answer(fresh) == 42
    assert Redis(unix_socket_path=str(fresh.broker_socket)).ping()
    stop(broker)
    stop(postgres)
    assert (postgres.returncode, broker.returncode) == (0, 0)


def test_servers_listen_on_private_sockets_only(made: Home) -> None:
    postgres = start_postgres(made)
    stop(postgres)
    assert made.run.stat().st_mode & 0o077 == 0


def test_killing_the_parent_ends_both_servers(made: Home, parent: Start) -> None:
    process, pids = parent(made)
    process.send_signal(signal.SIGKILL)
    wait_for(lambda: all(ended(pid) for pid in pids))
    assert not (made.postgres / "postmaster.pid").exists()


def test_data_outlives_a_killed_parent(made: Home, parent: Start) -> None:
    process, _ = parent(made)
    connection = psycopg2.connect(made.database_url)
    with connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE kept AS SELECT 7 AS n")
    process.kill()
    again = start_postgres(made)
    with psycopg2.connect(made.database_url) as reopened, reopened.cursor() as cursor:
        cursor.execute("SELECT n FROM kept")
        assert cursor.fetchone() == (7,)
    stop(again)


def test_a_home_in_use_names_the_process(made: Home, parent: Start) -> None:
    process, _ = parent(made)
    with pytest.raises(EmbeddedError, match=f"in use by process {process.pid}"):
        made.claim()


def test_the_claim_ends_with_the_process(made: Home, parent: Start) -> None:
    process, _ = parent(made)
    process.kill()
    process.wait()
    made.claim().close()


def test_a_path_too_long_for_a_socket_works(fresh: Home) -> None:
    deep = Home(fresh.root / ("long-" * 10) / ("path-" * 10))
    postgres, broker = start_postgres(deep), start_broker(deep)
    assert answer(deep) == 42
    stop(broker)
    stop(postgres)
    deep.forget()
    assert not deep.run.exists()


@as_root
def test_root_keeps_a_private_directory_private(fresh: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "ROOT_STATE", fresh.root / "state")
    private = fresh.root / "private"
    private.mkdir(mode=0o700)
    home = Home(private / "home")
    postgres, broker = start_postgres(home), start_broker(home)
    assert answer(home) == 42
    stop(broker)
    stop(postgres)
    assert private.stat().st_mode & 0o777 == 0o700


def python_for_all() -> str:
    """An interpreter of this version that every user may run, and so may read this checkout."""
    for candidate in (Path(sys.executable), Path("/usr/bin/python3")):
        real = candidate.resolve()
        reachable = all(
            parent.stat().st_mode & 0o001 for path in (real, ROOT / "x") for parent in path.parents
        )
        if reachable and real.name == f"python3.{sys.version_info.minor}":
            return str(candidate)
    pytest.skip("no interpreter of this version that a normal user could run")


@as_root
def test_a_normal_user_runs_both(fresh: Home) -> None:
    nobody = pwd.getpwnam("nobody")
    home = Home(fresh.root / "theirs")
    home.root.mkdir()
    shutil.chown(home.root, nobody.pw_uid, nobody.pw_gid)
    command = [python_for_all(), "-c", PARENT.replace("time.sleep(60)", ""), str(home.root)]
    packages = os.pathsep.join(path for path in sys.path if path.endswith("-packages"))
    done = subprocess.run(
        command, cwd=ROOT, env={"PYTHONPATH": packages}, user=nobody.pw_uid, group=nobody.pw_gid,
        extra_groups=[], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, len(done.stdout.split())) == (0, 2), done.stderr


def test_a_cluster_of_another_version_is_refused_with_advice(made: Home) -> None:
    stop(start_postgres(made))
    (made.postgres / "PG_VERSION").write_text("9\n")
    with pytest.raises(EmbeddedError, match="was made by Postgres 9"):
        start_postgres(made)


@as_root
def test_postgres_shares_its_user_with_nobody_and_lets_nobody_in(fresh: Home) -> None:
    postgres = start_postgres(fresh)
    owner = Path(f"/proc/{postgres.pid}").stat().st_uid
    assert owner != 0
    assert owner not in {entry.pw_uid for entry in pwd.getpwall()}
    fresh.run.chmod(0o711)  # even where directory and socket are open
    (fresh.run / ".s.PGSQL.5432").chmod(0o777)
    child = os.fork()
    if child == 0:  # not another program: nobody may not be able to read this one's
        os.setgroups([])
        os.setgid(pwd.getpwnam("nobody").pw_gid)
        os.setuid(pwd.getpwnam("nobody").pw_uid)
        try:
            psycopg2.connect(fresh.database_url)
        except psycopg2.OperationalError as error:
            os._exit(7 if "peer authentication failed" in str(error).lower() else 8)
        os._exit(9)
    _, status = os.waitpid(child, 0)
    assert answer(fresh) == 42
    stop(postgres)
    assert os.waitstatus_to_exitcode(status) == 7


@as_root
def test_a_cluster_that_was_nobodys_goes_on(fresh: Home) -> None:
    stop(start_postgres(fresh))
    nobody = pwd.getpwnam("nobody")
    for path in (fresh.postgres, *fresh.postgres.rglob("*")):
        os.chown(path, nobody.pw_uid, nobody.pw_gid)
    (fresh.postgres / "pg_hba.conf").write_text("local all all trust\n")
    postgres = start_postgres(fresh)
    assert answer(fresh) == 42
    stop(postgres)
    assert "trust" not in (fresh.postgres / "pg_hba.conf").read_text()


@as_root
def test_a_link_in_the_place_of_the_sockets_is_not_followed(tmp_path: Path) -> None:
    home = Home(tmp_path / ("long" * 30))
    home.run.symlink_to(tmp_path)
    try:
        with pytest.raises(EmbeddedError, match="belongs to another user"):
            start_postgres(home)
    finally:
        home.run.unlink()
    assert tmp_path.stat().st_uid == 0


@as_root
def test_up_refuses_root_unless_told(fresh: Home) -> None:
    environment = {**os.environ, "DOSSIER_HOME": str(fresh.root), "DJANGO_SETTINGS_MODULE": "deploy.settings"}
    environment.pop("DOSSIER_ALLOW_ROOT", None)
    told = subprocess.run(
        [sys.executable, "manage.py", "up"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 1
    assert "DOSSIER_ALLOW_ROOT=true" in told.stderr


def test_logs_are_for_the_user_who_runs_it(made: Home) -> None:
    stop(start_postgres(made))
    assert made.logs.stat().st_mode & 0o077 == 0
