"""Alice has files and no server: she simulates a region, analyzes it, and is told plainly what is wrong."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from django.core.management import execute_from_command_line

from tests.acceptance import commands
from tests.places import ROOT

SCENARIO, SEED = "deepview_stop", 3

NO_NETWORK = """
import sys
def refuse(event, arguments):
    if event.startswith("socket.") and event != "socket.gethostname":
        raise RuntimeError(f"offline commands open no connection: {event}")
sys.addaudithook(refuse)
"""


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which a socket is an error and every setting is nonsense."""
    hooks = tmp_path_factory.mktemp("hooks")
    (hooks / "sitecustomize.py").write_text(NO_NETWORK)
    nonsense = dict.fromkeys(("DATABASE_URL", "REDIS_URL", "PORT", "DOSSIER_TELEMETRY_RETENTION"), "nonsense")
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(hooks), "DOSSIER_HOME": "/nonexistent", **nonsense}


def manage(
    arguments: Sequence[str], environment: dict[str, str], stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *arguments],
        input=stdin,
        capture_output=True,
        env=environment,
        timeout=100,
        check=False,
    )


def here(arguments: Sequence[str], stdin: bytes = b"") -> commands.Done:
    """A command in the process of the test; those around it show what one of its own does."""
    return commands.manage(*arguments, stdin=stdin.decode())


@pytest.fixture(scope="module")
def region(tmp_path_factory: pytest.TempPathFactory, offline: dict[str, str]) -> Path:
    """A simulated region with one planted fault."""
    out = tmp_path_factory.mktemp("region") / "files"
    done = manage(["simulate", SCENARIO, "--seed", str(SEED), "--out", str(out)], offline)
    assert done.returncode == 0, done.stderr.decode()
    return out


@pytest.fixture(scope="module")
def planted(region: Path) -> str:
    (fault,) = json.loads((region / "truth.json").read_text())["faults"]
    return str(fault["component"])


def inputs(region: Path, *kinds: str) -> list[str]:
    return [word for kind in kinds for word in ("--input", f"{kind}={region}/{kind}.ndjson")]


@pytest.fixture(scope="module")
def by_the_hour(region: Path, offline: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    """Its placements and failures, judged hour by hour."""
    given = inputs(region, "placement", "unit_failure")
    return manage(["analyze", "deepview", *given, "--every", "1h", "--json"], offline)


def last_window(done: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_the_planted_component_is_named_first_from_placements_and_failures(
    by_the_hour: subprocess.CompletedProcess[bytes], planted: str
) -> None:
    assert by_the_hour.returncode == 0, by_the_hour.stderr.decode()
    assert last_window(by_the_hour)["suspects"][0]["component"] == planted


def test_the_planted_component_is_named_first_from_path_outcomes(
    region: Path, planted: str, offline: dict[str, str]
) -> None:
    given = inputs(region, "path_outcome")
    done = manage(["analyze", "deepview", *given, "--every", "1h", "--json"], offline)
    assert last_window(done)["suspects"][0]["component"] == planted


def test_healthy_hours_before_the_fault_accuse_no_one(
    by_the_hour: subprocess.CompletedProcess[bytes],
) -> None:
    verdicts = [json.loads(line) for line in by_the_hour.stdout.splitlines()]
    assert [one["status"] for one in verdicts] == ["quiet"] * 5 + ["named"]


@pytest.mark.parametrize("every", [(), ("--every", "1h")])
def test_an_hour_in_which_nothing_failed_is_a_verdict(region: Path, every: tuple[str, ...]) -> None:
    given = [*inputs(region, "placement"), "--input", "unit_failure=-"]
    done = here(["analyze", "deepview", *given, *every, "--json"])
    assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "quiet")


def test_all_rows_in_one_window_come_as_a_table(region: Path, planted: str, offline: dict[str, str]) -> None:
    done = manage(["analyze", "deepview", *inputs(region, "placement", "unit_failure")], offline)
    lines = done.stdout.decode().splitlines()
    assert lines[1].startswith("named: ")
    assert planted in lines[4]
    assert "\x1b" not in done.stdout.decode()


def without_seconds(done: commands.Done) -> dict[str, Any]:
    verdict = json.loads(done.stdout)
    del verdict["measures"]["seconds"]
    return dict(verdict)


def test_rows_in_another_order_from_standard_input_give_the_same_verdict(region: Path) -> None:
    path = region / "path_outcome.ndjson"
    backwards = b"\n".join(reversed(path.read_bytes().splitlines()))
    one = here(["analyze", "deepview", "--input", f"path_outcome={path}", "--json"])
    other = here(["analyze", "deepview", "--input", "path_outcome=-", "--json"], backwards)
    assert without_seconds(one) == without_seconds(other)


def test_a_cut_window_equals_the_run_on_its_own_rows(region: Path) -> None:
    lines = (region / "path_outcome.ndjson").read_text().splitlines(keepends=True)
    first = min(json.loads(line)["time"][:13] for line in lines)
    inside = "".join(line for line in lines if json.loads(line)["time"].startswith(first))
    arguments = ["--every", "1h", "--json", "--input"]
    whole = here(["analyze", "deepview", *arguments, f"path_outcome={region}/path_outcome.ndjson"])
    alone = here(["analyze", "deepview", *arguments, "path_outcome=-"], inside.encode())
    verdict = json.loads(whole.stdout.splitlines()[0])
    del verdict["measures"]["seconds"]
    assert verdict == without_seconds(alone)


def test_a_scenario_is_the_same_for_the_same_seed(
    region: Path, tmp_path: Path, offline: dict[str, str]
) -> None:
    again = tmp_path / "again"
    manage(["simulate", SCENARIO, "--seed", str(SEED), "--out", str(again)], offline)
    assert {path.name: path.read_bytes() for path in again.iterdir()} == {
        path.name: path.read_bytes() for path in region.iterdir()
    }


def test_analyzers_are_listed_with_what_they_require(offline: dict[str, str]) -> None:
    done = manage(["analyzers", "--json"], offline)
    (deepview,) = (one for one in json.loads(done.stdout) if one["name"] == "deepview")
    assert [one["kinds"] for one in deepview["inputs"]] == [
        ["placement", "unit_failure"],
        ["path_outcome"],
        ["job_attempt"],
    ]
    assert "deepview" in manage(["analyzers"], offline).stdout.decode()


def test_a_mitigation_is_compared_from_typed_inputs(offline: dict[str, str]) -> None:
    done = manage(["mitigation", "--gpus", "512", "--slowdown", "1", "--probability", "1", "--json"], offline)
    found = json.loads(done.stdout)
    assert (found["recommended"], found["options"][0]["gpu_hours"]) == ("restart", 384.0)
    assert found["inputs"]["checkpoint_minutes"] == {"value": 60, "origin": "assumed"}
    shown = manage(["mitigation", "--gigabytes", "1.4", "--iteration-seconds", "2", "--gigabits-now", "25",
                    "--gigabits-then", "400"], offline).stdout.decode()  # fmt: skip
    assert "Migrate to standby machines: expected to lose least" in shown
    assert "The faster network helps" in shown
    wrong = manage(["mitigation", "--gpus", "many"], offline)
    assert (wrong.returncode, wrong.stderr.decode()) == (2, "--gpus: must be a number from 1 to 1e+06\n")


def test_a_change_is_validated_from_files(offline: dict[str, str], tmp_path: Path) -> None:
    before, after = tmp_path / "before.csv", tmp_path / "after.csv"
    before.write_text("class,path\na,l1 s1 l2\n")
    after.write_text("class,path\na,l1 s2 l2\n")
    done = manage(["validate_change", str(before), str(after), "--json"], offline)
    assert (done.returncode, json.loads(done.stdout)["verdict"]) == (1, "violated")


GOOD = {"time": "2026-03-01T12:00:00Z", "components": ["tor/a"], "attempts": 5, "failures": 0}


def rows(*changes: dict[str, Any]) -> bytes:
    return "".join(json.dumps({**GOOD, **change}) + "\n" for change in changes).encode()


@pytest.mark.parametrize(
    ("arguments", "stdin", "complaint"),
    [
        (
            ["depview", "--input", "path_outcome=-"],
            b"",
            "No analyzer 'depview'. Did you mean deepview? Installed: ",
        ),
        (["deepview"], b"", "--input KIND=FILE is missing: which rows should be read?"),
        (
            ["deepview", "--input", "path_outcome=gone.ndjson"],
            b"",
            "gone.ndjson: No such file or directory",
        ),
        (["deepview", "--input", "path_outcome=x.xls"], b"", "x.xls: "),
        (
            ["deepview", "--input", "unit_failure=-"],
            b'{"time":1,"unit":"vm/1"}',
            "deepview requires placement and",
        ),
        (["deepview", "--input", "path_outcome=-"], b"", "standard input: the body holds no rows"),
        (
            ["deepview", "--input", "path_outcome=-"],
            rows({}, {"failures": 9}),
            "standard input: row 2, failures: is more than ",
        ),
        (
            ["deepview", "--input", "path_outcome=-"],
            rows({"components": []}),
            "standard input: row 1, components: is empty",
        ),
        (["deepview", "--input", "path_outcome=-"], rows({"colour": 1}), "standard input: row 1, colour: "),
        (["deepview", "--input", "path_outcome=-"], b"{", "standard input: row 1: "),
        (["deepview", "--input", "path_outcome=-"], b"\xff\xfe", "standard input: row 1: "),
        (
            ["deepview", "--input", "path_outcome=-", "--every", "1 week"],
            rows({}),
            "'1 week' is not a duration ",
        ),
        (
            ["deepview", "--input", "path_outcome=-", "--param", "method=x"],
            rows({}),
            'parameter method="x": must ',
        ),
        (
            ["deepview", "--input", "path_outcome=-", "--param", "speed=9"],
            rows({}),
            "deepview has no parameter ",
        ),
    ],
)
def test_what_is_wrong_is_one_clear_line_and_exit_code_2(
    arguments: list[str],
    stdin: bytes,
    complaint: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # In this process: what one of its own does with it, the tests around this one show.
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(stdin)))
    with pytest.raises(SystemExit) as ended:
        execute_from_command_line(["manage.py", "analyze", *arguments])
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    assert err.startswith(complaint)
    assert err.count("\n") == 1


def test_an_unknown_scenario_lists_the_known() -> None:
    done = here(["simulate", "meltdown", "--out", "x"])
    assert done.returncode == 2
    assert done.stderr.startswith("no scenario 'meltdown'; there are region_world, ")


def test_files_that_are_there_are_not_overwritten_unasked(region: Path) -> None:
    arguments = ["simulate", SCENARIO, "--seed", str(SEED), "--out", str(region)]
    refused = here(arguments)
    assert (refused.returncode, refused.stderr) == (
        2,
        f"{region} is not empty; --force writes into it all the same\n",
    )
    assert here([*arguments, "--force"]).returncode == 0


def test_a_reader_that_has_seen_enough_ends_the_output_quietly(region: Path, offline: dict[str, str]) -> None:
    given = " ".join(inputs(region, "path_outcome"))
    command = f"{sys.executable} {ROOT}/manage.py analyze deepview {given} --every 1h --json | head -c 10"
    done = subprocess.run(["bash", "-c", command], capture_output=True, env=offline, timeout=100, check=False)
    assert done.stderr == b""
