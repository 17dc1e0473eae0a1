"""CRC-32C is the package's, whichever way it was loaded."""

from __future__ import annotations

import subprocess
import sys

import crc32c as package
import pytest

from tanist.wire import crc


def test_the_check_value_of_the_algorithm() -> None:
    assert crc.crc32c(b"123456789") == 0xE3069283
    assert crc.crc32c(memoryview(bytearray(b"0123456789"))[1:]) == 0xE3069283
    assert crc.crc32c(b"6789", crc.crc32c(b"12345")) == 0xE3069283


def test_without_the_extension_in_sight_the_package_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crc, "_extension", lambda: None)
    assert crc._load() is package.crc32c


def test_the_package_is_not_run() -> None:
    script = "import sys, tanist.wire.crc; sys.exit('crc32c' in sys.modules or 'email' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
