"""`sasl.jaas.config` as Apache Kafka's JaasConfig reads it, and errors that help."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.security.jaas import PLAIN_MODULE, JaasError, parse_jaas


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("M required;", {}),
        ("M required ;", {}),
        ('M required username="a" password="b";', {"username": "a", "password": "b"}),
        ("M required username='a' password='b c';", {"username": "a", "password": "b c"}),
        ("M REQUIRED username=a password=b2;", {"username": "a", "password": "b2"}),
        ("M optional username = a;", {"username": "a"}),
        ("M sufficient a=b\n  c=d;\n", {"a": "b", "c": "d"}),
        ('M requisite a="x;y=z";', {"a": "x;y=z"}),
        (r'M required a="\"\\\n\101\u";', {"a": '"\\\nAu'}),
        ("M required // a=b;\n c=d /* e=f; */ ;", {"c": "d"}),
        ('M required a="1" a="2";', {"a": "2"}),
        ("M required a=b-c_d$e.f;", {"a": "b-c_d$e.f"}),
        ('M required a="" b="é";', {"a": "", "b": "é"}),
        ('M required unsecuredLoginStringClaim_sub="x";', {"unsecuredLoginStringClaim_sub": "x"}),
    ],
)
def test_entries(text: str, options: dict[str, str]) -> None:
    entry = parse_jaas(text)
    assert (entry.module, entry.options) == ("M", options)


def test_a_module_and_its_users() -> None:
    entry = parse_jaas(f'{PLAIN_MODULE} required username="n" password="p" user_a="1" user_b-c="2" user_="3";')
    assert entry.module == PLAIN_MODULE
    assert entry.passwords == {"a": "1", "b-c": "2", "": "3"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no login module is specified"),
        ("  // nothing\n", "no login module is specified"),
        ('"" required;', "does not begin with the class"),
        ("M", "control flag is missing"),
        ("M maybe;", "none of required"),
        ("M ;", "none of required"),
        ("; M required;", "does not begin with the class"),
        ("M required", "does not end with a semicolon"),
        ('M required a="hidden"', "does not end with a semicolon"),
        ("M required a;", "value of option 1 is missing"),
        ("M required a", "value of option 1 is missing"),
        ("M required a=;", "value of option 1 cannot be read; write it in quotes"),
        ("M required a=123hidden;", "write it in quotes"),
        ("M required a=-hidden;", "write it in quotes"),
        ("M required a=@hidden;", "write it in quotes"),
        ("M required a=x@hidden;", "option 2 has no name"),
        ("M required a==hidden;", "write it in quotes"),
        ('M required a="hidden;', "is not closed"),
        ("M required a='hid\nden';", "is not closed"),
        ('M required b="x" hid den="y";', "the value of option 2 is missing"),
        ("M required; N required;", "contains 2 login modules, should be 1 module"),
    ],
)
def test_errors_say_what_to_write_and_show_no_value(text: str, why: str) -> None:
    with pytest.raises(JaasError) as raised:
        parse_jaas(text)
    assert why in str(raised.value)
    assert "hid" not in str(raised.value)


@given(st.text(st.sampled_from("M required a=\"'\\;/*#1.-\n\té")))
def test_no_text_raises_anything_else(text: str) -> None:
    try:
        entry = parse_jaas(text)
    except JaasError:
        return
    assert entry.module


@given(st.dictionaries(st.from_regex(r"[A-Za-z_][A-Za-z0-9_]*", fullmatch=True), st.text()))
def test_quoted_values_come_through(options: dict[str, str]) -> None:
    def quoted(value: str) -> str:
        for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
            value = value.replace(plain, escaped)
        return f'"{value}"'

    text = " ".join(f"{name}={quoted(value)}" for name, value in options.items())
    entry = parse_jaas(f"M required {text};")
    assert entry.options == options
    assert not any(value in repr(entry) for value in options.values() if len(value) > 3)
