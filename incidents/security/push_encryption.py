"""Encryption and signatures of web push: bodies for one browser (RFC 8291, `aes128gcm` of RFC 8188), and the header
that says which installation sends (VAPID, RFC 8292).
"""

from __future__ import annotations

import os
from datetime import datetime
from email.utils import parseaddr
from typing import Final
from urllib.parse import urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings

from incidents.domain.notifications.push import Subscription, decoded, encoded, read_subscription
from incidents.domain.values import InvalidValueError

RECORD_SIZE: Final = 4096
TOKEN_SECONDS: Final = 12 * 3600
"""Validity of a signature; RFC 8292 allows a day."""
CURVE: Final = ec.SECP256R1()


def new_key() -> str:
    """A private key for signatures, as base64url of its 32 bytes."""
    value = ec.generate_private_key(CURVE).private_numbers().private_value
    return encoded(value.to_bytes(32, "big"))


def public_key(private: str) -> str:
    """The `applicationServerKey` that browsers subscribe with."""
    return encoded(_point(_private_key(private)))


def check_subscription(text: str) -> Subscription:
    """Raises InvalidValueError, also where its key is no point of the curve."""
    found = read_subscription(text)
    try:
        ec.EllipticCurvePublicKey.from_encoded_point(CURVE, found.receiver_key)
    except ValueError:
        raise InvalidValueError("address", "has a key p256dh that is no point of the curve P-256") from None
    return found


def encrypt(
    plaintext: bytes,
    receiver: bytes,
    auth: bytes,
    own: ec.EllipticCurvePrivateKey | None = None,
    salt: bytes = b"",
) -> bytes:
    """The body of a push message: one record of RFC 8188. `own` and `salt` are new for each message."""
    own = own or ec.generate_private_key(CURVE)
    salt = salt or os.urandom(16)
    sender = _point(own)
    shared = own.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(CURVE, receiver))
    secret = _derived(shared, auth, b"WebPush: info\0" + receiver + sender, 32)
    key = _derived(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derived(secret, salt, b"Content-Encoding: nonce\0", 12)
    header = salt + RECORD_SIZE.to_bytes(4, "big") + bytes([len(sender)]) + sender
    return header + AESGCM(key).encrypt(nonce, plaintext + b"\x02", None)  # 2: the last record


def authorization(endpoint: str, private: str, now: datetime) -> str:
    """The header that says who sends: a signature for this push service, and the key to check it with."""
    parts = urlsplit(endpoint)
    claims = {
        "aud": f"{parts.scheme}://{parts.netloc}",
        "exp": int(now.timestamp()) + TOKEN_SECONDS,
        "sub": _contact(),
    }
    return f"vapid t={jwt.encode(claims, _private_key(private), algorithm='ES256')}, k={public_key(private)}"


def _contact() -> str:
    """Address of the installation's operator for push services."""
    if settings.PUBLIC_URL.startswith("https://"):
        return str(settings.PUBLIC_URL)
    return f"mailto:{parseaddr(settings.DEFAULT_FROM_EMAIL)[1]}"


def _private_key(private: str) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(int.from_bytes(decoded(private), "big"), CURVE)


def _point(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _derived(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length, salt, info).derive(secret)
