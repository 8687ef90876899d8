"""Evidence files from strangers: each ends in one clear line, whatever its bytes."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from typing import Any

import msgspec
import numpy as np
import pytest
import zstandard

from analyzers import registry
from analyzers.contract import Paths, Sums, Window
from analyzers.runner import judge, verdict_json
from analyzers.runs.evidence_file import (
    FORMAT,
    PAYLOAD_TYPE,
    EvidenceFile,
    InvalidEvidenceFileError,
    Judged,
    Subject,
    differences,
    public_text,
    sign,
    signing_key,
    verify,
)
from ingest.log.inclusion import Cover, Inclusion, Line, StoredEvent
from ingest.log.types import Position, rfc3339
from ingest.telemetry.windows.sums import dumps

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
KEY = signing_key("of the tests")
Change = Callable[[dict[str, Any]], None]


def event(stream: str, version: int, type_: str, body: Any) -> StoredEvent:
    at = "2026-01-02T12:00:00.000000+00:00"
    return StoredEvent(stream, version, type_, 1, json.dumps(body), "system:test", None, None, at, at, "")


@cache
def evidence() -> EvidenceFile:
    """A verdict of `boolean` on two paths, one of which fails, as the second event under the first seal."""
    paths = Paths(("tor/a", "tor/b"), np.array([0, 1, 2]), np.array([0, 1], np.int32))
    sums = {
        "paths": Sums(
            {"components": paths}, {"attempts": np.array([90, 90]), "failures": np.array([80, 0])}, 2
        )
    }
    window = dumps(sums)
    digest = sha256(window).hexdigest()
    analyzer = registry.get("boolean")
    given = Window(NOON, NOON + timedelta(hours=1), "default", "path_outcome", sums)
    verdict = judge(analyzer, given)
    text = verdict_json(verdict)
    body = {
        "run": "r", "analyzer": "boolean", "version": analyzer.version, "params": verdict["params"],
        "region": "default", "window": {"start": rfc3339(given.start), "end": rfc3339(given.end)},
        "input": "path_outcome", "window_hash": digest, "history_hashes": [],
        "verdict_hash": sha256(text).hexdigest(),
    }  # fmt: skip
    recorded = event("run/r", 1, "analysis.recorded", body)
    lines = [Line(str(Position(1, 7, 1)), "a", 1, "00" * 32)]
    lines += [Line(str(Position(1, 8, 1)), "run/r", 1, recorded.digest().hex())]
    cover = Cover("")
    cover.add(
        (one.stream, one.version, bytes.fromhex(one.hash), Position.parse(one.position)) for one in lines
    )
    seal = event("log", 1, "log.sealed", {"root": cover.root, "events": 2})
    later = msgspec.structs.replace(event("log", 2, "log.sealed", {}), previous=seal.digest().hex())
    subject = Subject(1, "i", "A ToR fails", rfc3339(NOON), "tor/a")
    judged = Judged(Inclusion(recorded, "", lines, seal, [later]), text.decode(), [])
    return EvidenceFile(FORMAT, rfc3339(NOON), subject, [judged], {digest: window})


def changed(change: Change) -> bytes:
    payload = json.loads(msgspec.json.encode(evidence()))
    change(payload)
    body = json.dumps(payload).encode()
    signature = KEY.sign(b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(body), body))
    return enveloped(body, signature)


def enveloped(payload: bytes, signature: bytes, key: str = public_text(KEY)) -> bytes:
    signatures = [{"keyid": key, "sig": base64.b64encode(signature).decode()}]
    whole = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": signatures,
    }
    return json.dumps(whole).encode()


def test_an_honest_file_holds() -> None:
    checks = list(verify(sign(evidence(), KEY), public_text(KEY), []))
    assert [one.holds for one in checks] == [True, True, True, None, True], checks


def _window(body: bytes) -> Change:
    """Another window under its right hash, so that only its bytes are looked at."""

    def change(payload: dict[str, Any]) -> None:
        digest = sha256(body).hexdigest()
        payload["windows"] = {digest: base64.b64encode(body).decode()}
        recorded = payload["judged"][0]["recorded"]
        found = json.loads(recorded["event"]["body"]) | {"window_hash": digest}
        recorded["event"]["body"] = json.dumps(found)
        reseal(payload)

    return change


def reseal(payload: dict[str, Any]) -> None:
    recorded = payload["judged"][0]["recorded"]
    recorded["lines"][1][3] = msgspec.convert(recorded["event"], StoredEvent).digest().hex()
    cover = Cover("")
    cover.add(
        (stream, version, bytes.fromhex(digest), Position.parse(at))
        for at, stream, version, digest in recorded["lines"]
    )
    recorded["seal"]["body"] = json.dumps({"root": cover.root, "events": 2})
    recorded["later"] = []


def _other_sums(payload: dict[str, Any]) -> None:
    paths = Paths(("tor/a", "tor/b"), np.array([0, 1, 2]), np.array([0, 1], np.int32))
    sums = {
        "paths": Sums(
            {"components": paths}, {"attempts": np.array([90, 90]), "failures": np.array([0, 0])}, 2
        )
    }
    _window(dumps(sums))(payload)


BOMB = zstandard.ZstdCompressor().compress(bytes(1 << 20))
HUGE = bytes.fromhex("28b52ffde0") + (1 << 45).to_bytes(8, "little") + bytes(9)


def _deep(payload: dict[str, Any]) -> None:
    payload["judged"][0]["recorded"]["seal"]["body"] = "[" * 100_000


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_other_sums, "judged again, it differs: .*status: \"inconclusive\" recorded, \"quiet\" now"),
        (lambda p: p["judged"][0]["recorded"]["event"].update(actor="user:bob"), "is not among the events under"),
        (lambda p: p["judged"][0]["recorded"]["lines"].pop(0), "are not those of its root"),
        (_deep, "is no event of a log"),
        (lambda p: p["judged"][0]["recorded"]["later"][0].update(previous=""), "log@2 does not follow log@1"),
    ],
)  # fmt: skip
def test_a_changed_part_is_a_check_that_fails(change: Change, says: str) -> None:
    checks = list(verify(changed(change), public_text(KEY), []))
    assert checks[-1].holds is False
    assert re.search(says, checks[-1].text), checks[-1].text


def _set(name: str, value: Any) -> Change:
    return lambda payload: payload.update({name: value})


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "no evidence file, or cut short"),
        (b"\x80\x04K\x01.", "no evidence file, or cut short"),
        (sign(evidence(), KEY)[:-40], "no evidence file, or cut short"),
        (b"[" * 1_000_000, "no evidence file, or cut short"),
        (enveloped(b"{}", bytes(64), "rsa:x"), "is no public key"),
        (changed(_set("format", "dossier evidence 9")), "of the format 'dossier evidence 9'"),
        (changed(_set("judged", [])), "malformed: .*judged"),
        (changed(lambda p: p["judged"][0]["recorded"]["event"].update(previous="zz")), "malformed: .*previous"),
        (changed(lambda p: p["windows"].update(dict.fromkeys(p["windows"], "AAAA"))), "other bytes than its hash"),
        (changed(_window(b"no zstd")), "is no summed window"),
        (changed(_window(BOMB)), "is no summed window"),
        (changed(_window(HUGE)), "unpack to more than 1024 MiB"),
    ],
)  # fmt: skip
def test_a_file_that_is_none_is_refused_in_one_line(body: bytes, says: str) -> None:
    with pytest.raises(InvalidEvidenceFileError, match=says):
        list(verify(body, None, []))


def test_the_next_seal_that_was_noted_outside_speaks_for_the_verdict() -> None:
    noted = f"log@2:{evidence().judged[0].recorded.later[0].digest().hex()}"
    checks = list(verify(sign(evidence(), KEY), None, [noted]))
    assert (checks[3].holds, "seal log@2 that was noted" in checks[3].text) == (True, True)


def test_a_file_of_another_key_is_not_opened() -> None:
    (only,) = verify(sign(evidence(), KEY), public_text(signing_key("of someone else")), [])
    assert only.holds is False


def test_differences_name_the_path_and_both_values() -> None:
    was, now = {"a": [{"b": 1}], "c": "x"}, {"a": [{"b": 2}], "c": "x"}
    assert list(differences(was, now)) == ["a[0].b: 1 recorded, 2 now"]
