"""Key and trust stores: every form that is taken, and what is said of each that is not."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import PrivateFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.ports import TlsProblem
from tanist.runtime.security.profile import TlsProfile
from tanist.runtime.security.stores import key_store, trust_store
from tests.certificates import CertificateAuthority, Issued, pem
from tests.runtime.security.damage import DAMAGES, damaged_store

AUTHORITY = CertificateAuthority()
NODE = AUTHORITY.issue("node")


def file_of(folder: Path, text: str, name: str = "store.pem") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def refusal(properties: Mapping[str, str]) -> str:
    with pytest.raises(TlsProblem) as refused:
        TlsProfile(properties)
    return str(refused.value)


@pytest.mark.parametrize("kind", ["EC", "RSA"])
@pytest.mark.parametrize("form", ["pem_files", "pem_values", "pkcs12_files"])
def test_each_form_gives_the_same_profile(tmp_path: Path, kind: str, form: str) -> None:
    node = AUTHORITY.issue("node", kind=kind)
    properties = node.pem_values() if form == "pem_values" else getattr(node, form)(tmp_path)
    profile = TlsProfile(properties)
    assert profile.identity is not None
    assert profile.identity.subject == "CN=node,O=tanist\\, tests"
    assert profile.identity.hosts == ("localhost", "127.0.0.1", "::1")
    assert profile.identity.expires_ms == node.chain[0].not_valid_after_utc.timestamp() * 1000
    assert profile.trusted == (AUTHORITY.certificate,)
    assert profile.is_slow is (kind == "RSA")
    assert profile.accepts(profile) is None


@pytest.mark.parametrize(
    ("format", "password"),
    [
        (PrivateFormat.PKCS8, None),
        (PrivateFormat.PKCS8, "secret"),
        (PrivateFormat.TraditionalOpenSSL, None),
        (PrivateFormat.TraditionalOpenSSL, "secret"),
    ],
)
@pytest.mark.parametrize("kind", ["EC", "RSA"])
def test_keys_in_every_form(tmp_path: Path, kind: str, format: PrivateFormat, password: str | None) -> None:
    node = AUTHORITY.issue("node", kind=kind)
    properties = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": file_of(tmp_path, "a remark\n" + node.chain_pem + node.key_pem(password, format)),
    }
    if password is not None:
        properties["ssl.key.password"] = password
    assert TlsProfile(properties).identity is not None


def test_a_value_of_one_line(tmp_path: Path) -> None:
    """As a property that is continued over lines comes out of the file."""
    properties = {name: " ".join(value.split("\n")) for name, value in NODE.pem_values().items()}
    assert TlsProfile(properties).identity is not None


def test_a_chain_with_an_intermediate_authority(tmp_path: Path) -> None:
    top = CertificateAuthority("top")
    middle = CertificateAuthority("middle", issuer=top)
    node = middle.issue("node")
    assert len(node.chain) == 2
    properties = {**node.pem_files(tmp_path), "ssl.truststore.location": file_of(tmp_path, pem(top.certificate))}
    profile = TlsProfile(properties)
    assert profile.accepts(profile) is None
    # A store that trusts the authority in the middle alone is enough, as with Java.
    of_middle = TlsProfile({**properties, "ssl.truststore.location": file_of(tmp_path, pem(middle.certificate))})
    assert of_middle.accepts(profile) is None
    wrong_order = node.key_pem() + node.chain_pem + pem(top.certificate, middle.certificate)
    assert "out of order" in refusal({**properties, "ssl.keystore.location": file_of(tmp_path, wrong_order)})
    store = TlsProfile(node.pkcs12_files(tmp_path))
    assert store.keys is not None
    assert store.keys.chain == node.chain


PEM = {"ssl.keystore.type": "PEM"}
KAFKA_REFUSES = [
    ({"ssl.keystore.key": "k"}, "SSL private key can be specified only for PEM, but key store type is JKS."),
    ({**PEM, "ssl.keystore.key": "k"}, "SSL private key is specified, but certificate chain is not specified."),
    (
        {**PEM, "ssl.keystore.key": "k", "ssl.keystore.certificate.chain": "c", "ssl.keystore.location": "/f"},
        "Both SSL key store location and separate private key are specified.",
    ),
    (
        {**PEM, "ssl.keystore.key": "k", "ssl.keystore.certificate.chain": "c", "ssl.keystore.password": "p"},
        "SSL key store password cannot be specified with PEM format, only key password may be specified.",
    ),
    (
        {**PEM, "ssl.keystore.certificate.chain": "c"},
        "SSL certificate chain is specified, but private key is not specified",
    ),
    (
        {**PEM, "ssl.keystore.location": "/f", "ssl.keystore.password": "p"},
        "SSL key store password cannot be specified with PEM format, only key password may be specified.",
    ),
    ({"ssl.keystore.password": "p"}, "SSL key store is not specified, but key store password is specified."),
    ({"ssl.keystore.location": "/f"}, "SSL key store is specified, but key store password is not specified."),
    (
        {"ssl.truststore.certificates": "c"},
        "SSL trust store certs can be specified only for PEM, but trust store type is JKS.",
    ),
    (
        {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "c", "ssl.truststore.location": "/f"},
        "Both SSL trust store location and separate trust certificates are specified.",
    ),
    (
        {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/f", "ssl.truststore.password": "p"},
        "SSL trust store password cannot be specified for PEM format.",
    ),
    ({"ssl.truststore.password": "p"}, "SSL trust store is not specified, but trust store password is specified."),
]


@pytest.mark.parametrize(("properties", "said"), KAFKA_REFUSES)
def test_what_kafka_refuses_is_refused_in_its_words(properties: dict[str, str], said: str) -> None:
    assert refusal(properties).startswith(said)


def test_what_is_wrong_names_property_and_file(tmp_path: Path) -> None:
    def store(text: str) -> str:
        return refusal({"ssl.keystore.type": "PEM", "ssl.keystore.location": file_of(tmp_path, text)})

    where = f"ssl.keystore.location={tmp_path / 'store.pem'}"
    assert store("") == f"{where} has no private key: one '-----BEGIN PRIVATE KEY-----' has to stand in it"
    assert store(NODE.key_pem() + NODE.key_pem() + NODE.chain_pem).startswith(f"{where} has 2 private keys")
    assert store(NODE.key_pem()).startswith(f"{where} has no certificate")
    assert store(NODE.key_pem() + AUTHORITY.issue("other").chain_pem).startswith(
        f"{where}: the private key is not that of the first certificate"
    )
    assert store(NODE.key_pem("secret") + NODE.chain_pem) == (
        f"{where}: the private key is encrypted; set ssl.key.password"
    )
    damaged = NODE.chain_pem.replace("MII", "MIJ", 1)
    assert store(NODE.key_pem() + damaged) == f"{where}: certificate 1 cannot be parsed"
    wrong = refusal(
        {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": file_of(tmp_path, NODE.key_pem("secret") + NODE.chain_pem),
            "ssl.key.password": "not it",
        }
    )
    assert "ssl.key.password does not open it" in wrong
    assert "not it" not in wrong
    assert refusal({"ssl.keystore.type": "PEM", "ssl.keystore.location": "/no/such/file"}) == (
        "ssl.keystore.location=/no/such/file cannot be read: No such file or directory"
    )
    assert refusal({"ssl.keystore.type": "BKS"}) == "ssl.keystore.type=BKS is not known; use PEM or PKCS12"
    assert "ssl.engine.factory.class" in refusal({"ssl.engine.factory.class": "com.example.Engine"})


def test_pkcs12_that_cannot_be_opened(tmp_path: Path) -> None:
    properties = NODE.pkcs12_files(tmp_path)
    wrong = refusal({**properties, "ssl.keystore.password": "not it"})
    assert wrong == (
        f"ssl.keystore.location={tmp_path / 'node.p12'} cannot be read: ssl.keystore.password does not open it, "
        "or it is no PKCS12 file"
    )
    mixed = {**properties, "ssl.keystore.location": file_of(tmp_path, NODE.key_pem())}
    assert "set the type to PEM" in refusal(mixed)
    only_trust = {**properties, "ssl.keystore.location": properties["ssl.truststore.location"]}
    assert "holds no private key" in refusal(only_trust)


def test_a_java_key_store_is_refused_with_the_line_that_converts_it(tmp_path: Path) -> None:
    path = tmp_path / "server.jks"
    path.write_bytes(b"\xfe\xed\xfe\xed\x00\x00\x00\x02")
    line = (
        f"keytool -importkeystore -srckeystore {path} -srcstoretype JKS -destkeystore {tmp_path / 'server.p12'} "
        "-deststoretype PKCS12"
    )
    for kind in ("JKS", "PKCS12"):
        found = refusal(
            {"ssl.keystore.type": kind, "ssl.keystore.location": str(path), "ssl.keystore.password": "secret"}
        )
        assert found.endswith(line)
    assert refusal({"ssl.keystore.type": "PEM", "ssl.keystore.location": str(path)}).endswith(line)


@pytest.mark.skipif(shutil.which("keytool") is None, reason="keytool makes the store")
def test_what_the_line_makes_is_taken(tmp_path: Path) -> None:
    """A store of Java's own kind, converted; and a trust store that keytool has made."""

    def keytool(*arguments: str) -> None:
        subprocess.run(["keytool", *arguments], check=True, capture_output=True, timeout=120)

    jks, p12, trust = tmp_path / "server.jks", tmp_path / "server.p12", tmp_path / "trust.p12"
    passwords = ("-storepass", "secret", "-keypass", "secret")
    keytool(
        "-genkeypair", "-keystore", str(jks), "-storetype", "JKS", "-alias", "node", "-keyalg", "EC",
        "-dname", "CN=node, OU=a\\+b, C=DE", "-ext", "san=dns:localhost", *passwords,
    )  # fmt: skip
    properties = {"ssl.keystore.location": str(jks), "ssl.keystore.password": "secret"}
    line = refusal(properties).partition("keytool ")[2].split()
    keytool(*line, "-srcstorepass", "secret", "-deststorepass", "secret")
    certificate = tmp_path / "node.cer"
    keytool("-exportcert", "-keystore", str(p12), "-alias", "node", "-file", str(certificate), "-storepass", "secret")
    keytool(
        "-importcert", "-noprompt", "-keystore", str(trust), "-storetype", "PKCS12", "-alias", "ca",
        "-file", str(certificate), "-storepass", "secret",
    )  # fmt: skip
    profile = TlsProfile(
        {
            **properties,
            "ssl.keystore.location": str(p12),
            "ssl.truststore.location": str(trust),
            "ssl.truststore.password": "secret",
        }
    )
    assert profile.identity is not None
    assert profile.identity.subject == "CN=node,OU=a\\+b,C=DE"
    assert profile.accepts(profile) is None


def test_no_secret_stands_in_a_repr(tmp_path: Path) -> None:
    keys = key_store(NODE.pem_files(tmp_path))
    assert keys is not None
    assert "PRIVATE" not in repr(keys)
    assert trust_store({}) is None


def versions(**properties: str) -> tuple[ssl.TLSVersion, ssl.TLSVersion]:
    profile = TlsProfile(
        {**NODE.pem_values(), **{f"ssl.{name.replace('_', '.')}": value for name, value in properties.items()}}
    )
    return profile._server.minimum_version, profile._server.maximum_version


def test_versions() -> None:
    old, new = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
    assert versions() == (old, new)
    assert versions(enabled_protocols="TLSv1.3") == (new, new)
    assert versions(protocol="TLSv1.2") == (old, old)
    assert versions(enabled_protocols="TLSv1.2", protocol="TLS") == (old, old)
    assert versions(cipher_suites="TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384") == (old, old)
    assert versions(cipher_suites="TLS_AES_256_GCM_SHA384") == (new, new)
    both = "TLS_AES_256_GCM_SHA384, ECDHE-ECDSA-AES256-GCM-SHA384"
    assert versions(cipher_suites=both) == (old, new)
    assert "leave no version" in refusal({"ssl.enabled.protocols": "TLSv1.3", "ssl.protocol": "TLSv1.2"})
    assert "SSLv3 is not known" in refusal({"ssl.enabled.protocols": "SSLv3"}).replace("SSLV3", "SSLv3")


@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", "DHE-RSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", "ECDHE-RSA-AES256-SHA384"),
    ],
)
def test_cipher_suites_by_javas_names(java: str, openssl: str) -> None:
    profile = TlsProfile({**NODE.pem_values(), "ssl.cipher.suites": java})
    assert profile.suites == {openssl}
    assert {each["name"] for each in profile._server.get_ciphers() if each["protocol"] != "TLSv1.3"} == {openssl}


def test_a_suite_that_is_not_known() -> None:
    assert "TLS_NO_SUCH_SUITE" in refusal({"ssl.cipher.suites": "TLS_NO_SUCH_SUITE"})
    assert "ssl.client.auth=perhaps" in refusal({"ssl.client.auth": "perhaps"})


@pytest.mark.parametrize("damage", list(DAMAGES))
def test_a_certificate_whose_inside_is_damaged_is_named(tmp_path: Path, damage: str) -> None:
    """`cryptography` parses fields and keys only when they are looked at, and has errors of its own for some."""
    path = file_of(tmp_path, damaged_store(NODE, damage))
    said = refusal({"ssl.keystore.type": "PEM", "ssl.keystore.location": path})
    assert path in said or "key store" in said
    assert "cannot be parsed" in said


def test_an_issuer_that_is_not_trusted_is_named(tmp_path: Path) -> None:
    stranger: Issued = CertificateAuthority("another").issue("node")
    ours = TlsProfile(NODE.pem_values())
    assert ours.accepts(TlsProfile(stranger.pem_values())) == "unable to get local issuer certificate"
    late = TlsProfile(AUTHORITY.issue("node", days=(-3, -1)).pem_values())
    assert ours.accepts(late) == "certificate has expired"


def problem_with(read: Callable[[Mapping[str, str]], object], properties: Mapping[str, str]) -> str:
    """What is wrong with a store; empty: nothing. Another exception than that fails the test."""
    try:
        read(properties)
    except TlsProblem as problem:
        return str(problem)
    return ""


_PEM_TEXT = NODE.key_pem() + NODE.chain_pem


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_store_that_was_changed_is_a_store_or_a_problem(data: st.DataObject) -> None:
    text = bytearray(_PEM_TEXT.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        end = at + data.draw(st.integers(0, 40))
        text[at:end] = data.draw(st.binary(max_size=40))
    store = text.decode("utf-8", "replace")
    properties = {
        "ssl.keystore.type": "PEM", "ssl.keystore.key": store, "ssl.keystore.certificate.chain": store,
        "ssl.truststore.type": "PEM", "ssl.truststore.certificates": store,
    }  # fmt: skip
    for read in (key_store, trust_store):
        assert "PRIVATE KEY-----\n" not in problem_with(read, properties)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_pkcs12_file_that_was_changed_is_a_store_or_a_problem(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("p12")
    properties = NODE.pkcs12_files(folder)
    path = Path(properties["ssl.keystore.location"])
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content[: data.draw(st.integers(1, len(content)))])
    problem = problem_with(key_store, properties)
    assert not problem or str(path) in problem
