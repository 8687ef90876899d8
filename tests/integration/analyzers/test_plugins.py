"""Analyzers of strangers are as welcome as our own."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.places import ROOT

USES_THE_PLUGIN = """
import json
from analyzers import registry
from analyzers.runner import judge
from analyzers.testing import check_analyzer, crossing_cases

cases = crossing_cases("outcomes")
plugin = registry.get("worst_share")
check_analyzer(plugin, cases)
case = cases(1, True)
named = judge(plugin, case.window)["suspects"][0]["component"]
print(json.dumps({"installed": list(registry.installed()), "right": named in case.culprits}))
"""


def test_a_third_party_analyzer_is_installed_and_runs(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "site"
    shutil.copytree(ROOT / "tests" / "plugins" / "dossier_dummy", source)
    install = ["uv", "pip", "install", "--quiet", "--offline", "--no-deps", "--no-build-isolation"]
    uv = Path(sys.executable).parent / "uv"
    where = ["--python", sys.executable, "--target", str(target), str(source)]
    subprocess.run([str(uv), *install[1:], *where], check=True, timeout=60)
    environment = {**os.environ, "PYTHONPATH": f"{target}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-c", USES_THE_PLUGIN],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["right"]
    assert "worst_share" in said["installed"]


def test_a_type_checker_sees_the_contract_from_outside(tmp_path: Path) -> None:
    """mypy reads the packages where the editable install points, without this repository's configuration."""
    shutil.copytree(
        ROOT / "tests" / "plugins" / "dossier_dummy" / "dossier_dummy", tmp_path / "dossier_dummy"
    )
    (tmp_path / "wrong.py").write_text("from analyzers.contract import quiet\n\nquiet(1)\n")
    command = [sys.executable, "-m", "mypy", "--strict", "dossier_dummy", "wrong.py"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert 'wrong.py:3: error: Argument 1 to "quiet" has incompatible type "int"' in done.stdout
    assert "Found 1 error in 1 file" in done.stdout
