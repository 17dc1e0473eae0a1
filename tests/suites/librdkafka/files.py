"""Keys and certificates, in the forms in which librdkafka's tests look for them, by environment variables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from joserfc.jwk import RSAKey

from tests.certificates import CertificateAuthority, new_key, pem

PASSWORD: Final = "12345678"


class TlsFiles:
    """An authority, a client's certificate in PEM, DER and PKCS12, and the nodes' stores."""

    def __init__(self, folder: Path) -> None:
        authority = CertificateAuthority(kind="RSA")
        other = CertificateAuthority("unused CA", kind="RSA")
        client = authority.issue("librdkafka")
        self._node_stores = authority.issue("node").pem_files(folder)
        encryption = BestAvailableEncryption(PASSWORD.encode())
        contents = {
            "ca_pem": pem(authority.certificate).encode(),
            "ca_der": authority.certificate.public_bytes(Encoding.DER),
            "unused_ca_pem": pem(other.certificate).encode(),
            "all_cas_pem": pem(other.certificate, authority.certificate).encode(),
            "pub_pem": pem(*client.chain, authority.certificate).encode(),
            "pub_der": client.chain[0].public_bytes(Encoding.DER),
            "priv_pem": client.key_pem(PASSWORD).encode(),
            "priv_der": client.key.private_bytes(Encoding.DER, PrivateFormat.TraditionalOpenSSL, NoEncryption()),
            "pkcs": pkcs12.serialize_key_and_certificates(
                b"librdkafka", client.key, client.chain[0], [authority.certificate], encryption
            ),
        }
        self._paths = {name: folder / f"librdkafka-{name}" for name in contents}
        for name, content in contents.items():
            self._paths[name].write_bytes(content)

    def node_stores(self) -> Mapping[str, str]:
        return self._node_stores

    def settings(self) -> dict[str, str]:
        """Of a client with TLS."""
        return {
            "ssl.ca.location": str(self._paths["ca_pem"]),
            "ssl.certificate.location": str(self._paths["pub_pem"]),
            "ssl.key.location": str(self._paths["priv_pem"]),
            "ssl.key.password": PASSWORD,
        }

    def environment(self) -> dict[str, str]:
        return {
            **{f"SSL_{name}": str(path) for name, path in self._paths.items()},
            "SSL_password": PASSWORD,
            "SSL_client_auth": "required",
        }


class ClientKey:
    """By which a client signs what it asks the issuer of tokens for."""

    def __init__(self, folder: Path) -> None:
        key = new_key("RSA")
        self.public = folder / "client.jwk"
        self._plain, self._encrypted = folder / "client-key.pem", folder / "client-key-encrypted.pem"
        plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        self._plain.write_bytes(plain)
        self._encrypted.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(PASSWORD.encode()))
        )
        self.public.write_text(json.dumps(RSAKey.import_key(plain).as_dict(private=False)))

    def environment(self) -> dict[str, str]:
        return {
            "OAUTHBEARER_CLIENT_PRIVATE_KEY": str(self._plain),
            "OAUTHBEARER_CLIENT_PRIVATE_KEY_ENCRYPTED": str(self._encrypted),
            "OAUTHBEARER_CLIENT_PRIVATE_KEY_PASSWORD": PASSWORD,
        }
