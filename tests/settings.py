"""Settings of the test suite: each worker process has a cluster of its own (tests/conftest.py starts it)."""

import os
import tempfile
from pathlib import Path

HOME_OF_TESTS = Path(tempfile.gettempdir()) / f"dossier-test-{os.getpid()}"
os.environ["DOSSIER_HOME"] = str(HOME_OF_TESTS)
for name in ("DATABASE_URL", "REDIS_URL", "PORT", "EVENTS_PORT"):
    os.environ.pop(name, None)

from deploy.settings import *  # noqa: E402, F403

SECRET_KEY = "tests"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
ALLOWED_HOSTS = ["*"]
LOGGING = {"level": "WARNING", "format": "console"}
