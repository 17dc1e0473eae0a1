"""What stands in for extension modules in the browser: the same numbers as the libraries, or a loud refusal."""

from __future__ import annotations

import importlib.util
import random
from types import ModuleType

import crc32c
import pytest
import re2

from tests.web.browser import WEB


def stand_in(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"stand_in_{name}", WEB / "stand_ins" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_crc32c_has_the_numbers_of_the_library() -> None:
    ours = stand_in("crc32c")
    rng = random.Random(32)
    assert ours.crc32c(b"123456789") == 0xE3069283
    for length in (0, 1, 2, 7, 8, 9, 61, 255, 256, 4096, 10_001):
        data = rng.randbytes(length)
        first = rng.randrange(1 << 32)
        assert ours.crc32c(data) == crc32c.crc32c(data)
        assert ours.crc32c(memoryview(data), first) == crc32c.crc32c(data, first)


@pytest.mark.parametrize("pattern", ["orders", "orders.*", "^a[0-9]+$", "(x|y)z", "a{2,3}", ""])
def test_re2_finds_what_the_library_finds(pattern: str) -> None:
    ours = stand_in("re2")
    options = re2.Options()
    for text in ("orders", "orders-2", "a12", "yz", "aaa", ""):
        found = ours.compile(pattern, ours.Options()).fullmatch(text)
        assert (found is not None) == (re2.compile(pattern, options).fullmatch(text) is not None)


def test_a_pattern_that_is_wrong_is_an_error_of_both() -> None:
    ours = stand_in("re2")
    with pytest.raises(ours.error):
        ours.compile("(")
    with pytest.raises(re2.error):
        re2.compile("(")


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compression_is_refused(codec: str) -> None:
    with pytest.raises(NotImplementedError, match=f"{codec}.compress: there is no compression here"):
        getattr(stand_in("cramjam"), codec).compress(b"data")
