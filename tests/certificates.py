"""Certificates for tests: an authority, what it issues, and stores of it in every form."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

HOSTS = ("localhost", "127.0.0.1", "::1")
_Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def new_key(kind: str = "EC") -> _Key:
    if kind == "RSA":
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return ec.generate_private_key(ec.SECP256R1())


def pem(*certificates: x509.Certificate) -> str:
    return b"".join(each.public_bytes(Encoding.PEM) for each in certificates).decode()


@dataclass(frozen=True)
class Issued:
    """A key and the certificate for it, with those of its issuers."""

    key: _Key
    chain: tuple[x509.Certificate, ...]
    authority: CertificateAuthority

    @property
    def chain_pem(self) -> str:
        return pem(*self.chain)

    def key_pem(self, password: str | None = None, format: PrivateFormat = PrivateFormat.PKCS8) -> str:
        encryption: KeySerializationEncryption = NoEncryption()
        if password is not None:
            encryption = BestAvailableEncryption(password.encode())
        return self.key.private_bytes(Encoding.PEM, format, encryption).decode()

    def pem_files(self, folder: Path, name: str = "node") -> dict[str, str]:
        """Properties with a PEM key store and trust store in files."""
        store, trust = folder / f"{name}.pem", folder / f"{name}-ca.pem"
        store.write_text(self.key_pem() + self.chain_pem)
        trust.write_text(pem(self.authority.certificate))
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(trust),
        }

    def pem_values(self) -> dict[str, str]:
        """The same without files."""
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": self.key_pem(),
            "ssl.keystore.certificate.chain": self.chain_pem,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": pem(self.authority.certificate),
        }

    def pkcs12_files(self, folder: Path, password: str = "secret") -> dict[str, str]:
        store, trust = folder / "node.p12", folder / "ca.p12"
        encryption = BestAvailableEncryption(password.encode())
        store.write_bytes(
            pkcs12.serialize_key_and_certificates(b"node", self.key, self.chain[0], self.chain[1:], encryption)
        )
        trust.write_bytes(
            pkcs12.serialize_key_and_certificates(b"ca", None, None, [self.authority.certificate], encryption)
        )
        return {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(store),
            "ssl.keystore.password": password,
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.location": str(trust),
            "ssl.truststore.password": password,
        }


class CertificateAuthority:
    """It signs everything."""

    def __init__(self, name: str = "test CA", kind: str = "EC", issuer: CertificateAuthority | None = None) -> None:
        self._kind = kind
        self._key = new_key(kind)
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = (issuer or self)._sign(self._name, self._key, days=(-1, 30), ca=True)
        self._chain = () if issuer is None else (self.certificate,)

    def issue(
        self,
        subject: str | x509.Name,
        *,
        hosts: tuple[str, ...] = HOSTS,
        days: tuple[float, float] = (-1, 30),
        kind: str | None = None,
    ) -> Issued:
        """`subject`: a name, or its common name. Valid from and until so many days from now."""
        key = new_key(kind or self._kind)
        name = subject
        if isinstance(name, str):
            name = x509.Name(
                [
                    x509.NameAttribute(NameOID.ORGANIZATION_NAME, "tanist, tests"),
                    x509.NameAttribute(NameOID.COMMON_NAME, name),
                ]
            )
        return Issued(key, (self._sign(name, key, days=days, hosts=hosts), *self._chain), self)

    def _sign(
        self, name: x509.Name, key: _Key, *, days: tuple[float, float], ca: bool = False, hosts: tuple[str, ...] = ()
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + datetime.timedelta(days=days[0]))
            .not_valid_after(now + datetime.timedelta(days=days[1]))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_general_name(each) for each in hosts]), False)
        return builder.sign(self._key, hashes.SHA256())


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
