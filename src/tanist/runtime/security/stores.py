"""Key and trust stores: PEM (in a file or as a value) and PKCS12, by Apache Kafka's property names.

Owns what a store may be and what is wrong with one, in a line that names property and file. Refusals are Kafka's own
(DefaultSslEngineFactory). It takes more than Kafka where nothing is lost by it: keys in PKCS#1, and a PKCS12 file under
the type JKS, which Java takes as well. A Java key store (JKS) is refused with the line that converts it.

It must never put a key or a password into a message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    pkcs12,
)

from tanist.ports import TlsProblem

_PEM = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_JKS_MAGIC = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_STORE_BYTES_MAX = 16 << 20
_NOT_PARSED = (
    ValueError,
    UnsupportedAlgorithm,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)
"""What `cryptography` raises for a certificate that is damaged, or of a kind that it does not know."""

_Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey


@dataclass(frozen=True, slots=True)
class KeyStore:
    """A private key and its certificates, this node's own first."""

    chain: tuple[x509.Certificate, ...]
    is_rsa: bool
    key_pem: bytes = field(repr=False)
    """PKCS#8, not encrypted: it stays in the memory of this process."""

    @property
    def certificate(self) -> x509.Certificate:
        return self.chain[0]

    @property
    def pem(self) -> bytes:
        """All of it, as OpenSSL reads it from one file."""
        return self.key_pem + pem_of(self.chain)


@contextmanager
def parsed(what: str) -> Iterator[None]:
    """The body looks at certificates, whose fields and keys are parsed only then: `TlsProblem` if one cannot be."""
    try:
        yield
    except TlsProblem:
        raise
    except _NOT_PARSED:
        raise TlsProblem(f"{what} cannot be parsed") from None


def pem_of(certificates: tuple[x509.Certificate, ...]) -> bytes:
    return b"".join(each.public_bytes(Encoding.PEM) for each in certificates)


def key_store(properties: Mapping[str, str]) -> KeyStore | None:
    """The key store that these `ssl.*` properties name; None if they name none. `TlsProblem` if it cannot be used."""
    kind = _kind(properties, "ssl.keystore.type")
    path = properties.get("ssl.keystore.location")
    password = properties.get("ssl.keystore.password")
    key, chain = properties.get("ssl.keystore.key"), properties.get("ssl.keystore.certificate.chain")
    key_password = properties.get("ssl.key.password")
    if key is not None:
        if kind != "PEM":
            raise TlsProblem(f"SSL private key can be specified only for PEM, but key store type is {kind}.")
        if chain is None:
            raise TlsProblem("SSL private key is specified, but certificate chain is not specified.")
        if path is not None:
            raise TlsProblem("Both SSL key store location and separate private key are specified.")
        if password is not None:
            raise TlsProblem(_NO_STORE_PASSWORD)
        return _pem_key_store(key, chain, key_password, "ssl.keystore.key", "ssl.keystore.certificate.chain")
    if chain is not None:
        raise TlsProblem("SSL certificate chain is specified, but private key is not specified")
    if path is None:
        if password is not None:
            raise TlsProblem("SSL key store is not specified, but key store password is specified.")
        return None
    where = f"ssl.keystore.location={path}"
    if kind == "PEM":
        if password is not None:
            raise TlsProblem(f"{_NO_STORE_PASSWORD} Remove ssl.keystore.password, which stands beside {where}.")
        text = _text(path, where)
        return _pem_key_store(text, text, key_password, where, where)
    if password is None:
        raise TlsProblem("SSL key store is specified, but key store password is not specified.")
    own, certificate, others = _pkcs12(path, kind, password, where, "ssl.keystore.password")
    if own is None or certificate is None:
        raise TlsProblem(f"{where}: the PKCS12 file holds no private key with its certificate")
    with parsed(f"{where}: a certificate"):
        return _checked(own, _in_order(certificate, others), where)


def trust_store(properties: Mapping[str, str]) -> tuple[x509.Certificate, ...] | None:
    """The certificates that these properties trust; None: those that the system trusts."""
    kind = _kind(properties, "ssl.truststore.type")
    path = properties.get("ssl.truststore.location")
    password = properties.get("ssl.truststore.password")
    certificates = properties.get("ssl.truststore.certificates")
    if certificates is not None:
        if kind != "PEM":
            raise TlsProblem(f"SSL trust store certs can be specified only for PEM, but trust store type is {kind}.")
        if path is not None:
            raise TlsProblem("Both SSL trust store location and separate trust certificates are specified.")
        if password is not None:
            raise TlsProblem("SSL trust store password cannot be specified for PEM format.")
        return _certificates(certificates, "ssl.truststore.certificates")
    if path is None:
        if password is not None:
            raise TlsProblem("SSL trust store is not specified, but trust store password is specified.")
        return None
    where = f"ssl.truststore.location={path}"
    if kind == "PEM":
        if password is not None:
            raise TlsProblem(
                "SSL trust store password cannot be specified for PEM format. "
                f"Remove ssl.truststore.password, which stands beside {where}."
            )
        return _certificates(_text(path, where), where)
    _, certificate, others = _pkcs12(path, kind, password, where, "ssl.truststore.password")
    found = (*(() if certificate is None else (certificate,)), *others)
    if not found:
        raise TlsProblem(f"{where}: the PKCS12 file holds no certificate")
    return found


def files_of(properties: Mapping[str, str]) -> tuple[str, ...]:
    """The files that hold the stores."""
    names = ("ssl.keystore.location", "ssl.truststore.location")
    return tuple(properties[name] for name in names if name in properties)


_NO_STORE_PASSWORD = "SSL key store password cannot be specified with PEM format, only key password may be specified."


def _kind(properties: Mapping[str, str], name: str) -> str:
    kind = properties.get(name, "JKS").strip().upper()
    if kind not in ("PEM", "PKCS12", "JKS"):
        raise TlsProblem(f"{name}={kind} is not known; use PEM or PKCS12")
    return kind


def _read(path: str, where: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            data = file.read(_STORE_BYTES_MAX + 1)
    except OSError as error:
        raise TlsProblem(f"{where} cannot be read: {error.strerror or error}") from None
    if len(data) > _STORE_BYTES_MAX:
        raise TlsProblem(f"{where} is larger than any store: {_STORE_BYTES_MAX} bytes are read at most")
    return data


def _text(path: str, where: str) -> str:
    data = _read(path, where)
    if data[:4] in _JKS_MAGIC:
        raise TlsProblem(f"{where} is a Java key store, not PEM; {_conversion(path)}")
    if data[:1] == b"\x30":
        raise TlsProblem(f"{where} is not PEM but binary; if it is PKCS12, set the type to PKCS12")
    return data.decode("utf-8", "replace")


def _conversion(path: str) -> str:
    target = f"{path.removesuffix('.jks')}.p12"
    return (
        "convert it: keytool -importkeystore "
        f"-srckeystore {path} -srcstoretype JKS -destkeystore {target} -deststoretype PKCS12"
    )


# -- PEM


def _blocks(text: str) -> list[tuple[str, bytes]]:
    """Label and text of each PEM block. Line ends may have become spaces, as in a property of one line."""
    found = []
    for match in _PEM.finditer(text):
        label = " ".join(match[1].split())
        headers, body = [], match[2]
        if "Proc-Type" in body:  # of a key that OpenSSL has encrypted in its old way
            lines = [line.strip() for line in body.strip().splitlines()]
            headers = [line for line in lines if ":" in line]
            body = "".join(line for line in lines if ":" not in line)
        characters = "".join(body.split())
        wrapped = "\n".join(characters[at : at + 64] for at in range(0, len(characters), 64))
        head = "".join(f"{line}\n" for line in headers) + ("\n" if headers else "")
        found.append((label, f"-----BEGIN {label}-----\n{head}{wrapped}\n-----END {label}-----\n".encode()))
    return found


def _certificates(text: str, where: str) -> tuple[x509.Certificate, ...]:
    found: list[x509.Certificate] = []
    for label, block in _blocks(text):
        if label in ("CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE"):
            with parsed(f"{where}: certificate {len(found) + 1}"):
                found.append(x509.load_pem_x509_certificate(block))
    if not found:
        raise TlsProblem(f"{where} has no certificate: no '-----BEGIN CERTIFICATE-----' stands in it")
    return tuple(found)


def _pem_key_store(key: str, chain: str, password: str | None, key_place: str, chain_place: str) -> KeyStore:
    keys = [(label, block) for label, block in _blocks(key) if label.endswith("PRIVATE KEY")]
    if len(keys) != 1:
        has = "no private key" if not keys else f"{len(keys)} private keys"
        raise TlsProblem(f"{key_place} has {has}: one '-----BEGIN PRIVATE KEY-----' has to stand in it")
    label, block = keys[0]
    encrypted = label == "ENCRYPTED PRIVATE KEY" or b"Proc-Type: 4,ENCRYPTED" in block
    if encrypted and not password:
        raise TlsProblem(f"{key_place}: the private key is encrypted; set ssl.key.password")
    try:
        own = load_pem_private_key(block, password.encode() if encrypted and password else None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        why = "ssl.key.password does not open it, or it is damaged" if encrypted else "it is damaged"
        raise TlsProblem(f"{key_place}: the private key cannot be read: {why}") from None
    certificates = _certificates(chain, chain_place)
    with parsed(f"{chain_place}: a certificate"):
        return _checked(own, certificates, key_place)


# -- PKCS12


def _pkcs12(
    path: str, kind: str, password: str | None, where: str, password_name: str
) -> tuple[object | None, x509.Certificate | None, tuple[x509.Certificate, ...]]:
    data = _read(path, where)
    if data[:4] in _JKS_MAGIC:
        raise TlsProblem(f"{where} is a Java key store (JKS), which tanist does not read; {_conversion(path)}")
    if data.lstrip()[:5] == b"-----":
        raise TlsProblem(f"{where} is PEM, and its type is {kind}; set the type to PEM")
    try:
        store = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        raise TlsProblem(f"{where} cannot be read: {password_name} does not open it, or it is no PKCS12 file") from None
    except _NOT_PARSED as error:
        raise TlsProblem(f"{where} cannot be read: {error}") from None
    certificate = None if store.cert is None else store.cert.certificate
    return store.key, certificate, tuple(each.certificate for each in store.additional_certs)


def _in_order(own: x509.Certificate, others: tuple[x509.Certificate, ...]) -> tuple[x509.Certificate, ...]:
    """The certificate and its issuers; a PKCS12 file has them in any order, and others too."""
    chain, left = [own], list(others)
    while chain[-1].issuer != chain[-1].subject:
        above = next((each for each in left if each.subject == chain[-1].issuer), None)
        if above is None:
            break
        left.remove(above)
        chain.append(above)
    return tuple(chain)


# -- what holds for both


def _checked(own: object, chain: tuple[x509.Certificate, ...], where: str) -> KeyStore:
    """The key is the first certificate's, and each certificate is issued by the next."""
    if not isinstance(own, _Key):
        raise TlsProblem(f"{where}: a key of this kind cannot be used; use EC (P-256), RSA or Ed25519")
    public = own.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if chain[0].public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) != public:
        raise TlsProblem(
            f"{where}: the private key is not that of the first certificate; the node's own certificate stands first, "
            "and those of its issuers follow"
        )
    for certificate, issuer in pairwise(chain):
        if certificate.issuer != issuer.subject:
            raise TlsProblem(
                f"{where}: the chain is out of order: after the certificate of {certificate.subject.rfc4514_string()} "
                f"has to stand that of its issuer {certificate.issuer.rfc4514_string()}"
            )
    pem = own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return KeyStore(chain, isinstance(own, rsa.RSAPrivateKey), pem)
