"""A push service with one browser behind it: checks who sends, and decrypts as the browser does (RFC 8291, 3.4)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.test import override_settings

from tests.integration.sinks import Got, http_sink

P256 = ec.SECP256R1()


def _plain(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _hkdf(salt: bytes, secret: bytes, info: bytes, length: int) -> bytes:
    """RFC 5869 for at most one block."""
    key = hmac.new(salt, secret, hashlib.sha256).digest()
    return hmac.new(key, info + b"\x01", hashlib.sha256).digest()[:length]


@dataclass
class PushService:
    """`answers` are the statuses that it gives next, before it takes everything."""

    port: int = 0
    answers: list[int] = field(default_factory=list)
    shown: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    signers: list[str] = field(default_factory=list)
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(P256))
    auth: bytes = field(default_factory=lambda: os.urandom(16))

    @property
    def point(self) -> bytes:
        return self.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    def subscription(self, name: str = "1") -> str:
        keys = {"p256dh": _url(self.point), "auth": _url(self.auth)}
        endpoint = f"http://127.0.0.1:{self.port}/send/{name}"
        return json.dumps({"endpoint": endpoint, "expirationTime": None, "keys": keys})

    def take(self, got: Got) -> tuple[int, dict[str, str], bytes]:
        status = self.answers.pop(0) if self.answers else 201
        if status >= 300:
            return status, {}, b"no"
        if not self._is_signed(got.headers["authorization"]):
            return 403, {}, b"not signed for this service"
        if "ttl" not in got.headers or len(got.body) > 4096:
            return 400, {}, b"no TTL, or too long"
        self.headers.append(got.headers)
        self.shown.append(json.loads(self._decrypted(got.body)))
        return status, {}, b""

    def _is_signed(self, header: str) -> bool:
        token, _, key = header.removeprefix("vapid t=").partition(", k=")
        point = ec.EllipticCurvePublicKey.from_encoded_point(P256, _plain(key))
        try:
            claims = jwt.decode(token, point, algorithms=["ES256"], audience=f"http://127.0.0.1:{self.port}")
        except jwt.InvalidTokenError:
            return False
        self.signers.append(key)
        return bool(claims["exp"] < time.time() + 24 * 3600 and claims["sub"])

    def _decrypted(self, body: bytes) -> bytes:
        salt, length = body[:16], body[20]
        sender, encrypted = body[21 : 21 + length], body[21 + length :]
        shared = self.key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(P256, sender))
        secret = _hkdf(self.auth, shared, b"WebPush: info\0" + self.point + sender, 32)
        key = _hkdf(salt, secret, b"Content-Encoding: aes128gcm\0", 16)
        nonce = _hkdf(salt, secret, b"Content-Encoding: nonce\0", 12)
        padded = AESGCM(key).decrypt(nonce, encrypted, None).rstrip(b"\0")
        assert padded.endswith(b"\x02")
        return padded[:-1]


@contextmanager
def push_service() -> Iterator[PushService]:
    """A push service that may be reached."""
    service = PushService()
    networks = (ip_network("127.0.0.0/8"),)
    with http_sink(service.take) as sink, override_settings(OUTBOUND_ALLOWED_NETWORKS=networks):
        service.port = sink.port
        yield service
