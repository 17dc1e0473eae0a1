"""Broker properties of TLS. Only data, in the notation of `notation`."""

from __future__ import annotations

from .notation import read

TLS_SETTINGS = read(
    """
ssl.allow.dn.changes boolean false read-only low
    Whether a certificate may take the place of one of another distinguished name while the node runs.
ssl.allow.san.changes boolean false read-only low
    Whether a certificate may take the place of one that names more hosts while the node runs.
ssl.cipher.suites list "" per-broker medium list
    Cipher suites that may be agreed on, by Java's names or OpenSSL's; empty: all that are enabled by default.
ssl.client.auth string none per-broker medium one:required,requested,none
    Whether clients have to show a certificate.
ssl.enabled.protocols list TLSv1.2,TLSv1.3 per-broker medium list
    Versions of TLS.
ssl.endpoint.identification.algorithm string https per-broker low
    How a node checks the name of the node that it dials; empty: not at all.
ssl.key.password password - per-broker medium
    Password of the private key in a PEM key store.
ssl.keystore.certificate.chain password - per-broker medium
    Certificates of the private key in PEM, the node's own first.
ssl.keystore.key password - per-broker medium
    Private key in PEM: PKCS#8, or PKCS#1 (which Apache Kafka does not take).
ssl.keystore.location string - per-broker medium
    File with the private key and its certificates.
ssl.keystore.password password - per-broker medium
    Password of a PKCS12 key store; one of PEM has none.
ssl.keystore.type string JKS per-broker medium
    PEM or PKCS12. JKS is taken for PKCS12: a file in Java's own format is refused.
ssl.principal.mapping.rules string DEFAULT read-only low
    Rules that make a client's name of the distinguished name of its certificate.
ssl.protocol string TLSv1.3 per-broker medium
    The highest version of TLS.
ssl.truststore.certificates password - per-broker medium
    Trusted certificates in PEM.
ssl.truststore.location string - per-broker medium
    File with the trusted certificates.
ssl.truststore.password password - per-broker medium
    Password of a PKCS12 trust store; one of PEM has none.
ssl.truststore.type string JKS per-broker medium
    PEM or PKCS12. JKS is taken for PKCS12: a file in Java's own format is refused.
tanist.ssl.watch.interval.ms long 0 read-only low >=0
    How often the files of the stores are looked at, to read them again when they have changed; 0: never.
""",
    on_brokers=True,
)
