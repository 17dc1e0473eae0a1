"""The partition of a group is Kafka's: values of Java's own `String.hashCode`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.wire.internal_topics import java_hash, partition_of


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("console-consumer-12345", 158455506),
        ("Größe", 69209585),
        ("\U0001f600", 1772899),
        ("polygenelubricants", -2147483648),
    ],
)
def test_the_hash_is_that_of_java(text: str, code: int) -> None:
    assert java_hash(text) == code


def test_the_least_number_has_no_absolute_value_in_java_and_is_taken_for_zero() -> None:
    assert partition_of("polygenelubricants", 50) == 0


@given(st.text(st.characters(codec="utf-8")), st.integers(1, 1000))
def test_a_partition_is_one_that_there_is(text: str, count: int) -> None:
    assert 0 <= partition_of(text, count) < count
