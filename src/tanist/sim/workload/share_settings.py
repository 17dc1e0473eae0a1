"""What the share groups of a run are, and what their members do with records."""

from __future__ import annotations

from dataclasses import dataclass

DEAD_LETTERS = "dlq."
"""How the names of dead letter topics begin, by default."""


@dataclass(frozen=True, slots=True)
class SharePlan:
    """One share group of a run."""

    group: str
    members: int
    topics: tuple[str, ...]
    from_latest: bool = False
    """It begins at the ends of the logs (`share.auto.offset.reset`), and not at their beginnings."""
    read_committed: bool = False
    """It gets no records of transactions that are open or aborted (`share.isolation.level`)."""

    dead_letters: bool = False
    """Records that nobody could process go to a topic."""

    @property
    def configs(self) -> dict[str, str]:
        """Of the group, where they are not the defaults."""
        configs = {}
        if not self.from_latest:
            configs["share.auto.offset.reset"] = "earliest"
        if self.read_committed:
            configs["share.isolation.level"] = "read_committed"
        if self.dead_letters:
            configs["errors.deadletterqueue.topic.name"] = f"{DEAD_LETTERS}{self.group}"
        return configs


@dataclass(frozen=True)
class ShareSettings:
    """The settings of a run with share groups. Times in virtual milliseconds."""

    plans: tuple[SharePlan, ...] = (SharePlan("s0", 2, ("events",)),)
    lock_ms: int = 1_000
    """How long a member may keep records without a word on them."""
    delivery_limit: int = 5
    applications: int = 0
    """Transactional clients that write to each topic, beside the producers."""
    abort_share: float = 0.3
    """Of their transactions."""
    work_ms: int = 80
    """How long a member needs for what it has got, at most, unless it is late."""
    records_max: int = 10
    """That a member asks for at once."""
    exact: bool = False
    """It wants not a record more; else whole batches."""
    explicit_share: float = 0.5
    """Of acknowledgements that are requests of their own; the others come with the next fetch."""
    release_share: float = 0.1
    reject_share: float = 0.05
    renew_share: float = 0.05
    """Of portions whose locks are renewed."""
    late_share: float = 0.05
    """Of portions that are spoken of when their locks have expired."""
    silent_share: float = 0.05
    """Of portions that are never spoken of."""
    churn: tuple[str, ...] = ("leave", "die", "pause")
    churn_pause_ms: tuple[int, int] = (400, 4_000)
    away_ms: tuple[int, int] = (50, 4_000)
