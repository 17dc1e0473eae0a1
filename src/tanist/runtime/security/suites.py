"""`ssl.cipher.suites`: names as Java has them, and as OpenSSL has them.

OpenSSL's suites of TLS 1.3 cannot be set from Python. Those that are not in the list are refused after the handshake,
and if none is in it, TLS 1.3 is not offered.
"""

from __future__ import annotations

import re
import ssl
from typing import Final

from tanist.ports import TlsProblem

_JAVA: Final = re.compile(r"TLS_([A-Z0-9_]+)_WITH_([A-Z0-9_]+)")
_TLS_13: Final = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")


def openssl_ciphers(text: str) -> tuple[frozenset[str] | None, str | None]:
    """(OpenSSL's names of all that may be agreed on, its list of those before TLS 1.3); None: the defaults."""
    given = [each.strip() for each in text.split(",") if each.strip()]
    if not given:
        return None, None
    known = {each["name"] for each in ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).get_ciphers()}
    found = []
    for each in given:
        name = each if each in known or each in _TLS_13 else _in_openssl(each)
        if name not in known and name not in _TLS_13:
            raise TlsProblem(f"ssl.cipher.suites: {each} is not known to OpenSSL; name one of `openssl ciphers`")
        found.append(name)
    older = [each for each in found if each not in _TLS_13]
    return frozenset(found), ":".join(older) if older else None


def _in_openssl(name: str) -> str:
    """TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 -> ECDHE-RSA-AES128-GCM-SHA256."""
    parsed = _JAVA.fullmatch(name)
    if parsed is None:
        return name
    exchange, cipher = parsed[1], parsed[2]
    cipher = re.sub(r"AES_(128|256)_", r"AES\1-", cipher).replace("CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305")
    cipher = cipher.replace("-CBC_", "-").replace("_", "-")
    return cipher if exchange == "RSA" else f"{exchange.replace('_', '-')}-{cipher}"
