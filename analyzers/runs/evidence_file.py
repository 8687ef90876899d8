"""The evidence file: verdicts with what they were made of, signed, and judged again without a server. Pure.

The file is a DSSE envelope (Dead Simple Signing Envelope, github.com/secure-systems-lab/dsse, protocol 1.0) with one
Ed25519 signature over an `EvidenceFile` in JSON. What a verdict rests on (analyzer, version, parameters, window, hashes
of the summed windows and of the verdict) is the body of `analysis.recorded`, whose inclusion in the sealed log is
proved. The windows are the bytes that the analyzer read.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import zstandard

from analyzers import registry, runner
from analyzers.contract import InvalidParameterError, Paths, Sums, Window
from ingest.log.inclusion import Hex, Inclusion, InclusionError, check_inclusion
from ingest.log.types import parse_rfc3339
from ingest.telemetry.windows.sums import loads

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

FORMAT = "dossier evidence 1"
PAYLOAD_TYPE = "application/vnd.dossier.evidence+json"
RECORDED_TYPE = "analysis.recorded"
MOST_BYTES = 256 * 2**20
MOST_UNPACKED = 2**30
"""Bytes of all windows of a file, unpacked."""
MOST_JUDGED = 100
MOST_DIFFERENCES = 20

Text = Annotated[str, msgspec.Meta(max_length=2000)]


class InvalidEvidenceFileError(ValueError):
    """A file that is no evidence file, or not one of this version; the text is one line."""


class Subject(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The incident that the evidence is of."""

    number: int
    id: Text
    title: Text
    opened_at: Text
    component: Text | None


class PastWindow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    end: Text
    hash: Hex


class Judged(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A recorded verdict: the proof of its event, its canonical JSON where it is stored still, and the windows of its
    history, oldest first."""

    recorded: Inclusion
    verdict: str | None
    history: Annotated[list[PastWindow], msgspec.Meta(max_length=10_000)]


class EvidenceFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`windows` are summed windows by their SHA-256; those that are stored no more are left out."""

    format: Text
    exported_at: Text
    incident: Subject
    judged: Annotated[list[Judged], msgspec.Meta(min_length=1, max_length=MOST_JUDGED)]
    windows: dict[str, bytes]


class _Signature(msgspec.Struct, frozen=True):
    sig: bytes
    keyid: Text = ""


class _Envelope(msgspec.Struct, frozen=True):
    payload: bytes
    payloadType: str
    signatures: Annotated[list[_Signature], msgspec.Meta(min_length=1, max_length=1)]


class _Span(msgspec.Struct, frozen=True):
    start: Text
    end: Text


class _Recorded(msgspec.Struct, frozen=True):
    """Fields read of the body of `analysis.recorded`."""

    run: Text
    analyzer: Text
    version: Text
    params: dict[str, bool | int | float | str]
    region: Text
    window: _Span
    input: Text
    window_hash: Hex
    history_hashes: list[Hex]
    verdict_hash: Hex


def signing_key(secret: str) -> Ed25519PrivateKey:
    """The key of an installation: derived (HKDF, RFC 5869) from its DOSSIER_SECRET_KEY, so that every process has it
    and no table holds it."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    derived = HKDF(SHA256(), 32, salt=None, info=b"dossier evidence file").derive(secret.encode())
    return Ed25519PrivateKey.from_private_bytes(derived)


def public_text(key: Ed25519PrivateKey) -> str:
    """The public key as `ed25519:BASE64`."""
    return f"ed25519:{base64.b64encode(key.public_key().public_bytes_raw()).decode()}"


def sign(file: EvidenceFile, key: Ed25519PrivateKey) -> bytes:
    """The envelope, one line of JSON. `keyid` is the public key."""
    payload = msgspec.json.encode(file)
    signature = _Signature(key.sign(_signed(PAYLOAD_TYPE, payload)), public_text(key))
    return msgspec.json.encode(_Envelope(payload, PAYLOAD_TYPE, [signature])) + b"\n"


def _signed(payload_type: str, payload: bytes) -> bytes:
    """The pre-authentication encoding (PAE) of DSSE."""
    name = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(name), name, len(payload), payload)


@dataclass(frozen=True, slots=True)
class Check:
    """One line of what was checked: `holds` is None where it could not be."""

    holds: bool | None
    text: str


def verify(body: bytes, key: str | None, seals: Sequence[str]) -> Iterator[Check]:
    """Check an evidence file: signature, inclusion in the log, and every verdict by judging its window again.

    `key` is the public key that the signature must be of, as `public_text`; `seals` are seals noted outside of the
    database, as `log@7:HASH`. Raises InvalidEvidenceFileError.
    """
    signer, payload, signature = _opened(body)
    check = _check_signature(signer, payload, signature, key)
    yield check
    if check.holds is False:
        return
    file = _decoded(payload)
    yield Check(
        True, f"Incident {file.incident.number}: {file.incident.title} (exported {file.exported_at})."
    )
    windows = _Windows(file.windows)
    noted = dict(one.partition(":")[::2] for one in seals)
    for place, one in enumerate(file.judged, start=1):
        for check in _check_judged(one, windows, noted):
            yield Check(check.holds, f"Verdict {place} of {len(file.judged)}: {check.text}")


def _opened(body: bytes) -> tuple[str, bytes, bytes]:
    """The signer, the payload and the signature of an envelope."""
    if len(body) > MOST_BYTES:
        raise InvalidEvidenceFileError(f"larger than {MOST_BYTES >> 20} MiB: no evidence file is")
    try:
        envelope = msgspec.json.decode(body, type=_Envelope)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidEvidenceFileError(f"no evidence file, or cut short: {error}") from None
    if envelope.payloadType != PAYLOAD_TYPE:
        raise InvalidEvidenceFileError(f"an envelope of {envelope.payloadType}, not of {PAYLOAD_TYPE}")
    return envelope.signatures[0].keyid, envelope.payload, envelope.signatures[0].sig


def _check_signature(signer: str, payload: bytes, signature: bytes, key: str | None) -> Check:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    name, _, raw = (signer if key is None else key.strip()).partition(":")
    try:
        if name != "ed25519":
            raise ValueError
        public = Ed25519PublicKey.from_public_bytes(base64.b64decode(raw, validate=True))
    except ValueError:
        which = "in the file" if key is None else "given"
        raise InvalidEvidenceFileError(
            f"the key {which} is no public key; right: ed25519:BASE64 of 32 bytes"
        ) from None
    try:
        public.verify(signature, _signed(PAYLOAD_TYPE, payload))
    except InvalidSignature:
        return Check(False, f"Signature: not by {name}:{raw}; the file was changed or is of another sender.")
    if key is None:
        return Check(None, f"Signature: by {signer}; compare with the sender's key (--key).")
    return Check(True, f"Signature: good, by {name}:{raw}.")


def _decoded(payload: bytes) -> EvidenceFile:
    try:
        if (given := msgspec.json.decode(payload, type=dict[str, Any]).get("format")) != FORMAT:
            raise InvalidEvidenceFileError(
                f"of the format {given!r:.60}; this version reads {FORMAT!r}: install the one that wrote it"
            )
        return msgspec.json.decode(payload, type=EvidenceFile)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidEvidenceFileError(f"the signed part is malformed: {error}") from None


class _Windows:
    """The summed windows of a file, unpacked when asked for, within MOST_UNPACKED in all."""

    def __init__(self, bodies: Mapping[str, bytes]) -> None:
        self._bodies = bodies
        self._left = MOST_UNPACKED

    def __contains__(self, digest: str) -> bool:
        return digest in self._bodies

    def sums(self, digest: str) -> dict[str, Sums]:
        """Raises InvalidEvidenceFileError."""
        body = self._bodies[digest]
        where = f"the window {digest[:12]}"
        if sha256(body).hexdigest() != digest:
            raise InvalidEvidenceFileError(f"{where} has other bytes than its hash says")
        try:
            size = zstandard.get_frame_parameters(body).content_size
            if not 0 <= size <= self._left:
                raise InvalidEvidenceFileError(f"the windows unpack to more than {MOST_UNPACKED >> 20} MiB")
            self._left -= size
            sums = loads(body)
        except InvalidEvidenceFileError:
            raise
        except (zstandard.ZstdError, ValueError, LookupError, AttributeError, RecursionError, OverflowError):
            raise InvalidEvidenceFileError(f"{where} is no summed window") from None
        for name, one in sums.items():
            columns = [*one.keys.values(), *one.values.values()]
            if any(not isinstance(column, Paths) and len(column) != one.rows for column in columns):
                raise InvalidEvidenceFileError(f"{where} has columns of other lengths than {name} has rows")
        return sums


def _check_judged(one: Judged, windows: _Windows, noted: Mapping[str, str]) -> Iterator[Check]:
    try:
        seals = check_inclusion(one.recorded)
    except InclusionError as bad:
        yield Check(False, f"Log: {bad}.")
        return
    recorded = _recorded_in(one.recorded)
    yield Check(
        True,
        f"{recorded.analyzer} {recorded.version} on {recorded.region}, {recorded.window.start} to"
        f" {recorded.window.end}, run {recorded.run}.",
    )
    yield _check_seals(seals, noted)
    wanted = [recorded.window_hash, *recorded.history_hashes]
    if [past.hash for past in one.history] != recorded.history_hashes:
        yield Check(False, "Inputs: the history is not the one that the log recorded.")
    elif missing := sum(digest not in windows for digest in wanted):
        yield Check(
            None, f"Inputs: {missing} of {len(wanted)} windows were not stored any more: not judged again."
        )
    else:
        yield from _check_verdict(one, recorded, windows)


def _recorded_in(proof: Inclusion) -> _Recorded:
    if proof.event.type != RECORDED_TYPE:
        raise InvalidEvidenceFileError(f"the log's event is {proof.event.type}, not {RECORDED_TYPE}")
    try:
        return msgspec.json.decode(proof.event.body, type=_Recorded)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InvalidEvidenceFileError(f"the body of {RECORDED_TYPE} is malformed: {error}") from None


def _check_seals(seals: Sequence[str], noted: Mapping[str, str]) -> Check:
    """The seals that cover a verdict, against those that were noted outside by their ids."""
    found = [one.partition(":")[::2] for one in seals if one.partition(":")[0] in noted]
    for seal_id, digest in found:
        if noted[seal_id] != digest:
            return Check(
                False,
                f"Log: the seal {seal_id} noted outside is {noted[seal_id][:16]}…, here {digest[:16]}….",
            )
    if found:
        return Check(True, f"Log: recorded under the seal {found[0][0]} that was noted outside.")
    given = f"; given are {len(noted)} others" if noted else ""
    return Check(None, f"Log: under the seal {seals[0]}{given}; compare with one noted outside (--seals).")


def _check_verdict(one: Judged, recorded: _Recorded, windows: _Windows) -> Iterator[Check]:
    analyzer = registry.installed().get(recorded.analyzer)
    if analyzer is None or analyzer.version != recorded.version:
        there = "not installed" if analyzer is None else f"installed as {analyzer.version}"
        yield Check(
            None,
            f"Verdict: not judged again: {recorded.analyzer} {recorded.version} is wanted and is {there}.",
        )
        return
    try:
        verdict = runner.judge(analyzer, _window(one, recorded, windows), recorded.params)
    except (runner.AnalysisError, InvalidParameterError) as error:
        yield Check(False, f"Verdict: could not be reached again: {error}.")
        return
    again = runner.verdict_json(verdict)
    if sha256(again).hexdigest() == recorded.verdict_hash:
        yield Check(
            True,
            f"Verdict: {verdict['status']}, judged again: the same bytes (SHA-256 {recorded.verdict_hash}).",
        )
    else:
        yield Check(False, f"Verdict: judged again, it differs: {_difference(one, recorded, again)}")


def _window(one: Judged, recorded: _Recorded, windows: _Windows) -> Window:
    try:
        start, end = parse_rfc3339(recorded.window.start), parse_rfc3339(recorded.window.end)
        ends = [parse_rfc3339(past.end) for past in one.history]
        spans = [(at - (end - start), at) for at in ends]
    except (ValueError, OverflowError) as error:
        raise InvalidEvidenceFileError(f"a time of a window is malformed: {error}") from None

    def window(begin: datetime, until: datetime, digest: str, past: tuple[Window, ...] = ()) -> Window:
        return Window(begin, until, recorded.region, recorded.input, windows.sums(digest), past)

    history = (window(*span, past.hash) for span, past in zip(spans, one.history, strict=True))
    return window(start, end, recorded.window_hash, tuple(history))


def _difference(one: Judged, recorded: _Recorded, again: bytes) -> str:
    if one.verdict is None or sha256(one.verdict.encode()).hexdigest() != recorded.verdict_hash:
        return "the recorded verdict itself is not in the file."
    found = list(differences(json.loads(one.verdict), json.loads(again)))
    more = f"; and {len(found) - MOST_DIFFERENCES} more" if len(found) > MOST_DIFFERENCES else ""
    return "; ".join(found[:MOST_DIFFERENCES]) + more + "."


def differences(was: Any, now: Any, path: str = "") -> Iterator[str]:
    """Differences of two JSON values, each as `suspects[0].score: 0.9 recorded, 0.8 now`."""
    if isinstance(was, dict) and isinstance(now, dict):
        for name in sorted(was.keys() | now.keys()):
            where = f"{path}.{name}" if path else name
            yield from differences(was.get(name), now.get(name), where)
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for at, (old, new) in enumerate(zip(was, now, strict=True)):
            yield from differences(old, new, f"{path}[{at}]")
    elif was != now:
        yield f"{path or 'the verdict'}: {json.dumps(was)[:80]} recorded, {json.dumps(now)[:80]} now"
