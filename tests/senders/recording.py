"""A web server that keeps what it is sent."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


@dataclass(frozen=True)
class Recorded:
    """A request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Recorder:
    """Listens on a port of its own while it is entered; answers every request with `answer` (status, body)."""

    answer: Callable[[Recorded], tuple[int, bytes]] = lambda _: (200, b"")
    certificate: tuple[Path, Path] | None = None
    """Certificate and key, for https."""
    requests: list[Recorded] = field(default_factory=list)

    def __enter__(self) -> Recorder:
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _take(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                request = Recorded(self.command, self.path, dict(self.headers.items()), body)
                recorder.requests.append(request)
                status, answer = recorder.answer(request)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_POST = do_PUT = _take

            def log_message(self, format: str, *args: object) -> None:
                """Tests print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        # The certificate is made out to the name, not the number.
        return f"https://localhost:{self.port}" if self.certificate else f"http://127.0.0.1:{self.port}"

    def wait_for(self, wanted: Callable[[Recorded], bool], seconds: float = 30) -> Recorded:
        """The first request that is wanted. Raises TimeoutError."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for request in list(self.requests):
                if wanted(request):
                    return request
            time.sleep(0.05)
        raise TimeoutError(
            f"not sent within {seconds} s; sent were {[(r.path, r.body[:200]) for r in self.requests]}"
        )


def throw_away_certificate(directory: Path) -> tuple[Path, Path]:
    """A certificate for localhost that signs itself, good for a day, and its key."""
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    private = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")]), datetime.now(UTC)
    addresses = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(addresses), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(private, SHA256())
    )
    certificate.write_bytes(signed.public_bytes(Encoding.PEM))
    key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return certificate, key
