"""Seals stamped by an authority (RFC 3161): a real one, made of `openssl ts`, that listens on this machine."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from deploy.observability.outside import Notary
from ingest.commands import record_configuration
from ingest.db import database
from ingest.log import seals
from ingest.log.types import Context
from ingest.log.verify import LogIntegrityError, verify

pytestmark = [
    pytest.mark.usefixtures("log_database"),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is missing: apt-get install openssl"),
]
CONFIGURATION = """
[tsa]
default_tsa = stamper
[stamper]
serial = {place}/serial
default_policy = 1.3.6.1.4.1.1
digests = sha256
accuracy = secs:1
signer_digest = sha256
ess_cert_id_alg = sha256
[root]
basicConstraints = critical,CA:true
keyUsage = critical,keyCertSign
[leaf]
basicConstraints = critical,CA:false
keyUsage = critical,digitalSignature
extendedKeyUsage = critical,timeStamping
[req]
distinguished_name = name
[name]
"""


class Authority:
    """A root, a certificate for timestamps under it, and a server that stamps what it is asked to.

    `stale` makes it repeat its first answer, whatever is asked.
    """

    def __init__(self, place: Path, name: str) -> None:
        self.place, self.root, self.asked, self.stale = place, place / "root.pem", 0, False
        self._first: bytes | None = None
        place.mkdir()
        (place / "openssl.cnf").write_text(CONFIGURATION.format(place=place))
        (place / "serial").write_text("01\n")
        key = ("-newkey", "rsa:2048", "-nodes", "-config", "openssl.cnf")
        # The library demands DER, in which the longer certificate stands last; openssl writes the root last.
        subject = f"/CN={name} root" + "".join(f"/OU={'long' * 15}" for _ in range(6))
        self._run("req", "-x509", *key, "-keyout", "root.key", "-out", "root.pem", "-subj", subject, "-extensions",
                  "root", "-days", "30")  # fmt: skip
        self._run("req", *key, "-keyout", "leaf.key", "-out", "leaf.csr", "-subj", f"/CN={name}")
        self._run("x509", "-req", "-in", "leaf.csr", "-CA", "root.pem", "-CAkey", "root.key", "-set_serial", "7",
                  "-out", "leaf.pem", "-extfile", "openssl.cnf", "-extensions", "leaf", "-days", "30")  # fmt: skip
        authority = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.headers["Content-Type"] == "application/timestamp-query"
                answer = authority.answer(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()

    def _run(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self.place, check=True, capture_output=True, timeout=60)

    def answer(self, question: bytes) -> bytes:
        self.asked += 1
        if self.stale and self._first is not None:
            return self._first
        (self.place / "question").write_bytes(question)
        self._run("ts", "-reply", "-chain", "root.pem", "-config", "openssl.cnf", "-queryfile", "question",
                  "-signer", "leaf.pem", "-inkey", "leaf.key", "-out", "answer")  # fmt: skip
        self._first = self._first or (self.place / "answer").read_bytes()
        return (self.place / "answer").read_bytes()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Authority, Authority]]:
    place = tmp_path_factory.mktemp("authorities")
    both = Authority(place / "a", "Stamps of Alice"), Authority(place / "b", "Stamps of Bob")
    yield both
    for one in both:
        one.close()


@pytest.fixture
def authority(authorities: tuple[Authority, Authority], settings: Settings, tmp_path: Path) -> Authority:
    settings.OUTBOUND_ALLOWED_NETWORKS = (ip_network("127.0.0.0/8"),)
    settings.SEAL_FILE = tmp_path / "seals.jsonl"
    settings.SEAL_TSA_URL, settings.SEAL_TSA_CERTIFICATES = authorities[0].url, str(authorities[0].root)
    authorities[0].asked, authorities[0].stale = 0, False
    return authorities[0]


def seal(name: str = "l") -> None:
    record_configuration("lamp", name, None, {"watts": 1}, Context("user:alice"))
    seals.seal()


def notary(settings: Settings) -> Notary:
    return Notary(settings.SEAL_FILE, [], settings.SEAL_TSA_URL)


def test_a_stamped_seal_is_checked_and_named(
    authority: Authority, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    seal()
    one = notary(settings)
    for _ in range(3):
        one.step()
    assert authority.asked == 1
    call_command("verify_log")
    told = capsys.readouterr().out
    assert "Timestamps: 1 of seals" in told
    assert "by CN=Stamps of Alice." in told
    assert "No seal" not in told


def test_the_stamp_is_what_openssl_says_it_is(authority: Authority, settings: Settings) -> None:
    """Another reader than the one that is used finds the same."""
    seal()
    notary(settings).step()
    (authority.place / "seal").write_text(json.loads(settings.SEAL_FILE.read_text().splitlines()[-1])["seal"])
    authority._run("ts", "-verify", "-data", "seal", "-in", "answer", "-CAfile", "root.pem")


def test_a_stamp_of_another_seal_is_refused(authority: Authority, settings: Settings) -> None:
    seal()
    notary(settings).step()
    seal("m")
    notary(settings).step()
    first, second = (line for line in settings.SEAL_FILE.read_text().splitlines() if "timestamp" in line)
    forged = json.loads(second) | {"timestamp": json.loads(first)["timestamp"]}
    settings.SEAL_FILE.write_text(json.dumps(forged) + "\n")
    with pytest.raises(LogIntegrityError, match=r"log@2: has a timestamp in .* that is invalid: Mismatch"):
        verify(noted_in=settings.SEAL_FILE, trusted=authority.root)


def test_a_stamp_of_an_authority_that_is_not_trusted_is_refused(
    authority: Authority, authorities: tuple[Authority, Authority], settings: Settings
) -> None:
    """The answer brings its own root along: that must not make it trusted."""
    seal()
    notary(settings).step()
    with pytest.raises(LogIntegrityError, match=r"log@1: has a timestamp in .* that is invalid"):
        verify(noted_in=settings.SEAL_FILE, trusted=authorities[1].root)
    assert len(verify(noted_in=settings.SEAL_FILE, trusted=authority.root).timestamps) == 1


def test_an_answer_that_is_not_good_is_not_noted(
    authority: Authority, authorities: tuple[Authority, Authority], settings: Settings
) -> None:
    settings.SEAL_TSA_CERTIFICATES = str(authorities[1].root)
    seal()
    notary(settings).step()
    assert authority.asked == 1
    assert "timestamp" not in settings.SEAL_FILE.read_text()
    assert verify(noted_in=settings.SEAL_FILE).unknown != []


def test_an_answer_that_was_given_before_is_not_noted(authority: Authority, settings: Settings) -> None:
    seal()
    notary(settings).step()
    before = settings.SEAL_FILE.read_text()
    authority.stale = True
    notary(settings).step()  # of a process that began anew: the same seal, another nonce
    assert authority.asked == 2
    assert settings.SEAL_FILE.read_text() == before


def test_an_address_that_is_not_allowed_is_not_asked(authority: Authority, settings: Settings) -> None:
    settings.OUTBOUND_ALLOWED_NETWORKS = ()
    seal()
    notary(settings).step()
    assert authority.asked == 0
    assert "timestamp" not in settings.SEAL_FILE.read_text()


def test_a_seal_that_says_it_was_recorded_after_its_stamp_is_named(
    authority: Authority, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = database.now() + timedelta(hours=1)
    with monkeypatch.context() as ahead:
        ahead.setattr(database, "now", lambda: now)
        seal()
    notary(settings).step()
    with pytest.raises(
        LogIntegrityError, match=r"log@1: says that it was recorded at .*, after its timestamp of"
    ):
        verify(noted_in=settings.SEAL_FILE, trusted=authority.root)


def test_roots_that_are_not_there_are_said_to_be_missing(authority: Authority, settings: Settings) -> None:
    del authority
    seal()
    notary(settings).step()
    settings.SEAL_TSA_CERTIFICATES = "/nowhere/root.pem"
    with pytest.raises(CommandError, match=r"could not be compared .*/nowhere/root.pem"):
        call_command("verify_log")
