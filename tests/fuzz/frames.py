"""Mutated frames to a live listener: `python -m tests.fuzz.frames --address HOST:PORT --frames 1000000 --pid PID`.

Frames of every API and version that is served are made with random contents, damaged (bits, bytes, lengths, cuts,
repetitions), and sent over real connections, several in a row before anything is read. What must hold: the node lives,
answers a well-formed request after each burst of bursts, and its memory stays within a bound. The seed makes a run
repeatable. Counted are the frames that the node has read: those it answered, and the one it closed the connection for.
"""

from __future__ import annotations

import argparse
import os
import random
import socket
import struct
import sys
import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from tanist.broker.api.table import INTER_BROKER_TABLE
from tanist.wire.apis import ApiKey, request_class
from tanist.wire.batch import NewRecord, encode_batch
from tanist.wire.frames import encode_request
from tanist.wire.messages.api_versions_request import ApiVersionsRequest
from tanist.wire.schema import Array, Field, Struct

BURST = 8
RSS_BOUND_BYTES = 300 << 20
"""An idle node is below 70 MB; a burst may hold request.max bytes a connection, but none here declares so much."""


def random_value(kind: Any, rng: random.Random, depth: int) -> Any:
    if isinstance(kind, Array):
        return tuple(random_value(kind.element, rng, depth + 1) for _ in range(rng.randrange(3) if depth < 4 else 0))
    if isinstance(kind, type) and issubclass(kind, Struct):
        return random_struct(kind, rng, depth + 1)
    match kind:
        case "bool":
            return rng.random() < 0.5
        case "int8":
            return rng.choice([0, 1, -1, 127, rng.randrange(-128, 128)])
        case "int16" | "uint16":
            return rng.choice([0, 1, 2, 100, 32767])
        case "int32":
            return rng.choice([0, 1, -1, 2, 1 << 20, rng.randrange(-(1 << 31), 1 << 31)])
        case "int64":
            return rng.choice([0, 1, -1, -2, 1 << 40, rng.randrange(-(1 << 63), 1 << 63)])
        case "float64":
            return rng.random()
        case "string":
            return rng.choice(["", "t", "fuzz", "__cluster_metadata", "x" * rng.randrange(40)])
        case "uuid":
            return UUID(int=rng.getrandbits(128))
        case "records":
            count = rng.randrange(1, 4)
            return bytes(encode_batch([NewRecord(timestamp=1, key=None, value=b"v" * rng.randrange(50))] * count))
        case _:
            return rng.randbytes(rng.randrange(20))


def random_struct(cls: type[Struct], rng: random.Random, depth: int = 0) -> Any:
    values: dict[str, Any] = {}
    for field in cls.FIELDS:
        field_: Field = field
        if rng.random() < 0.8:
            values[field_.name] = random_value(field_.type, rng, depth)
    return cls(**values)


def well_formed(rng: random.Random) -> bytes:
    """A frame of some API and version, length prefix included."""
    while True:
        key = ApiKey(rng.choice(list(INTER_BROKER_TABLE)))
        low, high, _ = INTER_BROKER_TABLE[key]
        try:
            cls = request_class(key)
            return encode_request(random_struct(cls, rng), rng.randint(low, high), rng.getrandbits(31), "fuzz")
        except Exception:
            continue  # a random object need not be encodable in a random version


def damaged(frame: bytes, rng: random.Random) -> bytes:
    """The frame with some damage; its length prefix mostly stays true, so that the damage is read."""
    body = bytearray(frame[4:])
    for _ in range(rng.choice([1, 1, 1, 2, 5, 20])):
        if not body:
            break
        at = rng.randrange(len(body))
        match rng.randrange(7):
            case 0:
                body[at] ^= 1 << rng.randrange(8)
            case 1:
                body[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF])
            case 2:
                del body[at:]
            case 3:
                body[at:at] = rng.randbytes(rng.randrange(1, 9))
            case 4:
                body[at : at + 4] = struct.pack(">i", rng.choice([-1, -2, 1 << 30, (1 << 31) - 1, 65536]))
            case 5:
                body += body[at:][: 1 << 16]
            case 6:
                body[at : at + 5] = b"\xff\xff\xff\xff\x0f"
    length = len(body)
    if rng.random() < 0.02:
        length = rng.choice([-1, 0, 1, length + 1, (1 << 31) - 1, 200 << 20])
    return struct.pack(">i", length) + body


def frames(seed: int) -> Iterator[bytes]:
    rng = random.Random(seed)
    corpus = [well_formed(rng) for _ in range(3000)]
    while True:
        frame = rng.choice(corpus)
        yield damaged(frame, rng) if rng.random() < 0.9 else frame


def rss_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def answers(address: tuple[str, int]) -> bool:
    """Whether a well-formed request is answered within a few seconds."""
    with socket.create_connection(address, timeout=10) as sock:
        sock.settimeout(10)
        sock.sendall(
            encode_request(ApiVersionsRequest(client_software_name="f", client_software_version="1"), 3, 7, "f")
        )
        head = sock.recv(8)
        return len(head) == 8 and head[4:] == b"\0\0\0\x07"


def _frames_in(data: bytearray) -> int:
    """How many whole answers these bytes hold."""
    count = position = 0
    while len(data) - position >= 4:
        position += 4 + int.from_bytes(data[position : position + 4], "big")
        count += position <= len(data)
    return count


def fuzz(address: tuple[str, int], count: int, seed: int, pid: int | None) -> int:
    """Send `count` frames; the exit code."""
    source = frames(seed)
    read = connections = 0
    highest = 0
    began = time.monotonic()
    while read < count:
        burst = b"".join(next(source) for _ in range(BURST))
        connections += 1
        try:
            with socket.create_connection(address, timeout=10) as sock:
                sock.settimeout(0.003)
                answered = bytearray()
                try:
                    sock.sendall(burst)
                    while data := sock.recv(1 << 16):
                        answered += data
                except OSError:
                    pass  # the node has closed on us, or waits for the rest of a frame: both are right
                read += min(BURST, _frames_in(answered) + 1)
        except OSError as failure:
            print(f"seed {seed}: no connection after {read} frames: {failure}")
            return 1
        if connections % 200 == 0:
            if not answers(address):
                print(f"seed {seed}: no answer after {read} frames")
                return 1
            if pid is not None:
                highest = max(highest, rss_bytes(pid))
                if highest > RSS_BOUND_BYTES:
                    print(f"seed {seed}: {highest >> 20} MB resident after {read} frames")
                    return 1
    took = time.monotonic() - began
    print(f"{read} frames over {connections} connections in {took:.0f} s: alive; at most {highest >> 20} MB resident")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--address", default="127.0.0.1:9092")
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pid", type=int, help="the node's process, to watch its memory")
    options = parser.parse_args()
    host, port = options.address.rsplit(":", 1)
    return fuzz((host, int(port)), options.frames, options.seed, options.pid)


if __name__ == "__main__":
    sys.exit(main())
