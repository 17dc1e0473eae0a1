"""`python -m bench.tls`: what TLS costs the server, beside the same requests without it, in one run.

    python -m bench.tls                          tanist and Apache Kafka, about five minutes
    python -m bench.tls --sides tanist --rounds 3

Each side is one node with two listeners, of which one has TLS 1.3 (AES-256-GCM, a P-256 certificate, the same on both
sides). One client sends one request after the other; sides and listeners take turns, round by round. Counted is the
processor's time of the server's process for each request, all threads together; the medians of the rounds are given.
"""

from __future__ import annotations

import argparse
import socket
import ssl
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench import frames
from bench.stands import BROKER_CONFIG, HEAP, create_topic, formatted, program_of
from tests.certificates import CertificateAuthority, pem
from tests.interop.apache import ApacheCluster
from tests.interop.cluster import HOST, Cluster, free_ports, interrupt_on_sigterm

TOPIC = "tls"
PLAIN, TLS = "plain", "TLS"
_WARM_UP = 0.5
"""Of a round, before it counts."""


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of request."""

    name: str
    requests: int
    """In a round."""
    batch_bytes: int = 0
    fetch_bytes: int = 0


ROWS = (
    Row("produce, 1 record", 4000, batch_bytes=180),
    Row("produce, 16 KB", 2000, batch_bytes=16_384),
    Row("produce, 1 MB", 60, batch_bytes=1_000_000),
    Row("fetch, 32 KB", 3000, fetch_bytes=32_768),
    Row("fetch, 1 MB", 200, fetch_bytes=1 << 20),
    Row("connection: handshake, ApiVersions, close", 300),
)


class Side:
    """One broker with both listeners."""

    def __init__(self, target: str, folder: Path, stores: Mapping[str, str]) -> None:
        self.label = Path(target).name
        first = free_ports(3)
        self.ports = {PLAIN: first, TLS: first + 2}
        listeners = f"PLAINTEXT://{HOST}:{first},SSL://{HOST}:{first + 2}"
        properties = {
            **BROKER_CONFIG,
            **stores,
            "listeners": f"{listeners},CONTROLLER://{HOST}:{first + 1}",
            "advertised.listeners": listeners,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT",
            "ssl.enabled.protocols": "TLSv1.3",
        }
        apache = ApacheCluster(folder, nodes=1, properties=properties, heap=HEAP, first_port=first, name=self.label)
        self.node: Cluster = apache
        if target == "apache":
            apache.format()
        else:
            self.node = formatted(apache, program_of(target))

    def cpu_us(self) -> float:
        """The processor's time of its process so far, all threads together."""
        pid = self.node.pid(1)
        spent = 0
        for task in Path(f"/proc/{pid}/task").iterdir():
            try:
                spent += int((task / "schedstat").read_text().split()[0])
            except FileNotFoundError:
                continue  # a thread that has ended
        return spent / 1000


class Client:
    """One request after the other."""

    def __init__(self, side: Side, how: str, context: ssl.SSLContext) -> None:
        self._address = (HOST, side.ports[how])
        self._context = context if how == TLS else None
        self._buffer = memoryview(bytearray(2 << 20))
        self._sock: socket.socket | None = None

    def connect(self) -> socket.socket:
        sock = socket.create_connection(self._address, timeout=60)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._context is not None:
            sock = self._context.wrap_socket(sock, server_hostname=HOST)
        return sock

    def ask(self, request: bytes) -> memoryview:
        """The answer, without its length."""
        if self._sock is None:
            self._sock = self.connect()
        return self._asked(self._sock, request)

    def once(self, request: bytes) -> None:
        """On a connection of its own."""
        with self.connect() as sock:
            self._asked(sock, request)

    def close(self) -> None:
        if self._sock is not None:
            self._sock.close()

    def _asked(self, sock: socket.socket, request: bytes) -> memoryview:
        sock.sendall(request)
        filled, need = 0, 4
        while filled < need:
            count = sock.recv_into(self._buffer[filled:])
            if not count:
                raise ConnectionError("the server has closed the connection")
            filled += count
            if need == 4 and filled >= 4:
                need += struct.unpack_from(">i", self._buffer)[0]
        return self._buffer[4:need]


_API_VERSIONS = b"\x00\x00\x00\x0e\x00\x12\x00\x00\x00\x00\x00\x01\x00\x04bnch"


def requests_of(row: Row) -> tuple[Callable[[memoryview], int] | None, Iterator[bytes]]:
    """What tells the error in an answer, and the requests."""
    if row.batch_bytes:
        batch = frames.batch_of_size(row.batch_bytes, 100, int(time.time() * 1000))
        made = frames.produce(TOPIC, 0, batch, 1)
    elif row.fetch_bytes:
        made = frames.fetch(TOPIC, 0, [0], row.fetch_bytes)
    else:
        return None, forever(_API_VERSIONS)
    return lambda answer: made.error_of(bytes(answer[:200])), forever(made.requests[0])


def forever(request: bytes) -> Iterator[bytes]:
    while True:
        yield request


def round_of(side: Side, client: Client, row: Row) -> float:
    """Microseconds of the server for each request."""
    error_of, requests = requests_of(row)

    def run(count: int) -> None:
        for _ in range(count):
            if error_of is None:
                client.once(next(requests))
            elif (code := error_of(client.ask(next(requests)))) != 0:
                raise RuntimeError(f"{side.label}: {row.name}: error {code}")

    run(round(row.requests * _WARM_UP))
    before = side.cpu_us()
    run(row.requests)
    return (side.cpu_us() - before) / row.requests


def table(rows: Mapping[str, Mapping[tuple[str, str], list[float]]], labels: list[str]) -> str:
    """Markdown."""
    head = ["us of server CPU per request", *(f"{label} {how}" for label in labels for how in (PLAIN, TLS))]
    both = labels == ["tanist", "apache"]
    lines = ["| " + " | ".join([*head, *(["TLS / Apache's TLS"] if both else [])]) + " |"]
    lines.append("|---" * (len(head) + both) + "|")
    for name, found in rows.items():
        medians = {key: statistics.median(values) for key, values in found.items()}
        cells = [f"{medians[(label, how)]:,.0f}" for label in labels for how in (PLAIN, TLS)]
        if both:
            ratios = sorted(
                ours / theirs for ours, theirs in zip(found["tanist", TLS], found["apache", TLS], strict=True)
            )
            cells.append(f"{statistics.median(ratios):.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f})")
        lines.append("| " + " | ".join([name, *cells]) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sides", default="tanist,apache", help="with commas: tanist, apache, or a checkout's path")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--scale", type=float, default=1.0, help="so many times the requests of a round")
    options = parser.parse_args()
    interrupt_on_sigterm()
    authority = CertificateAuthority()
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        folder = Path(temporary)
        stores = authority.issue("bench").pem_files(folder)
        context = ssl.create_default_context(cadata=pem(authority.certificate))
        sides: list[Side] = []
        for target in options.sides.split(","):
            side = Side(target, folder / f"side-{len(sides)}", stores)
            stack.callback(side.node.stop)
            side.node.start()
            create_topic(side.node, TOPIC, 1)
            sides.append(side)
        for side in sides:  # Java's compiler has its say first
            for how in (PLAIN, TLS):
                client = Client(side, how, context)
                for row in ROWS:
                    round_of(side, client, row)
                client.close()
        rows: dict[str, dict[tuple[str, str], list[float]]] = {}
        for row in ROWS:
            smaller = Row(row.name, max(10, round(row.requests * options.scale)), row.batch_bytes, row.fetch_bytes)
            found = rows[row.name] = {(side.label, how): [] for side in sides for how in (PLAIN, TLS)}
            for _ in range(options.rounds):
                for side in sides:
                    for how in (PLAIN, TLS):
                        client = Client(side, how, context)
                        found[side.label, how].append(round_of(side, client, smaller))
                        client.close()
            print(table({row.name: found}, [side.label for side in sides]), file=sys.stderr, flush=True)
        print(table(rows, [side.label for side in sides]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
