"""The settings of a quorum node: the `controller.quorum.*` properties, by Kafka's names and defaults.

Owns no behaviour. Intervals are milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RaftConfig:
    election_timeout_ms: int = 1000
    """Shortest wait of a voter without a leader; up to as much again is added at random (rule 134)."""
    fetch_timeout_ms: int = 2000
    """How long a follower keeps a leader from which it cannot fetch."""
    election_backoff_max_ms: int = 1000
    """Longest wait of a follower that an EndQuorumEpoch did not prefer (rule 139)."""
    append_linger_ms: int = 25
    """Accepted because operators set it, and ignored: an append is written in the call that makes it."""
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_max_bytes: int = 1024 * 1024
    fetch_snapshot_max_bytes: int = 1024 * 1024
    fetch_max_wait_ms: int = 500
    """How long a leader may hold a fetch for which it has no news."""
    lost_leader_backoff_ms: int = 100
    """The longest wait before a follower whose leader's process is gone asks for pre-votes (ours, not Kafka's)."""
    append_max_bytes: int = 8 * 1024 * 1024
    """Largest batch that `append` writes: Kafka's limit, and what its followers accept."""
    listener_name: str = "CONTROLLER"
    """The listener name of the voters' endpoint in messages that carry endpoints."""
    auto_join: bool = False
    """A controller that is no voter asks the leader to make it one (kraft.version 1)."""

    def __post_init__(self) -> None:
        for name in ("election_timeout_ms", "fetch_timeout_ms", "request_timeout_ms", "fetch_max_bytes"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive")
        for name in ("election_backoff_max_ms", "retry_backoff_ms", "fetch_max_wait_ms", "lost_leader_backoff_ms"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative")
