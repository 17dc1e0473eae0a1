"""The address of a session is written as Java writes it: ACLs name it so."""

from __future__ import annotations

import pytest

from tanist.security.session import host_of, host_text, packed_host


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("10.1.2.3:5000", "10.1.2.3"),
        ("[::1]:5000", "0:0:0:0:0:0:0:1"),
        ("[fe80::1%eth0]:5000", "fe80:0:0:0:0:0:0:1"),
        ("[::ffff:10.1.2.3]:5000", "10.1.2.3"),
        ("node1:5000", "node1"),
    ],
)
def test_the_host_is_that_of_the_other_end(peer: str, host: str) -> None:
    assert host_of(peer) == host


@pytest.mark.parametrize("packed", [bytes((10, 1, 2, 3)), bytes(15) + b"\1"])
def test_text_and_bytes_are_the_same_address(packed: bytes) -> None:
    assert packed_host(host_text(packed)) == packed


@pytest.mark.parametrize("length", [0, 3, 5, 15, 17])
def test_other_lengths_are_no_address(length: int) -> None:
    with pytest.raises(ValueError, match="IPv4 or IPv6"):
        host_text(bytes(length))
