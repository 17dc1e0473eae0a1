"""What the links of the virtual network are like: latency, loss, windows, patience. Faults change it as they strike."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class NetworkConditions:
    """What the links are like. Times in microseconds; the latency is drawn per delivery from the range."""

    latency_us: tuple[int, int] = (50, 300)
    slow_links: dict[tuple[str, str], int] = field(default_factory=dict)
    """(from host, to host) -> extra latency in microseconds."""
    lossy_links: dict[tuple[str, str], float] = field(default_factory=dict)
    """(from host, to host) -> how likely a packet is lost; it is sent again, and later each time."""
    resend_us: int = 200_000
    bytes_per_us: int = 1000
    window_bytes: int = 4 << 20
    """What may be on its way to, or wait for, a process that does not read."""
    linger_bytes: int = 256 << 10
    """Of what a process has sent and the network not taken, this much outlives the process (the socket's buffer)."""
    give_up_us: int = 20_000_000
    connect_patience_us: int = 10_000_000
    connect_retry_us: int = 1_000_000
    """After a lost first packet; twice as long each time."""
