"""Third-party analyzers: the package of the tutorial is written, installed, tested, type-checked and listed."""

import json
import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from frontend import documents
from tests.places import ROOT, TESTS

EXAMPLE = TESTS / "plugins" / "dossier-bad-paths"
FILES = sorted(path.name for path in EXAMPLE.iterdir() if path.is_file())
MODULES = [name for name in FILES if name.endswith(".py")]
USES_THE_PLUGIN = """
import json
from analyzers import registry
from analyzers.runner import judge
from analyzers.testing import crossing_cases

case = crossing_cases("paths")(1, True)
named = judge(registry.get("bad_paths"), case.window)["suspects"][0]["component"]
print(json.dumps({"installed": list(registry.installed()), "right": named in case.culprits}))
"""


def run(*command: str, cwd: Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The ended process; `path` comes first where it looks for modules."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "DJANGO_SETTINGS_MODULE") and not name.startswith("PYTEST")
    }
    if path is not None:
        environment["PYTHONPATH"] = f"{path}{os.pathsep}{ROOT}"
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # an author has none of this repository's plugins
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The package as `manage.py new_analyzer` writes it."""
    out = tmp_path / "dossier-bad-paths"
    call_command("new_analyzer", "bad_paths", out=out, stdout=StringIO())
    return out


def test_the_command_writes_the_example_of_the_tutorial(written: Path) -> None:
    page = documents.source("analyzers/plugin")
    blocks = re.findall(r"^```(?:toml|python)\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    for name in FILES:
        text = (EXAMPLE / name).read_text()
        assert (written / name).read_text() == text
        assert text in blocks, f"frontend/docs/analyzers/plugin.md does not show {name} as it is"
    assert sorted(path.name for path in written.iterdir()) == FILES


def test_the_package_is_installed_listed_and_runs(written: Path, tmp_path: Path) -> None:
    uv, site = Path(sys.executable).parent / "uv", tmp_path / "site"
    install = ["pip", "install", "--quiet", "--offline", "--no-deps", "--no-build-isolation"]
    done = run(
        str(uv), *install, "--python", sys.executable, "--target", str(site), str(written), cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    used = run(sys.executable, "-c", USES_THE_PLUGIN, cwd=tmp_path, path=site)
    assert used.returncode == 0, used.stderr
    told = json.loads(used.stdout)
    assert told["right"]
    assert "bad_paths" in told["installed"]


def test_its_tests_pass_and_its_types_fit(written: Path) -> None:
    """mypy reads the contract where the editable install points, without this repository's configuration."""
    tested = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", ".", cwd=written)
    assert tested.returncode == 0, tested.stdout
    (written / "wrong.py").write_text("from analyzers.contract import quiet\n\nquiet(1)\n")
    # Beside the cache of `make check`, which has other options: what has not changed is not read again.
    strict = ["mypy", "--strict", "--cache-dir", str(ROOT / ".mypy_cache" / "plugins")]
    checked = run(sys.executable, "-m", *strict, *MODULES, "wrong.py", cwd=written)
    assert 'wrong.py:3: error: Argument 1 to "quiet" has incompatible type "int"' in checked.stdout
    assert "Found 1 error in 1 file" in checked.stdout


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Bad-Paths", "is no name for an analyzer"),
        ("class", "is no name for an analyzer"),
        ("deepview", "an analyzer called deepview is installed already"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused(
    name: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        call_command("new_analyzer", name, out=tmp_path / "out")
    assert reason in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_exists_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        call_command("new_analyzer", "bad_paths", out=tmp_path)
    assert "exists already" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
