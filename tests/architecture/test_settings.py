"""Settings: read in one module, under one prefix, and on the page of settings."""

import ast
from pathlib import Path

from deploy import env
from tests import settings
from tests.architecture.reading import sources
from tests.places import ROOT

OF_PLATFORMS = {"DATABASE_URL", "REDIS_URL", "PORT"}
OTHER_READERS = {
    "analyzers/runs/management/line_command.py": "NO_COLOR and TERM, conventions of terminals",
    "deploy/asgi.py": "Django's own variable",
    "deploy/celery.py": "Django's own variable",
    "deploy/client/main.py": "NO_COLOR and TERM, conventions of terminals",
    "deploy/client/settings.py": "the command line reads no settings of a server",
    "deploy/management/commands/config.py": "secrets that a configuration file names",
    "deploy/management/commands/up.py": "starts itself again",
    "deploy/management/commands/run.py": "name of the process",
    "deploy/observability/metrics.py": "a variable of prometheus_client",
    "deploy/postgres/base.py": "set by the supervisor",
    "deploy/privileges.py": "HOME of the user that root becomes",
    "deploy/supervisor/children.py": "environment of a child",
    "deploy/supervisor/fork_server.py": "environment of children",
    "deploy/supervisor/preflight.py": "the home, where the settings could not be read",
    "deploy/supervisor/replacement.py": "environment of the next version",
    "deploy/supervisor/supervisor.py": "environment of children",
    "deploy/web.py": "Django's own variable",
    "deploy/wsgi.py": "Django's own variable",
    "ingest/heartbeat.py": "set by the supervisor",
}


def reads_environment(path: Path) -> bool:
    text = path.read_text()
    return ("environ" in text or "getenv" in text) and any(
        isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv")
        for node in ast.walk(ast.parse(text))
    )


def test_settings_are_read_in_one_module() -> None:
    readers = {str(path.relative_to(ROOT)) for path in sources() if reads_environment(path)}
    assert readers == {"deploy/env.py", *OTHER_READERS}


def test_every_setting_has_the_prefix() -> None:
    assert settings.LOGGING_CONFIG  # the settings have been read
    assert {name for name in env.VARIABLES if not name.startswith(env.PREFIX)} == OF_PLATFORMS


def test_every_setting_has_a_meaning() -> None:
    assert [one.name for one in env.VARIABLES.values() if not one.help] == []
