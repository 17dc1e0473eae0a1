"""The change of a partition in words, how much it weighs on the time line, and whether it is for the worse."""

from __future__ import annotations

from tanist.controller.image.partition_state import PartitionState


def weight_of(before: PartitionState | None, after: PartitionState) -> int:
    led = before is None or before.leader != after.leader
    unclean = after.last_unclean_epoch == after.leader_epoch and led
    return 2 if unclean or after.leader < 0 or (led and before is not None) else 1


def is_worse(before: PartitionState | None, after: PartitionState) -> bool | None:
    """Whether the partition is worse off than before; False: it is better off; None: neither."""
    if before is None:
        return None
    if after.last_unclean_epoch != before.last_unclean_epoch:
        return True
    for old, new in (
        (before.leader >= 0, after.leader >= 0),
        (len(before.isr), len(after.isr)),
        (not before.recovering, not after.recovering),
    ):
        if old != new:
            return new < old
    return None


def change_text(before: PartitionState | None, after: PartitionState) -> str:
    """What is different, in the order in which one looks for it."""
    if before is None:
        return f"leader {_broker(after.leader)}, ISR {_set(after.isr)}"
    said = []
    if before.leader != after.leader:
        said.append(f"leader {_broker(before.leader)} → {_broker(after.leader)} in epoch {after.leader_epoch}")
    if after.last_unclean_epoch != before.last_unclean_epoch:
        said.append("unclean election")
    for name, old, new in (
        ("ISR", before.isr, after.isr),
        ("ELR", before.elr, after.elr),
        ("LastKnownElr", before.last_known_elr, after.last_known_elr),
        ("replicas", before.replicas, after.replicas),
    ):
        if set(old) != set(new):
            said.append(f"{name} {_set(old)} → {_set(new)}")
    if before.recovering != after.recovering:
        said.append("recovering" if after.recovering else "recovered")
    if not said and before.leader_epoch != after.leader_epoch:
        said.append(f"leader epoch {after.leader_epoch}")
    return ", ".join(said) or "nothing that shows"


def _broker(broker: int) -> str:
    return "none" if broker < 0 else str(broker)


def _set(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers)) or "∅"
