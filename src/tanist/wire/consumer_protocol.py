"""The consumers' messages within a classic group: subscriptions and assignments (KIP-429, KIP-881).

Two bytes of version, then a message of that version. A version that is not known yet is read as the newest that is:
later ones only add fields at the end.
"""

from __future__ import annotations

from typing import Final, TypeVar

from tanist.wire.codec import WireError, decoder, encoder
from tanist.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from tanist.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

PROTOCOL_TYPE: Final = "consumer"
"""The protocol type of the groups that speak so."""

M = TypeVar("M", ConsumerProtocolSubscription, ConsumerProtocolAssignment)

_VERSION_BYTES = 2


def version_of(data: bytes) -> int:
    """The version to read this in, and to answer in. `WireError` if it is too short to have one."""
    if len(data) < _VERSION_BYTES:
        raise WireError(f"{len(data)} bytes have no version")
    newest = ConsumerProtocolSubscription.VERSIONS[1]
    return max(0, min(int.from_bytes(data[:_VERSION_BYTES], "big", signed=True), newest))


def decode_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """A member's subscription. `WireError` if it is malformed."""
    return _decode(ConsumerProtocolSubscription, data)


def decode_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """A member's assignment. `WireError` if it is malformed."""
    return _decode(ConsumerProtocolAssignment, data)


def encode_protocol(message: ConsumerProtocolSubscription | ConsumerProtocolAssignment, version: int) -> bytes:
    """The message with its version in front."""
    return version.to_bytes(_VERSION_BYTES, "big") + encoder(type(message), version)(message)


def _decode(kind: type[M], data: bytes) -> M:
    message, _ = decoder(kind, version_of(data))(data, _VERSION_BYTES)
    return message
