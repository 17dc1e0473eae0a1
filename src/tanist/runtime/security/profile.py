"""A TLS profile: what handshakes of one listener need, made of Apache Kafka's `ssl.*` properties.

Owns the two SSLContexts (one to accept, one to dial), and what a profile tells of its certificate. A profile never
changes: another one takes its place. Java's rules hold where OpenSSL's differ: a certificate is trusted that stands in
the trust store, whichever authority has issued it.
"""

from __future__ import annotations

import os
import socket
import ssl
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from tanist.ports import TlsIdentity, TlsProblem
from tanist.runtime.security.stores import KeyStore, key_store, parsed, pem_of, trust_store
from tanist.runtime.security.suites import openssl_ciphers
from tanist.runtime.security.words import in_words
from tanist.security.ssl_principal import subject_name

_VERSIONS: Final = {
    "TLSV1": ssl.TLSVersion.TLSv1,
    "TLSV1.1": ssl.TLSVersion.TLSv1_1,
    "TLSV1.2": ssl.TLSVersion.TLSv1_2,
    "TLSV1.3": ssl.TLSVersion.TLSv1_3,
}
_ORDER: Final = tuple(_VERSIONS.values())
_WITHOUT: Final = (ssl.OP_NO_TLSv1, ssl.OP_NO_TLSv1_1, ssl.OP_NO_TLSv1_2, ssl.OP_NO_TLSv1_3)

_CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


class TlsProfile:
    """`TlsProblem` if the properties cannot be used."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        given = {name: value for name, value in properties.items() if value.strip() or name == _IDENTIFICATION}
        engine = given.get("ssl.engine.factory.class")
        if engine is not None:
            raise TlsProblem(f"ssl.engine.factory.class: a Java class ({engine}) cannot be used; remove the line")
        self.properties = dict(properties)
        self.keys = key_store(given)
        self.trusted = trust_store(given)
        self.identity = None if self.keys is None else _identity(self.keys)
        auth = given.get("ssl.client.auth", "none").strip().lower()
        if auth not in _CLIENT_AUTH:
            raise TlsProblem(f"ssl.client.auth={auth} is not known; use required, requested or none")
        self.asks_clients = auth != "none"
        self.is_slow = self.asks_clients or (self.keys is not None and self.keys.is_rsa)
        """A step of a handshake takes a millisecond or more: threads make it."""
        identification = given.get(_IDENTIFICATION, "https").strip().lower()
        if identification not in ("", "https"):
            raise TlsProblem(
                f"{_IDENTIFICATION}={identification} is not known; use https, or nothing to check no names"
            )
        self.suites, ciphers = openssl_ciphers(given.get("ssl.cipher.suites", ""))
        """Names of those that may be agreed on; None: any that is enabled."""
        self._server = self._context(ssl.PROTOCOL_TLS_SERVER, given, ciphers)
        self._server.verify_mode = _CLIENT_AUTH[auth]
        self._client = self._context(ssl.PROTOCOL_TLS_CLIENT, given, ciphers)
        self._client.check_hostname = identification == "https"
        self._client.verify_mode = ssl.CERT_REQUIRED

    def wrap(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, host: str | None) -> ssl.SSLObject:
        """The TLS of a connection to `host`; None: of one that was accepted."""
        if host is None:
            return self._server.wrap_bio(incoming, outgoing, server_side=True)
        return self._client.wrap_bio(incoming, outgoing, server_hostname=host)

    def dial(self, sock: socket.socket, host: str) -> ssl.SSLSocket:
        """The same for a socket that blocks. The handshake is made: `ssl.SSLError` if it fails."""
        return self._client.wrap_socket(sock, server_hostname=host)

    def accepts(self, other: TlsProfile) -> str | None:
        """Why a node with this profile would not talk to one with the other, whatever its name; None: it would."""
        here, there = (ssl.MemoryBIO(), ssl.MemoryBIO()), (ssl.MemoryBIO(), ssl.MemoryBIO())
        dialling = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        dialling.check_hostname = False
        _trust(dialling, self.trusted)
        if self.keys is not None:
            _load(dialling, self.keys)
        client = dialling.wrap_bio(here[0], there[0], server_side=False)
        server = other._server.wrap_bio(there[0], here[0], server_side=True)
        left = [client, server]
        for _ in range(8):
            for side in list(left):
                try:
                    side.do_handshake()
                    left.remove(side)
                except ssl.SSLWantReadError:
                    continue
                except ssl.SSLCertVerificationError as error:
                    return error.verify_message
                except ssl.SSLError as error:
                    return in_words(error)
            if not left:
                return None
        return "the handshake does not end"

    def _context(self, protocol: int, given: Mapping[str, str], ciphers: str | None) -> ssl.SSLContext:
        context = ssl.SSLContext(protocol)
        if protocol == ssl.PROTOCOL_TLS_CLIENT:
            context.check_hostname = False  # (set below, by the property)
        context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
        _limit_versions(context, given, self.suites)
        if ciphers is not None:
            try:
                context.set_ciphers(ciphers)
            except ssl.SSLError:
                raise TlsProblem(f"ssl.cipher.suites: OpenSSL has none of them ({ciphers})") from None
        # From authorities that it knows, OpenSSL makes the chain that it shows longer, at each handshake.
        if protocol == ssl.PROTOCOL_TLS_CLIENT or self.asks_clients:
            _trust(context, self.trusted)
        if self.keys is not None:
            _load(context, self.keys)
        return context


_IDENTIFICATION: Final = "ssl.endpoint.identification.algorithm"


def _limit_versions(context: ssl.SSLContext, given: Mapping[str, str], suites: frozenset[str] | None) -> None:
    names = [each.strip().upper() for each in given.get("ssl.enabled.protocols", "TLSv1.2,TLSv1.3").split(",")]
    unknown = [each for each in names if each and each not in _VERSIONS]
    if unknown:
        raise TlsProblem(f"ssl.enabled.protocols: {unknown[0]} is not known; use TLSv1.2 and TLSv1.3")
    most = given.get("ssl.protocol", "TLSv1.3").strip().upper()
    if most not in (*_VERSIONS, "TLS"):
        raise TlsProblem(f"ssl.protocol: {most} is not known; use TLSv1.3")
    limit = _ORDER[-1] if most == "TLS" else _VERSIONS[most]
    enabled = [version for version in _ORDER if any(_VERSIONS.get(each) is version for each in names)]
    enabled = [version for version in enabled if version <= limit]
    if suites is not None:
        of_13 = any(each.startswith("TLS_") for each in suites)
        of_12 = any(not each.startswith("TLS_") for each in suites)
        enabled = [each for each in enabled if (of_13 if each is ssl.TLSVersion.TLSv1_3 else of_12)]
    if not enabled:
        raise TlsProblem(
            "ssl.enabled.protocols, ssl.protocol and ssl.cipher.suites leave no version of TLS; remove one of them"
        )
    context.minimum_version, context.maximum_version = enabled[0], enabled[-1]
    for version, without in zip(_ORDER, _WITHOUT):
        if enabled[0] < version < enabled[-1] and version not in enabled:
            context.options |= without


def _trust(context: ssl.SSLContext, trusted: tuple[x509.Certificate, ...] | None) -> None:
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if trusted is None:
        context.load_default_certs()
        return
    try:
        context.load_verify_locations(cadata=pem_of(trusted).decode())
    except ssl.SSLError as error:
        raise TlsProblem(f"the trust store cannot be used: {error.reason or error}") from None


def _load(context: ssl.SSLContext, keys: KeyStore) -> None:
    """Python reads a key from a file only: here from one that is nowhere but in memory, where the system has such."""
    try:
        if hasattr(os, "memfd_create"):
            fd = os.memfd_create("tls", os.MFD_CLOEXEC)
            path = f"/proc/self/fd/{fd}"
        else:
            fd, path = tempfile.mkstemp()
        try:
            view = memoryview(keys.pem)
            while view:
                view = view[os.write(fd, view) :]
            context.load_cert_chain(path)
        finally:
            os.close(fd)
            if not path.startswith("/proc/"):
                with suppress(OSError):
                    os.unlink(path)
    except ssl.SSLError as error:
        raise TlsProblem(f"the key store cannot be used: {error.reason or error}") from None


def _identity(keys: KeyStore) -> TlsIdentity:
    certificate = keys.certificate
    hosts: list[str] = []
    with parsed("the key store cannot be used: its certificate"):
        try:
            names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            hosts += names.get_values_for_type(x509.DNSName)
            hosts += [str(each) for each in names.get_values_for_type(x509.IPAddress)]
        except x509.ExtensionNotFound:
            hosts += [str(each.value) for each in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
        return TlsIdentity(
            subject_name(certificate.public_bytes(Encoding.DER)),
            tuple(hosts),
            int(certificate.not_valid_after_utc.timestamp() * 1000),
        )
