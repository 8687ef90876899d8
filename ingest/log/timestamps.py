"""Timestamps of seals by an authority (TSA, RFC 3161): proof that a seal existed at a time.

Whoever can rewrite the database and the file of noted seals still cannot have an authority sign a time that is past.
Nothing here opens a connection: the request is sent by who may do so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import certifi

# The library is imported where it is used: it is large, and few processes need it.
if TYPE_CHECKING:
    from cryptography.x509 import Certificate

REQUEST = "application/timestamp-query"
"""Media type of a request (RFC 3161, 3.4)."""


class InvalidTimestampError(ValueError):
    """A timestamp that is none of this seal by an authority that is trusted; the text says why."""


@dataclass(frozen=True, slots=True)
class Timestamp:
    """Time at which an authority saw a seal, by its clock."""

    at: datetime
    authority: str


def request(seal: str) -> tuple[bytes, int]:
    """A request over the seal's text, and its nonce, which the answer repeats."""
    import rfc3161_client as tsp

    built = tsp.TimestampRequestBuilder(seal.encode(), tsp.HashAlgorithm.SHA256).build()
    return built.as_bytes(), built.nonce or 0


def authorities(file: Path | None) -> list[Certificate]:
    """The trusted roots: of a PEM file, by default those of public authorities. Raises OSError, ValueError."""
    from cryptography import x509

    return x509.load_pem_x509_certificates(Path(file or certifi.where()).read_bytes())


def check(answer: bytes, seal: str, roots: Sequence[Certificate], nonce: int | None = None) -> Timestamp:
    """The time that the answer of an authority gives the seal. Raises InvalidTimestampError.

    The chain of certificates is checked for the time of the stamp, so that it outlives the certificate. Certificates
    that the answer brings lead to a root and are never trusted themselves: the library would trust `intermediates`.
    """
    import rfc3161_client as tsp
    from cryptography import x509

    try:
        response = tsp.decode_timestamp_response(answer)
    except ValueError as error:
        raise InvalidTimestampError(f"is not an answer of RFC 3161: {error}") from error
    if response.status != tsp.PKIStatus.GRANTED:
        raise InvalidTimestampError(
            f"the authority refused: {', '.join(response.status_string) or response.status}"
        )
    try:
        tsp.VerifierBuilder(roots=list(roots), nonce=nonce).build().verify_message(response, seal.encode())
        found = [x509.load_der_x509_certificate(der) for der in response.signed_data.certificates]
    except (tsp.VerificationError, ValueError) as error:
        raise InvalidTimestampError(str(error)) from error
    return Timestamp(response.tst_info.gen_time, _name(found))


def _name(found: Sequence[Certificate]) -> str:
    """The subject of the certificate that signs timestamps."""
    from cryptography import x509

    for one in found:
        try:
            usage = one.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        except x509.ExtensionNotFound:
            continue
        if x509.oid.ExtendedKeyUsageOID.TIME_STAMPING in usage:
            return one.subject.rfc4514_string()
    return "unnamed"
