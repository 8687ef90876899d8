"""Sending to addresses that people typed, against real sockets."""

import datetime as dt
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ipaddress import ip_network
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pytest_django import Settings

from incidents.security import outbound
from incidents.security.outbound import AddressRefusedError, Reply, UnreachableError, post
from tests.integration.sinks import Sink, http_sink, raw_sink


@pytest.fixture(autouse=True)
def loopback(settings: Settings) -> None:
    settings.OUTBOUND_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]


def test_a_request_arrives_as_it_was_given() -> None:
    with http_sink() as sink:
        reply = post(sink.url + "?a=1", b'{"b": 2}', {"Content-Type": "application/json", "X-One": "1"})
    assert (reply.status, reply.text, reply.taken) == (200, "thanks", True)
    (got,) = sink.got
    assert (got.path, got.body, got.headers["x-one"]) == ("/hook?a=1", b'{"b": 2}', "1")


def test_loopback_is_refused_where_nothing_allows_it(settings: Settings) -> None:
    settings.OUTBOUND_ALLOWED_NETWORKS = []
    with http_sink() as sink:
        for host in (
            "127.0.0.1",
            "localhost",
            "2130706433",
            "0x7f.1",
            "127.1",
            "[::ffff:127.0.0.1]",
            "0.0.0.0",
        ):
            with pytest.raises(AddressRefusedError):
                post(f"http://{host}:{sink.port}/", b"")
    assert sink.got == []


def test_a_name_with_one_private_address_among_public_ones_is_refused() -> None:
    with pytest.raises(AddressRefusedError, match=r"10\.0\.0\.1"):
        post("http://two.example/", b"", resolve=lambda *_: ["1.1.1.1", "10.0.0.1"])


def test_the_connection_goes_to_the_address_that_was_checked() -> None:
    asked: list[str] = []

    def rebinding(host: str, _port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["10.0.0.1"]

    with http_sink() as sink:
        reply = post(f"http://hooks.example:{sink.port}/x", b"", resolve=rebinding)
    assert (reply.status, asked) == (200, ["hooks.example"])
    assert sink.got[0].headers["host"] == f"hooks.example:{sink.port}"


def test_a_redirect_is_an_answer_and_not_followed() -> None:
    with http_sink() as inner, http_sink(lambda _: (302, {"Location": inner.url}, b"")) as sink:
        reply = post(sink.url, b"")
    assert (reply.status, reply.taken, inner.got) == (302, False, [])


def test_a_second_address_is_tried_when_the_first_does_not_answer() -> None:
    with http_sink() as sink:
        reply = post(
            f"http://two.example:{sink.port}/", b"", timeout=3, resolve=lambda *_: ["127.9.9.9", "127.0.0.1"]
        )
    assert reply.status == 200


def _read_request(talk: socket.socket) -> None:
    talk.recv(65_536)


def test_a_receiver_that_trickles_its_headers_is_left_at_the_deadline() -> None:
    def trickle(talk: socket.socket) -> None:
        _read_request(talk)
        talk.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        for _ in range(100):
            talk.sendall(b"a")
            time.sleep(0.05)

    began = time.monotonic()
    with raw_sink(trickle) as sink, pytest.raises(UnreachableError, match="in time"):
        post(sink.url, b"", timeout=0.5)
    assert time.monotonic() - began < 4


def test_a_receiver_that_says_200_and_trickles_the_body_has_taken_it() -> None:
    def trickle(talk: socket.socket) -> None:
        _read_request(talk)
        talk.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n")
        for _ in range(100):
            talk.sendall(b"a")
            time.sleep(0.05)

    began = time.monotonic()
    with raw_sink(trickle) as sink:
        assert post(sink.url, b"", timeout=0.5).taken
    assert time.monotonic() - began < 4


def test_a_receiver_that_never_reads_is_left_at_the_deadline() -> None:
    began = time.monotonic()
    with raw_sink(lambda _: time.sleep(6)) as sink, pytest.raises(UnreachableError):
        post(sink.url, b"x" * 50_000_000, timeout=0.5)
    assert time.monotonic() - began < 4


def test_a_receiver_that_hangs_in_the_tls_handshake_is_left_at_the_deadline() -> None:
    began = time.monotonic()
    with raw_sink(lambda _: time.sleep(6)) as sink, pytest.raises(UnreachableError):
        post(f"https://127.0.0.1:{sink.port}/", b"", timeout=0.5)
    assert time.monotonic() - began < 5


def test_a_long_answer_is_cut() -> None:
    with http_sink(lambda _: (200, {}, b"a" * 1_000_000)) as sink:
        assert post(sink.url, b"", most=100).text == "a" * 100


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 999999999999 X\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 500 + b"\r\n",
    ],
)
def test_an_answer_that_is_no_http_is_unreachable(said: bytes) -> None:
    def talk(connection: socket.socket) -> None:
        _read_request(connection)
        connection.sendall(said)

    with raw_sink(talk) as sink, pytest.raises(UnreachableError):
        post(sink.url, b"", timeout=2)


def test_nobody_listening_is_unreachable() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(UnreachableError, match="refused"):
        post(f"http://127.0.0.1:{port}/", b"")


def test_a_resolver_that_hangs_ends_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    free = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: free.wait(5) and [])
    began = time.monotonic()
    with pytest.raises(UnreachableError, match="no answer within"):
        post("http://slow.example/", b"", timeout=0.3)
    free.set()
    assert time.monotonic() - began < 4


def test_a_header_with_a_line_end_is_refused_before_anything_is_sent() -> None:
    with http_sink() as sink, pytest.raises(AddressRefusedError, match="cannot be written"):
        post(sink.url, b"", {"X-One": "a\r\nX-Two: b"})
    assert sink.got == []


@pytest.mark.parametrize(
    ("status", "passing"), [(400, False), (404, False), (302, False), (408, True), (429, True), (503, True)]
)
def test_a_refusal_for_good_and_one_for_now_are_told_apart(status: int, passing: bool) -> None:
    assert Reply(status).passing is passing


@contextmanager
def _encrypted(folder: Path, name: str) -> Iterator[tuple[Sink, Path]]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = folder / "certificate.pem"
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private = folder / "key.pem"
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, private)

    def talk(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as safe:
            safe.recv(65_536)
            safe.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with raw_sink(talk) as sink:
        yield sink, pem


@pytest.fixture
def fresh_trust() -> Iterator[None]:
    outbound._trust.cache_clear()
    yield
    outbound._trust.cache_clear()


@pytest.mark.usefixtures("fresh_trust")
def test_a_certificate_counts_for_the_name_and_not_for_the_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _encrypted(tmp_path, "hooks.example") as (sink, pem):
        monkeypatch.setenv("SSL_CERT_FILE", str(pem))
        url = f"https://hooks.example:{sink.port}/"
        assert post(url, b"", resolve=lambda *_: ["127.0.0.1"]).text == "ok"
        with pytest.raises(UnreachableError, match="doesn't match"):
            post(url.replace("hooks", "others"), b"", resolve=lambda *_: ["127.0.0.1"])


@pytest.mark.usefixtures("fresh_trust")
def test_a_certificate_that_nobody_vouches_for_is_not_trusted(tmp_path: Path) -> None:
    with (
        _encrypted(tmp_path, "hooks.example") as (sink, _),
        pytest.raises(UnreachableError, match="certificate"),
    ):
        post(f"https://hooks.example:{sink.port}/", b"", resolve=lambda *_: ["127.0.0.1"])
