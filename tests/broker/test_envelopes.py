"""The envelope of a forwarded request: the principal as Apache Kafka writes it, and the client's address."""

from __future__ import annotations

import pytest

from tanist.broker.metadata.envelopes import ANONYMOUS, address_of, default_principal, envelope


def test_the_principal_is_default_principal_data_of_version_0() -> None:
    """The bytes of Apache Kafka 4.3.1's DefaultKafkaPrincipalBuilder for User:ANONYMOUS."""
    assert ANONYMOUS == b"\0\0\x05User\x0aANONYMOUS\0\0"
    assert default_principal("User", "a" * 200, token_authenticated=True)[7:9] == b"\xc9\x01"


@pytest.mark.parametrize(
    ("peer", "packed"),
    [
        ("10.1.2.3:5000", bytes((10, 1, 2, 3))),
        ("[::1]:5000", bytes(15) + b"\1"),
        ("[fe80::1%eth0]:5000", b"\xfe\x80" + bytes(13) + b"\1"),
        ("node1:5000", bytes((127, 0, 0, 1))),  # of the simulator
    ],
)
def test_the_address_is_the_clients(peer: str, packed: bytes) -> None:
    assert address_of(peer) == packed
    assert envelope(b"x", peer).client_host_address == packed
