"""Certificates that are PEM and DER, and damaged inside."""

from __future__ import annotations

import base64
from collections.abc import Callable

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.certificates import Issued

_VERSION_3 = b"\xa0\x03\x02\x01\x02"


def _other_version(der: bytes, _: Issued) -> bytes:
    return der.replace(_VERSION_3, b"\xa0\x03\x02\x01\x05", 1)


def _point_off_the_curve(der: bytes, issued: Issued) -> bytes:
    point = issued.chain[0].public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)[-32:]
    return der.replace(point, bytes((point[0] ^ 1,)) + point[1:], 1)


DAMAGES: dict[str, Callable[[bytes, Issued], bytes]] = {
    "another version": _other_version,
    "a point off the curve": _point_off_the_curve,
}


def damaged_store(issued: Issued, damage: str) -> str:
    """Key and certificate, as one PEM file."""
    der = issued.chain[0].public_bytes(Encoding.DER)
    changed = DAMAGES[damage](der, issued)
    assert changed != der
    body = base64.encodebytes(changed).decode()
    return f"{issued.key_pem()}-----BEGIN CERTIFICATE-----\n{body}-----END CERTIFICATE-----\n"
