"""Settings of the test suite: each worker process has a cluster of its own (tests/conftest.py starts it)."""

import os
import shutil
import tempfile
from pathlib import Path

MEMORY, NEEDED = Path("/dev/shm"), 3 * 2**30


def _place() -> Path:
    """Memory where there is enough: a database is cloned for every test, and a disk takes ten times as long."""
    in_memory = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > NEEDED
    return MEMORY if in_memory else Path(tempfile.gettempdir())


HOME_OF_TESTS = _place() / f"dossier-test-{os.getpid()}"
os.environ["DOSSIER_HOME"] = str(HOME_OF_TESTS)
for name in ("DATABASE_URL", "REDIS_URL", "PORT", "EVENTS_PORT"):
    os.environ.pop(name, None)

from deploy.settings import *  # noqa: E402, F403

SECRET_KEY, SECRET_KEY_IS_KEPT = "tests", True
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
ALLOWED_HOSTS = ["*"]
LOGGING = {"level": "WARNING", "format": "console"}
