"""Evidence files: exported from an incident, checked without the database; what was changed is named."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client

from analyzers.runs.evidence_file import signing_key, verify
from analyzers.runs.models import StoredWindow
from analyzers.runs.requests import RunRequest, request_run
from incidents import queries
from incidents.follower import follower
from ingest.api import keys
from ingest.log.verify import verify as verify_log
from tests.following import follow_to_the_end
from tests.integration.analyzers.runs.cases import HOUR, NOW, TOP, Door, work
from tests.integration.analyzers.runs.test_deepview import failures, placed

pytestmark = pytest.mark.usefixtures("log_database")


def an_incident() -> int:
    """A storage cluster that fails, named by two runs on the windows of an hour."""
    door = Door()
    door.post(placed(), kind="placement")
    failed = [*failures(0), *failures(1, sick="storage_cluster/s4"), *failures(2, sick="storage_cluster/s4")]
    door.post(failed, kind="unit_failure")
    for hour in (1, 2):
        wanted = RunRequest("deepview", start=TOP + hour * HOUR, end=TOP + (hour + 1) * HOUR)
        request_run(wanted, "user:alice", NOW)
        work()
    follow_to_the_end(follower())
    return queries.list_incidents().items[0].incident.number


def printed(capsys: pytest.CaptureFixture[str], *asked: str) -> tuple[int, str]:
    """Exit code and output of `verify_evidence`."""
    capsys.readouterr()
    try:
        call_command("verify_evidence", *asked)
        code = 0
    except SystemExit as ended:
        code = int(str(ended.code))
    return code, "".join(capsys.readouterr())


def resigned(file: Path, change: Any, secret: str = "another") -> Path:
    """The file with its payload changed, signed by somebody else."""
    import msgspec

    from analyzers.runs.evidence_file import EvidenceFile, sign

    payload = json.loads(base64.b64decode(json.loads(file.read_bytes())["payload"]))
    change(payload)
    other = file.with_name("other.json")
    other.write_bytes(sign(msgspec.convert(payload, EvidenceFile), signing_key(secret)))
    return other


def test_an_evidence_file_is_judged_again_and_what_was_changed_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    number = an_incident()
    file = tmp_path / "evidence.json"
    call_command("export_evidence", str(number), str(file))
    call_command("export_evidence", "--key")
    key = capsys.readouterr().out.splitlines()[-1]
    seal = verify_log().newest_seal
    assert seal is not None
    code, said = printed(capsys, str(file), "--key", key, "--seal", seal)
    assert (code, said.count("\nok") + said.startswith("ok")) == (0, 8), said
    assert "the same bytes" in said
    assert said.endswith("Everything holds.\n")
    assert printed(capsys, str(file))[1].endswith("Nothing is wrong; 3 not checked.\n")

    code, said = printed(capsys, str(file), "--seal", f"{seal.partition(':')[0]}:{'0' * 64}")
    assert (code, "WRONG    Verdict 1 of 2: Log: the seal log@1 noted outside is 0000" in said) == (
        1,
        True,
    ), said

    def lie(payload: Any) -> None:
        event = payload["judged"][0]["recorded"]["event"]
        event["body"] = event["body"].replace("storage_cluster/s4", "storage_cluster/s5")

    code, said = printed(capsys, str(resigned(file, lie)), "--key", key)
    assert (code, "Signature: not by ed25519:" in said) == (1, True), said
    code, said = printed(capsys, str(resigned(file, lie)))
    assert (code, "with this content is not among the events under log@1" in said) == (1, True), said


def test_the_console_and_the_api_hand_out_the_same_evidence() -> None:
    number = an_incident()
    reader = Client(headers={"Authorization": f"Bearer {keys.create('reader', ['incidents:read'])}"})
    key = reader.get("/api/v1/evidence-key").json()["key"]
    alice = Client()
    alice.force_login(get_user_model().objects.create(username="alice"))
    assert f"/incidents/{number}/evidence-file" in alice.get(f"/incidents/{number}").content.decode()
    for answer in (
        reader.get(f"/api/v1/incidents/{number}/evidence-file"),
        alice.get(f"/incidents/{number}/evidence-file"),
    ):
        assert f"incident-{number}-evidence.json" in answer["Content-Disposition"]
        checks = list(verify(answer.content, key, []))
        assert [one.holds for one in checks] == [True, True, *[True, None, True] * 2], checks
    StoredWindow.objects.all().delete()
    gone = list(verify(reader.get(f"/api/v1/incidents/{number}/evidence-file").content, key, []))
    assert gone[-1].holds is None
    assert "windows were not stored any more" in gone[-1].text
    assert reader.get("/api/v1/incidents/999/evidence-file").status_code == 404


def test_an_incident_without_a_verdict_has_nothing_to_export() -> None:
    writer = Client(
        headers={"Authorization": f"Bearer {keys.create('w', ['incidents:read', 'incidents:write'])}"}
    )
    opened = writer.post("/api/v1/incidents", {"title": "The lift is stuck"}, content_type="application/json")
    answer = writer.get(f"/api/v1/incidents/{opened.json()['number']}/evidence-file")
    assert (answer.status_code, "nothing to export" in answer.json()["detail"]) == (409, True)
