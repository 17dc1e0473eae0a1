"""Ranges of addresses in CIDR notation, as access control entries name hosts by them: `10.0.0.0/8`, `2001:db8::/32`.

What is a range, and which addresses are in one, is Apache Kafka 4.4's: bits of the address beyond the prefix are
ignored, numbers may begin with a zero, and 0.0.0.0 is in no range. `tests/interop/test_interop_authorizer.py` compares.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, NamedTuple

_IPV4: Final = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})/(\d{1,2})", re.ASCII)
_LENGTH: Final = re.compile(r"\+?\d+", re.ASCII)
_REMEMBERED: Final = 4096


class AddressRange(NamedTuple):
    """The addresses that begin with the same bits."""

    family: int
    """4 or 6."""
    bits: int
    shift: int
    """How many bits of an address may be any."""

    @classmethod
    def parse(cls, text: str) -> AddressRange:
        """`ValueError` with the reason why it is none."""
        family, address, length, size = (6, *_ipv6(text), 128) if ":" in text else (4, *_ipv4(text), 32)
        return cls(family, address >> (size - length), size - length)

    def __contains__(self, address: object) -> bool:
        return (
            isinstance(address, IPv4Address | IPv6Address)
            and address.version == self.family
            and int(address) >> self.shift == self.bits
            and not (self.family == 4 and int(address) == 0)
        )


def is_in_range(host: str, text: str) -> bool:
    """Whether a host's address is in the range. A name is in none, and what is no range has no address."""
    found = _range(text)
    if found is None:
        return False
    try:
        return ip_address(host) in found
    except ValueError:
        return False


@lru_cache(_REMEMBERED)
def _range(text: str) -> AddressRange | None:
    try:
        return AddressRange.parse(text)
    except ValueError:
        return None


def _ipv4(text: str) -> tuple[int, int]:
    found = _IPV4.fullmatch(text)
    if found is None:
        raise ValueError(f"Could not parse [{text}]")
    *octets, length = map(int, found.groups())
    for value, last in ((length, 32), *((octet, 255) for octet in octets)):
        if value > last:
            raise ValueError(f"Value [{value}] not in range [0,{last}]")
    return int.from_bytes(bytes(octets), "big"), length


def _ipv6(text: str) -> tuple[int, int]:
    host, slash, length = text.partition("/")
    if not slash or not _LENGTH.fullmatch(length):
        raise ValueError(f"Could not parse [{text}] - invalid prefix length")
    if int(length) > 128:
        raise ValueError(f"Could not parse [{text}] - prefix length must be between 0 and 128")
    try:
        address = IPv6Address(host.removeprefix("[").removesuffix("]").partition("%")[0])
    except ValueError:
        raise ValueError(f"Could not parse [{host}]") from None
    if address.ipv4_mapped is not None:
        raise ValueError(f"Could not parse [{host}] - not an IPv6 address")
    return int(address), int(length)
