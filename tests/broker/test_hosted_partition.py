"""What waits for a partition's high watermark is answered in order, and that never goes back under one leader."""

from __future__ import annotations

from typing import Any

import pytest

from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.invariants import InvariantError
from tanist.replica.leader import LeaderState
from tests.broker.turn_rig import Bench
from tests.replica.replica_alone import Alone


class Waiter:
    def __init__(self) -> None:
        self.done = False
        self.completed: list[tuple[int, int]] = []

    def complete(self, ticket: int, error: int) -> None:
        self.completed.append((ticket, error))


def led(high_watermark: int) -> tuple[HostedPartition, LeaderState]:
    hosted = Bench().host("t")
    alone = Alone(isr=(1,), leo=high_watermark)
    hosted.replica = alone.partition
    hosted.take_role()
    assert hosted.leader is alone.leader
    return hosted, alone.leader


def test_a_retry_is_acknowledged_before_what_came_since() -> None:
    hosted, _ = led(10)
    waiter = Waiter()
    for ticket, offset in enumerate((5, 9, 7, 11)):
        hosted.wait_for_high_watermark(offset, waiter, ticket)
    hosted.high_watermark_advanced()
    assert waiter.completed == [(0, 0), (2, 0), (1, 0)]


def test_acknowledgements_out_of_order_raise() -> None:
    hosted, _ = led(10)
    waiter: Any = Waiter()
    hosted.ack_waiters.extend([(7, waiter, 0), (5, waiter, 1)])
    with pytest.raises(InvariantError, match=r"in the order of offsets \(required_offset=5, before=7\)"):
        hosted.high_watermark_advanced()
    assert waiter.completed == [(0, 0)]


def test_a_leaders_high_watermark_that_goes_back_raises() -> None:
    hosted, leader = led(10)
    hosted.high_watermark_advanced()
    leader.high_watermark = 9
    with pytest.raises(InvariantError, match=r"never goes back \(high_watermark=9, before=10\)"):
        hosted.high_watermark_advanced()


def test_the_next_leadership_may_begin_lower() -> None:
    """A new leader's high watermark is a fetch behind its predecessor's."""
    hosted, _ = led(10)
    hosted.high_watermark_advanced()
    hosted.replica = Alone(isr=(1,), leo=8).partition
    hosted.take_role()
    hosted.high_watermark_advanced()
    assert hosted.shown_high_watermark == 8
