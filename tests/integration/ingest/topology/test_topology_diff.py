"""`manage.py topology_diff`: rows of a topology against the one in force."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.integration.ingest.telemetry.test_topology import tell

pytestmark = pytest.mark.usefixtures("log_database")
BEFORE = datetime.now(UTC) - timedelta(hours=2)
NOW = datetime.now(UTC).isoformat()


def written(path: Path, *rows: dict[str, object]) -> str:
    file = path / "topology.ndjson"
    file.write_text("".join(json.dumps({"time": NOW, **row}) + "\n" for row in rows))
    return str(file)


def test_it_shows_what_is_added_changed_and_gone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tell(BEFORE, "host/a", parents=["rack/1"], labels={"team": "web"})
    tell(BEFORE, "host/b", parents=["rack/1"])
    tell(BEFORE, "host/c", parents=["rack/1"])
    tell(BEFORE, "pod/shop/x", parents=["host/a"])
    file = written(
        tmp_path,
        {"component": "host/a", "parents": ["rack/2"], "labels": {"team": "web"}},
        {"component": "host/b", "parents": ["rack/1"]},
        {"component": "host/d", "parents": ["rack/2"]},
    )
    gone = tmp_path / "gone.ndjson"
    with pytest.raises(SystemExit) as ended:
        call_command("topology_diff", file, "--gone", str(gone))
    assert ended.value.code == 1
    assert capsys.readouterr().out.splitlines() == [
        "~ host/a",
        '    parents: ["rack/1"] -> ["rack/2"]',
        "- host/c",
        "+ host/d",
        '    parents: ["rack/2"]',
        "Region default: added: 1 host; changed: 1 host; gone: 1 host.",
    ]
    (row,) = map(json.loads, gone.read_text().splitlines())
    assert (row["component"], row["region"], row["active"]) == ("host/c", "default", False)


def test_a_topology_that_is_in_force_already_differs_in_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tell(BEFORE, "host/a", region="dc1", parents=["rack/1"])
    call_command(
        "topology_diff", written(tmp_path, {"component": "host/a", "parents": ["rack/1"]}), "--region=dc1"
    )
    assert capsys.readouterr().out == "Region dc1: nothing differs.\n"


def test_the_last_row_of_a_component_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tell(BEFORE, "host/a", parents=["rack/1"])
    late = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    file = written(
        tmp_path,
        {"component": "host/a", "time": late, "active": False},
        {"component": "host/a", "parents": ["rack/9"]},
    )
    with pytest.raises(SystemExit):
        call_command("topology_diff", file, "--json")
    (one,) = json.loads(capsys.readouterr().out)["default"]
    assert (one["component"], one["after"]) == ("host/a", None)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"time": 0, "component": "host"}', "row 1, component"),
        ('{"component": "host/a"}', "row 1, time"),
        ("[", "row 1"),
        ("", "no rows"),
    ],
)
def test_rows_that_cannot_be_read_are_refused_with_their_place(tmp_path: Path, body: str, words: str) -> None:
    file = tmp_path / "bad.ndjson"
    file.write_text(body)
    with pytest.raises(CommandError, match=words) as refused:
        call_command("topology_diff", str(file))
    assert refused.value.returncode == 2
    assert "bad.ndjson" in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"none\.ndjson: No such file"):
        call_command("topology_diff", str(tmp_path / "none.ndjson"))
