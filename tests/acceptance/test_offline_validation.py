"""Alice has benchmark results in files and no server: gray nodes are named, and SuperBench's own files are read."""

import json
from pathlib import Path

import pytest

from tests.acceptance.commands import Done, manage

RULES = """
version: v0.10
superbench:
  rules:
    bandwidth:
      function: variance
      criteria: 'lambda x: x < -0.05'
      categories: Mem
      metrics:
        - mem-bw/h2d_bw:\\d+
"""


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results as SuperBench writes them: thirty nodes, of which one copies slowly from its host."""
    path = tmp_path_factory.mktemp("superbench") / "results-summary.jsonl"
    nodes = [{"node": f"sb-{n:02d}", "mem-bw/h2d_bw:0": 25.9 + 0.01 * (n % 7)} for n in range(29)]
    slow = {"node": "sb-slow", "mem-bw/h2d_bw:0": 22.1}
    path.write_text("".join(json.dumps(one) + "\n" for one in [*nodes, slow]))
    return path


def test_the_planted_nodes_are_named_and_no_other(tmp_path: Path) -> None:
    manage("simulate", "validator_step", "--seed", "3", "--out", str(tmp_path / "files"))
    done = manage("analyze", "validator", "--input", f"benchmark={tmp_path}/files/benchmark.ndjson", "--json")
    verdict, truth = json.loads(done.stdout), json.loads((tmp_path / "files" / "truth.json").read_text())
    assert {one["component"] for one in verdict["suspects"]} == {one["component"] for one in truth["faults"]}


def test_a_healthy_fleet_is_quiet(tmp_path: Path) -> None:
    manage("simulate", "validator_healthy", "--seed", "3", "--out", str(tmp_path / "files"))
    done = manage("analyze", "validator", "--input", f"benchmark={tmp_path}/files/benchmark.ndjson", "--json")
    assert json.loads(done.stdout)["status"] == "quiet"


def test_a_summary_of_superbench_is_read_as_it_is(summary: Path) -> None:
    done = manage("analyze", "validator", "--input", f"benchmark={summary}", "--json")
    assert [one["component"] for one in json.loads(done.stdout)["suspects"]] == ["node/sb-slow"]


def test_a_converted_summary_gives_the_same_suspects(summary: Path, tmp_path: Path) -> None:
    out = tmp_path / "benchmark.ndjson"
    converted = manage("convert", "superbench", str(summary), "--out", str(out))
    assert converted.stderr == "note: 30 rows of 30 nodes\n"
    done = manage("analyze", "validator", "--input", f"benchmark={out}", "--json")
    assert [one["component"] for one in json.loads(done.stdout)["suspects"]] == ["node/sb-slow"]


def diagnose(summary: Path, rules: str) -> Done:
    baseline, file = summary.with_name("baseline.json"), summary.with_name("rules.yaml")
    baseline.write_text('{"mem-bw/h2d_bw": 25.9}')
    file.write_text(rules)
    given = ("--results", str(summary), "--baseline", str(baseline), "--rules", str(file))
    return manage("diagnose", "superbench", *given, "--json")


def test_a_baseline_and_rules_judge_as_superbench_does(summary: Path) -> None:
    (record,) = json.loads(diagnose(summary, RULES).stdout)
    assert record["index"] == "sb-slow"
    assert record["diagnosis/category"] == "Mem"
    assert record["diagnosis/issue_details"] == (
        "mem-bw/h2d_bw:0(B/L: 25.9000 VAL: 22.1000 VAR: -14.67% Rule:lambda x: x < -0.05)"
    )


def test_a_rule_that_is_code_is_refused_and_never_runs(summary: Path) -> None:
    done = diagnose(summary, RULES.replace("x < -0.05", "open(x)"))
    assert done.returncode == 2
    assert "rule bandwidth: criteria: character 11, 'open(x)': function 'open' is not allowed" in done.stderr


def test_nodes_that_wear_out_are_recommended_with_the_benchmarks_that_would_find_it(tmp_path: Path) -> None:
    manage("simulate", "selector_trace", "--seed", "3", "--out", str(tmp_path / "files"))
    given = [f"--input={kind}={tmp_path}/files/{kind}.ndjson" for kind in ("node_incident", "benchmark")]
    verdict = json.loads(manage("analyze", "selector", *given, "--json").stdout)
    truth = json.loads((tmp_path / "files" / "truth.json").read_text())
    worn = {fault["component"] for fault in truth["faults"]}
    first = [one["component"] for one in verdict["suspects"][:10]]
    assert len(worn.intersection(first)) >= 5  # a tenth of the fleet is worn
    assert verdict["suspects"][0]["summary"].endswith(" h) before its next job.")
