"""Settings of the test suite: each worker process has a cluster of its own (tests/conftest.py starts it)."""

import os
import shutil
import tempfile
from pathlib import Path

from deploy.env import FORMER_NAMES, PREFIX

MEMORY, NEEDED = Path("/dev/shm"), 3 * 2**30


def _place() -> Path:
    """Memory where there is enough: databases are cloned for the tests, and a disk takes ten times as long."""
    in_memory = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > NEEDED
    return MEMORY if in_memory else Path(tempfile.gettempdir())


HOME_OF_TESTS = _place() / f"dossier-test-{os.getpid()}"
for name in [*os.environ]:
    if name in ("DATABASE_URL", "REDIS_URL", "PORT") or name in FORMER_NAMES or name.startswith(PREFIX):
        os.environ.pop(name)
os.environ["DOSSIER_HOME"] = str(HOME_OF_TESTS)
# As in a running Dossier (`deploy.supervisor.fork_server`): pools of threads get in the way of the other workers.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from deploy.settings import *  # noqa: E402, F403

DATABASES["default"]["ENGINE"] = "tests.databases"  # noqa: F405
SECRET_KEY, SECRET_KEY_IS_STORED = "tests", True
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
ALLOWED_HOSTS = ["*"]
WHITENOISE_AUTOREFRESH = (
    True  # every test client is a server of its own, and would list all static files first
)
LOGGING = {"level": "WARNING", "format": "console"}
