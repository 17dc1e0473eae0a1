"""Names of certificates as Java writes them, and the rules that shorten them as Apache Kafka applies them."""

from __future__ import annotations

from contextlib import suppress

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from tanist.security.principal import ANONYMOUS, Principal
from tanist.security.ssl_principal import NoMatchingRule, PrincipalMapping, distinguished_name, subject_name
from tests.certificates import CertificateAuthority
from tests.security.names import CN, DC, EMAIL, ORG, OU, SERIAL, UID, name

BMP, IA5, NUMERIC, PRINTABLE, T61, UNIVERSAL, UTF8, VISIBLE = 0x1E, 0x16, 0x12, 0x13, 0x14, 0x1C, 0x0C, 0x1A

# What X500Principal.getName() of Java 17 gives for the same bytes.
JAVA = [
    (name([(CN, UTF8, "alice")], [(OU, UTF8, "team")], [(ORG, UTF8, "acme")]), "O=acme,OU=team,CN=alice"),
    (name([(CN, UTF8, "a,b+c\"d\\e<f>g;h=i#j")]), 'CN=a\\,b\\+c\\"d\\\\e\\<f\\>g\\;h\\=i\\#j'),
    (name([(CN, UTF8, "  two  ")]), "CN=\\ \\ two\\ \\ "),
    (name([(CN, UTF8, "é日😀")]), "CN=é日😀"),
    (name([(CN, UTF8, "nul\0")]), "CN=nul\\00"),
    (name([(CN, UTF8, "")]), "CN="),
    (name([(CN, PRINTABLE, "x"), (OU, T61, "y")], [(UID, IA5, "u")], [(DC, IA5, "org")]), "DC=org,UID=u,CN=x+OU=y"),
    (name([(EMAIL, IA5, "a@b.c")], [(CN, UTF8, "m")]), "CN=m,1.2.840.113549.1.9.1=#16056140622e63"),
    (name([(SERIAL, PRINTABLE, "7")]), "2.5.4.5=#130137"),
    (name([(ORG, UNIVERSAL, "u")]), "O=#1c0400000075"),
    (name([(ORG, NUMERIC, "12")]), "O=#12023132"),
    (name([(ORG, VISIBLE, "v")]), "O=#1a0176"),
    (name([(ORG, BMP, "b")]), "O=\\00b"),
    (name(), ""),
]  # fmt: skip


@pytest.mark.parametrize(("der", "text"), JAVA, ids=lambda value: None)
def test_the_text_is_javas(der: bytes, text: str) -> None:
    assert distinguished_name(der) == text


def test_the_subject_of_a_certificate() -> None:
    issued = CertificateAuthority().issue("alice")
    assert subject_name(issued.chain[0].public_bytes(Encoding.DER)) == "CN=alice,O=tanist\\, tests"


@given(st.binary(max_size=200))
def test_any_bytes_are_a_name_or_a_value_error(data: bytes) -> None:
    for read in (distinguished_name, subject_name):
        with suppress(ValueError):
            assert isinstance(read(data), str)


@given(st.data())
def test_a_name_that_was_changed_is_a_name_or_a_value_error(data: st.DataObject) -> None:
    der = bytearray(data.draw(st.sampled_from([each for each, _ in JAVA])))
    der[data.draw(st.integers(0, len(der) - 1))] = data.draw(st.integers(0, 255))
    with suppress(ValueError):
        assert isinstance(distinguished_name(bytes(der)), str)


NAMES = "CN=Duke,OU=ServiceUsers,O=Org,C=US"


@pytest.mark.parametrize(
    ("rules", "mapped"),
    [
        # Apache Kafka's own examples (SslPrincipalMapperTest).
        ("DEFAULT", NAMES),
        ("", NAMES),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "Duke"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L", "duke"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/U", "DUKE"),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*?),C=(.*?)$/$1@$2/L,DEFAULT", "duke@serviceusers"),
        ("RULE:^CN=nobody$/x/, RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/ ,DEFAULT", "Duke"),
        ("RULE:^CN=(.*?),.*$/$1-$9/", "Duke-$9"),
        ("RULE:^CN=(.*?),.*$/a\\/b\\$1/", "a/b$1"),
        ("RULE:^CN=(?<who>.*?),.*$/${who}!/", "Duke!"),
        ("RULE:.*/x/", "xx"),  # Java finds the empty end as well
    ],
)
def test_rules(rules: str, mapped: str) -> None:
    assert PrincipalMapping(rules or "DEFAULT").name_of(NAMES) == mapped


def test_whom_no_rule_takes() -> None:
    mapping = PrincipalMapping("RULE:^CN=nobody$/x/")
    with pytest.raises(NoMatchingRule, match="No rules apply to CN=Duke,OU=ServiceUsers"):
        mapping.principal_of(NAMES)
    assert mapping.principal_of(None) == ANONYMOUS
    assert PrincipalMapping().principal_of(NAMES) == Principal("User", NAMES)


@pytest.mark.parametrize(
    "rules", ["deny", "RULE", "RULE:", "RULE:/", "RULE:^CN=(.*?)$/$1/LU", "RULE:^CN=(.*$/$1/", "RULE:CN=x/y"]
)
def test_rules_that_cannot_be_read(rules: str) -> None:
    with pytest.raises(ValueError):
        PrincipalMapping(rules)
