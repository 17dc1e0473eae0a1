"""The certificates of a secure cluster: an authority of its own, which signs one for each node and user.

Owns how they are made, as PEM, which all clients take, and the trust store that older ones of Java need. Keys are of
P-256: a handshake costs half a millisecond. Keeps nothing: `secure_files` writes them to the folder.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFE = timedelta(days=3_650)
CERTIFICATE_LIFE = timedelta(days=365)
_CLOCKS_DIFFER = timedelta(minutes=5)
"""A certificate is valid a little before it is made, for machines whose clocks are behind."""


@dataclass(frozen=True, slots=True)
class Certified:
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes = field(repr=False)

    @property
    def pem(self) -> bytes:
        """Key and certificate in one, as Kafka's `ssl.keystore.location` takes them."""
        return self.key + self.certificate


def authority(name: str, now: datetime) -> Certified:
    """A certificate that signs others, of itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _named(name)
    own_id = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    built = (
        _begun(subject, subject, key, now, AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(own_id, critical=False)
        .sign(key, hashes.SHA256())
    )
    return _as_pem(built, key)


def issue(by: Certified, name: str, hosts: Iterable[str], now: datetime, life: timedelta) -> Certified:
    """A certificate for `CN=name`, which its holder may use as a server under these hosts, and as a client.

    `hosts`: names and addresses, each once. A negative `life` makes one that has expired.
    """
    signer_key = serialization.load_pem_private_key(by.key, None)
    assert isinstance(signer_key, ec.EllipticCurvePrivateKey)
    signer = x509.load_pem_x509_certificate(by.certificate)
    key = ec.generate_private_key(ec.SECP256R1())
    built = (
        _begun(_named(name), signer.subject, key, now, life)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer_key.public_key()), critical=False)
    )
    if names := [_general_name(host) for host in dict.fromkeys(hosts)]:
        built = built.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return _as_pem(built.sign(signer_key, hashes.SHA256()), key)


def as_trust_store(by: Certified, password: str) -> bytes:
    """The authority alone, in the form that Java reads as a trust store."""
    trusted = pkcs12.PKCS12Certificate(x509.load_pem_x509_certificate(by.certificate), b"tanist-ca")
    return pkcs12.serialize_java_truststore([trusted], serialization.BestAvailableEncryption(password.encode()))


def expires(pem: bytes) -> datetime:
    """When a certificate ends, in UTC. `ValueError` if this is none."""
    return _read(pem).not_valid_after_utc


def hosts_of(pem: bytes) -> list[str]:
    """The names and addresses of a certificate's server."""
    try:
        names = _read(pem).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return [str(name.value) for name in names.value]


def _read(pem: bytes) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(pem)
    except x509.InvalidVersion as error:
        raise ValueError(str(error)) from None


def now_utc() -> datetime:
    return datetime.now(UTC)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    first = now - _CLOCKS_DIFFER + min(life, timedelta())
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(first)
        .not_valid_after(now + life)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _as_pem(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Certified:
    return Certified(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )
