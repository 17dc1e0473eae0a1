"""Conditions of the virtual network's links: latency, loss, windows, timeouts. Faults change them."""

from __future__ import annotations

from dataclasses import dataclass, field

WINDOW_BYTES = 4 << 20
"""More than the answers of a run: nobody waits for a reader."""


@dataclass
class NetworkConditions:
    """Conditions of all links. Times in microseconds; the latency is drawn from the range for each delivery."""

    latency_us: tuple[int, int] = (50, 300)
    slow_links: dict[tuple[str, str], int] = field(default_factory=dict)
    """(from host, to host) -> extra latency in microseconds."""
    lossy_links: dict[tuple[str, str], float] = field(default_factory=dict)
    """(from host, to host) -> probability that a packet is lost; it is sent again, each time later."""
    resend_us: int = 200_000
    bytes_per_us: int = 1000
    window_bytes: int = WINDOW_BYTES
    """Bytes that may be under way to, or wait for, a process that does not read."""
    windows: dict[tuple[str, str], int] = field(default_factory=dict)
    """(from host, to host) -> their own `window_bytes`."""
    receive_bytes: dict[str, int] = field(default_factory=dict)
    """Host -> the receive buffers of all that read from it: no more is under way, whatever its own sockets take."""
    stall_us: int = 0
    """So long, at most, a half-sent answer stays as it is when a log of its sender is truncated, rolled, compacted or
    deleted; once for each time that something waits."""
    linger_bytes: int = 256 << 10
    """Bytes of the socket's buffer: sent by a process, not taken by the network, and kept when the process dies."""
    give_up_us: int = 20_000_000
    connect_patience_us: int = 10_000_000
    connect_retry_us: int = 1_000_000
    """After a lost first packet; twice as long each time."""

    def end_faults(self) -> None:
        """Everything that would keep a cluster from becoming whole in time is over."""
        self.slow_links.clear()
        self.lossy_links.clear()
        self.receive_bytes.clear()
        self.stall_us = 0

    def window(self, source: str, target: str) -> int:
        """The window of a connection from one host to another."""
        return self.windows.get((source, target), self.window_bytes) if self.windows else self.window_bytes
