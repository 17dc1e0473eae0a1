"""Ranges of addresses: what is one, and which addresses are in it. Apache Kafka 4.4.0's own class was asked."""

from __future__ import annotations

import pytest

from tanist.wire.address_ranges import AddressRange, is_in_range

ADDRESSES = (
    "10.1.2.3",
    "0.0.0.0",
    "10.0.0.1",
    "255.255.255.255",
    "2001:db8:0:0:0:0:0:1",
    "0:0:0:0:0:0:0:1",
    "a-name",
    "",
)


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("10.0.0.0/8", {"10.1.2.3", "10.0.0.1"}),
        ("10.1.2.3/8", {"10.1.2.3", "10.0.0.1"}),
        ("010.0.0.0/08", {"10.1.2.3", "10.0.0.1"}),
        ("10.0.0.0/31", {"10.0.0.1"}),
        ("10.0.0.1/32", {"10.0.0.1"}),
        ("0.0.0.0/0", {"10.1.2.3", "10.0.0.1", "255.255.255.255"}),
        ("2001:db8::/32", {"2001:db8:0:0:0:0:0:1"}),
        ("2001:DB8::1/128", {"2001:db8:0:0:0:0:0:1"}),
        ("[::1]/64", {"0:0:0:0:0:0:0:1"}),
        ("fe80::1%eth0/64", set()),
        ("::/0", {"2001:db8:0:0:0:0:0:1", "0:0:0:0:0:0:0:1"}),
    ],
)
def test_addresses_in_a_range(text: str, inside: set[str]) -> None:
    AddressRange.parse(text)
    assert {address for address in ADDRESSES if is_in_range(address, text)} == inside


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("10.0.0.0/33", "Value [33] not in range [0,32]"),
        ("256.0.0.0/8", "Value [256] not in range [0,255]"),
        ("2001:db8::/129", "Could not parse [2001:db8::/129] - prefix length must be between 0 and 128"),
        ("::1/", "Could not parse [::1/] - invalid prefix length"),
        ("::1/64/3", "Could not parse [::1/64/3] - invalid prefix length"),
        ("a:b/4", "Could not parse [a:b]"),
        ("::ffff:10.0.0.0/104", "Could not parse [::ffff:10.0.0.0] - not an IPv6 address"),
        *(
            (text, f"Could not parse [{text}]")
            for text in (
                "10.0.0/8",
                "10.0.0.0/",
                "10.0.0.0/8 ",
                "10.0.0.0/-1",
                "10.0.0.0/+8",
                "10.0.0.0/008",
                "0010.0.0.0/8",
                "10.0.0.0/255.0.0.0",
                "10.0.0.0/\u0668",
                "*/8",
                "/8",
            )
        ),
    ],
)
def test_what_is_no_range_has_no_addresses(text: str, reason: str) -> None:
    with pytest.raises(ValueError) as refused:
        AddressRange.parse(text)
    assert str(refused.value) == reason
    assert not any(is_in_range(address, text) for address in ADDRESSES)
