"""A small Kafka client written by hand from the protocol guide, for what the harness itself must ask.

It shares no code with `tanist.wire` and `tanist.security`, so that a mistake there cannot hide behind the same mistake
here. It speaks only old, plain versions that both sides of a comparison serve: Metadata v4, DescribeQuorum v0,
ListOffsets v1, ApiVersions v0, CreateTopics v2, DeleteTopics v1, SaslHandshake v1 and SaslAuthenticate v0.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import socket
import ssl
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType

METADATA, LIST_OFFSETS, API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS, DESCRIBE_QUORUM = 3, 2, 18, 19, 20, 55
SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
TIMEOUT_MS = 30_000
EARLIEST, LATEST = -2, -1
MAX_RESPONSE_BYTES = 64 << 20


class ProtocolError(OSError):
    """The other side answered with something that is not the answer; an `OSError`, as it is when it hangs up."""


@dataclass(frozen=True, slots=True)
class PartitionState:
    """One partition as a broker's Metadata answer tells it."""

    partition: int
    error: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClusterState:
    """A broker's Metadata answer."""

    brokers: dict[int, tuple[str, int]]
    topics: dict[str, tuple[PartitionState, ...]]
    errors: dict[str, int]

    def leaders(self, topic: str) -> dict[int, int]:
        return {state.partition: state.leader for state in self.topics.get(topic, ())}


class Reader:
    """Reads plain (not flexible) protocol fields one after the other."""

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position

    def _unpack(self, layout: struct.Struct) -> int:
        try:
            (value,) = layout.unpack_from(self.data, self.position)
        except struct.error as error:
            raise ProtocolError(f"short answer: {error}") from None
        self.position += layout.size
        return int(value)

    def int8(self) -> int:
        return self._unpack(_INT8)

    def int16(self) -> int:
        return self._unpack(_INT16)

    def int32(self) -> int:
        return self._unpack(_INT32)

    def int64(self) -> int:
        return self._unpack(_INT64)

    def string(self) -> str | None:
        length = self.int16()
        if length < 0:
            return None
        value = self.data[self.position : self.position + length]
        self.position += length
        return value.decode()

    def int32s(self) -> tuple[int, ...]:
        return tuple(self.int32() for _ in range(self.int32()))

    def unsigned_varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.position]
            self.position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def compact_string(self) -> str:
        length = self.unsigned_varint() - 1
        value = self.data[self.position : self.position + length]
        self.position += length
        return value.decode()


_INT8, _INT16, _INT32, _INT64 = struct.Struct(">b"), struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")


def string(value: str | None) -> bytes:
    """A plain nullable string."""
    if value is None:
        return b"\xff\xff"
    encoded = value.encode()
    return _INT16.pack(len(encoded)) + encoded


def request_frame(api_key: int, version: int, body: bytes, *, flexible: bool, correlation_id: int = 1) -> bytes:
    """A whole request frame, length prefix included."""
    header = struct.pack(">hhi", api_key, version, correlation_id) + string("tanist-harness")
    if flexible:
        header += b"\0"
    return _INT32.pack(len(header) + len(body)) + header + body


class RawClient:
    """One blocking connection to one node."""

    def __init__(self, host: str, port: int, *, timeout_s: float = 5.0, source: str | None = None) -> None:
        """`source`: the address that it has to the node."""
        self.socket = socket.create_connection(
            (host, port), timeout=timeout_s, source_address=None if source is None else (source, 0)
        )
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def over_tls(self, context: ssl.SSLContext) -> None:
        """Go on with TLS; the node is known by its address."""
        self.socket = context.wrap_socket(self.socket, server_hostname=self.socket.getpeername()[0])

    def log_in(self, user: str, password: str) -> None:
        """By SCRAM-SHA-512 (RFC 5802)."""
        error = self.request(SASL_HANDSHAKE, 1, string("SCRAM-SHA-512")).int16()
        if error:
            raise ProtocolError(f"SaslHandshake: error {error}")
        first = f"n={user},r={os.urandom(12).hex()}"
        challenge = self._token(f"n,,{first}".encode())
        nonce, salt, iterations = (part[2:] for part in challenge.decode().split(","))
        salted = hashlib.pbkdf2_hmac("sha512", password.encode(), base64.b64decode(salt), int(iterations))
        key = hmac.digest(salted, b"Client Key", "sha512")
        without_proof = f"c=biws,r={nonce}"
        said = f"{first},{challenge.decode()},{without_proof}".encode()
        signature = hmac.digest(hashlib.sha512(key).digest(), said, "sha512")
        proof = bytes(one ^ other for one, other in zip(key, signature, strict=True))
        last = self._token(f"{without_proof},p={base64.b64encode(proof).decode()}".encode())
        expected = hmac.digest(hmac.digest(salted, b"Server Key", "sha512"), said, "sha512")
        if last != b"v=" + base64.b64encode(expected):
            raise ProtocolError("the node does not know the password")

    def _token(self, token: bytes) -> bytes:
        reader = self.request(SASL_AUTHENTICATE, 0, _INT32.pack(len(token)) + token)
        error, message = reader.int16(), reader.string()
        if error:
            raise ProtocolError(f"SaslAuthenticate: error {error} ({message})")
        length = reader.int32()
        return reader.data[reader.position : reader.position + length]

    def request(self, api_key: int, version: int, body: bytes, *, flexible: bool = False) -> Reader:
        """Send one request and wait for its answer; the reader stands behind the response header."""
        self._correlation_id += 1
        frame = request_frame(api_key, version, body, flexible=flexible, correlation_id=self._correlation_id)
        reader = Reader(self.exchange(frame))
        answered = reader.int32()
        if answered != self._correlation_id:
            raise ProtocolError(f"answer {answered} to request {self._correlation_id}")
        if flexible and reader.int8() != 0:
            raise ProtocolError("tagged fields in a response header")
        return reader

    def exchange(self, frame: bytes) -> bytes:
        """Send a frame that was encoded elsewhere; the answer, without its length prefix."""
        self.socket.sendall(frame)
        (length,) = _INT32.unpack(self._exactly(4))
        if not 4 <= length <= MAX_RESPONSE_BYTES:
            raise ProtocolError(f"an answer of {length} bytes")
        return self._exactly(length)

    def _exactly(self, length: int) -> bytes:
        pieces = []
        while length:
            piece = self.socket.recv(length)
            if not piece:
                raise ProtocolError("the node hung up")
            pieces.append(piece)
            length -= len(piece)
        return b"".join(pieces)

    def metadata(self, topics: Sequence[str] | None = None) -> ClusterState:
        """The brokers that are alive, and the named topics (all of them for None). Never creates a topic."""
        if topics is None:
            body = _INT32.pack(-1)
        else:
            body = _INT32.pack(len(topics)) + b"".join(string(topic) for topic in topics)
        reader = self.request(METADATA, 4, body + b"\0")
        reader.int32()  # throttle time
        brokers: dict[int, tuple[str, int]] = {}
        for _ in range(reader.int32()):
            node_id, host, port, _rack = reader.int32(), reader.string(), reader.int32(), reader.string()
            brokers[node_id] = (host or "", port)
        reader.string()  # cluster id
        reader.int32()  # the "controller": in KRaft any broker, so of no use here
        found: dict[str, tuple[PartitionState, ...]] = {}
        errors: dict[str, int] = {}
        for _ in range(reader.int32()):
            error, name, _internal = reader.int16(), reader.string() or "", reader.int8()
            states = []
            for _ in range(reader.int32()):
                partition_error, partition, leader = reader.int16(), reader.int32(), reader.int32()
                states.append(PartitionState(partition, partition_error, leader, reader.int32s(), reader.int32s()))
            found[name] = tuple(sorted(states, key=lambda state: state.partition))
            if error:
                errors[name] = error
        return ClusterState(brokers, found, errors)

    def quorum_leader(self) -> int:
        """The active controller's node id, or -1."""
        body = b"\x02\x13__cluster_metadata\x02" + _INT32.pack(0) + b"\0\0\0"
        reader = self.request(DESCRIBE_QUORUM, 0, body, flexible=True)
        error = reader.int16()
        if error or reader.unsigned_varint() != 2:
            return -1
        reader.compact_string()
        reader.unsigned_varint()
        reader.int32()
        if reader.int16():
            return -1
        return reader.int32()

    def list_offset(self, topic: str, partition: int, timestamp: int) -> int:
        """The offset for a timestamp (`EARLIEST` and `LATEST` included), asked of this node, which must lead."""
        body = struct.pack(">ii", -1, 1) + string(topic) + struct.pack(">iiq", 1, partition, timestamp)
        reader = self.request(LIST_OFFSETS, 1, body)
        reader.int32()
        reader.string()
        reader.int32()
        _partition, error, _timestamp, offset = reader.int32(), reader.int16(), reader.int64(), reader.int64()
        if error:
            raise ProtocolError(f"ListOffsets of {topic}-{partition}: error {error}")
        return offset

    def create_topic(self, topic: str, partitions: int, replicas: int, config: Mapping[str, str]) -> None:
        settings = b"".join(string(name) + string(value) for name, value in config.items())
        shape = struct.pack(">ihii", partitions, replicas, 0, len(config))
        body = struct.pack(">i", 1) + string(topic) + shape + settings + struct.pack(">ib", TIMEOUT_MS, 0)
        reader = self.request(CREATE_TOPICS, 2, body)
        reader.int32()
        reader.int32()
        _name, error, message = reader.string(), reader.int16(), reader.string()
        if error:
            raise ProtocolError(f"CreateTopics of {topic}: error {error} ({message})")

    def delete_topic(self, topic: str) -> None:
        reader = self.request(DELETE_TOPICS, 1, struct.pack(">i", 1) + string(topic) + struct.pack(">i", TIMEOUT_MS))
        reader.int32()
        reader.int32()
        _name, error = reader.string(), reader.int16()
        if error:
            raise ProtocolError(f"DeleteTopics of {topic}: error {error}")
