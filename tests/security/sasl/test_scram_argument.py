"""`--add-scram`: what `kafka-storage format` takes, and what both refuse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.security.sasl.scram import SHA_256, SHA_512, ScramCredential
from tanist.security.sasl.scram_argument import ScramArgumentError, parse_credential


def zeros(count: int) -> bytes:
    return bytes(count)


def test_a_password() -> None:
    record = parse_credential("SCRAM-SHA-256=[name=alice,password=alice-secret]", zeros)
    expected = ScramCredential.of_password(SHA_256, "alice-secret", bytes(16), 4096)
    assert (record.name, record.mechanism, record.iterations, record.salt) == ("alice", 1, 4096, bytes(16))
    assert (record.stored_key, record.server_key) == (expected.stored_key, expected.server_key)


def test_all_that_may_stand_there() -> None:
    salted = SHA_512.salted_password("x", b"7q", 8192)
    record = parse_credential(' SCRAM-SHA-512=[ iterations=8192, name="alice" ,salt="N3E=",password=x]', zeros)
    expected = ScramCredential.of_salted(SHA_512, salted, b"7q", 8192)
    assert (record.name, record.salt, record.stored_key) == ("alice", b"7q", expected.stored_key)
    again = parse_credential('SCRAM-SHA-512=[name=alice,iterations=8192,salt="N3E=",saltedpassword="YCE="]', zeros)
    assert again.stored_key == ScramCredential.of_salted(SHA_512, b"`!", b"7q", 8192).stored_key


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "takes MECHANISM="),
        ("SCRAM-SHA-256", "takes MECHANISM="),
        ("SCRAM-SHA-256=name=alice,password=hidden", "takes MECHANISM="),
        ("SCRAM-SHA-1=[name=alice,password=hidden]", "The add-scram mechanism SCRAM-SHA-1 is not supported"),
        ("SCRAM-SHA-256=[]", "knows name"),
        ("SCRAM-SHA-256=[name=alice,hidden]", "knows name"),
        ("SCRAM-SHA-256=[name=alice,passwd=hidden]", "knows name"),
        ("SCRAM-SHA-256=[password=hidden]", "You must supply 'name' to add-scram"),
        ("SCRAM-SHA-256=[name=alice]", "You must supply one of 'password' or 'saltedpassword'"),
        ("SCRAM-SHA-256=[name=alice,password=]", "You must supply one of 'password' or 'saltedpassword'"),
        ("SCRAM-SHA-256=[name=alice,password=hidden,saltedpassword=YCE=]", "only supply one of"),
        ("SCRAM-SHA-256=[name=alice,saltedpassword=YCE=]", "You must supply 'salt' with 'saltedpassword'"),
        ("SCRAM-SHA-256=[name=alice,saltedpassword=hidden!,salt=YCE=]", "'saltedpassword' value must be base64"),
        ("SCRAM-SHA-256=[name=alice,password=hidden,iterations=4095]", "must be >= 4096 for add-scram using SCRAM-SHA"),
        ("SCRAM-SHA-256=[name=alice,password=hidden,iterations=16385]", "must be <= 16384"),
        ("SCRAM-SHA-256=[name=alice,password=hidden,iterations=many]", "must be a number"),
    ],
)
def test_errors_show_no_password(text: str, why: str) -> None:
    with pytest.raises(ScramArgumentError) as raised:
        parse_credential(text, zeros)
    assert why in str(raised.value)
    assert "hidden" not in str(raised.value)


@given(st.text())
def test_no_text_raises_anything_else(text: str) -> None:
    for argument in (text, f"SCRAM-SHA-256=[{text}]"):
        try:
            parse_credential(argument, zeros)
        except ScramArgumentError:
            continue
