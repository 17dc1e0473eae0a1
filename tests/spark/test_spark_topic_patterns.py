"""`subscribePattern` matches what Java's own regular expressions match."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.spark.topic.patterns import PatternError, java_pattern

NAMES = (
    "orders", "orders-eu", "orders.eu", "orders_1", "Orders", "payments", "a", "b", "ab", "aa", "a.b", "a-b", "x1",
    "x9", "topic[1]", "events-2026-11", "m", "z", "..", "__consumer_offsets",
)  # fmt: skip
PATTERNS = (
    "orders", "orders.*", "ord.*|pay.*", r"orders\..*", r"\Qorders.\Eeu", r"\Qa.b", "(?<a>a)b", r"(?<x>a)\k<x>",
    r"(?i)orders", r"\p{Lower}+", r"\p{Alpha}\d", r"\P{Upper}+", r"[\p{L}.]+", r"\p{L}+", r"\pL+", "[a-z&&[^ab]]",
    "[a-z&&[^aeiou]]+", "[a-c[x-z]]", "[^a-c[x-z]]", "[a-m&&[a-z]&&[^b]]", "[^ab&&[a-z]]", r"[\Q.-\E]+", "[a-z]++",
    "(?>a|ab)b?", "(?s).+",
    r"events-\d{4}-\d{2}", r"\w+", r"[\w.-]+", "a.b", r"[]a]", r"[a\]]", r"x[^1]", r"orders\z", "[&a]+", "[a&b]+",
    r"[a-z-]+", "(?!__).*", r"\x61\u0062", r"[^\p{Alpha}]+",
)  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_names_match_as_in_java(spark: Any, pattern: str) -> None:
    java = spark._jvm.java.util.regex.Pattern
    expected = [name for name in NAMES if java.matches(pattern, name)]
    found = java_pattern(pattern)
    assert [name for name in NAMES if found.fullmatch(name)] == expected


@pytest.mark.parametrize("pattern", ["(", "[a", r"\p{IsGreek}", r"[\P{Lu}]", "[&&]", "a(?i)b", r"\R", "a**"])
def test_what_python_cannot_say_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        java_pattern(pattern)
