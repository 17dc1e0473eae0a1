"""A few fresh sequences of random requests, answered by a node of Apache Kafka and by ours (`requests/__main__.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from random import SystemRandom
from typing import Any

import pytest

from tanist.wire.batch import NewRecord
from tanist.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from tanist.wire.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.interop.apache import VERSION
from tests.interop.pair import pair
from tests.interop.requests import sequence
from tests.interop.requests.batches import Batch
from tests.interop.requests.player import PROPERTIES, Player
from tests.interop.requests.sequence import drawn, shown
from tests.interop.requests.symbols import Symbol

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("java")]

SEQUENCES = 8
STEPS = 40


@pytest.fixture(scope="module")
def player(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Player]:
    with pair(tmp_path_factory.mktemp("requests"), PROPERTIES) as nodes:
        yield Player(nodes)


@pytest.mark.parametrize("number", range(SEQUENCES))
def test_random_requests_are_answered_alike(player: Player, number: int) -> None:
    seed = SystemRandom().randrange(1 << 40)
    steps = drawn(seed, STEPS, player.versions)
    strange = [each for each in player.play(steps) if each.reason is None]
    if not strange:
        return
    short = player.shortened(steps, strange[-1])
    again = f"TANIST_KAFKA_VERSION={VERSION} python -m tests.interop.requests --seeds {seed} --steps {STEPS}"
    pytest.fail(f"{again}\n{strange[-1]}\n{shown(short) if short else 'it did not come again'}", pytrace=False)


def test_a_difference_is_seen_and_shortened(player: Player, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours refuses what a transaction sends with acks=1: meant, and a difference like any other without its reason."""
    records = Batch((NewRecord(-1, None, b"v"),), -1, -1, -1, transactional=False, damage="none")
    topic, transaction = _name("t0"), _name("x0")
    topics = (TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=_any(records)),)),)
    produce = ProduceRequest(transactional_id=transaction, acks=1, timeout_ms=20_000, topic_data=topics)
    asked = MetadataRequest(topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False)
    steps = [(asked, 9), (produce, 9), (asked, 9)]
    assert [each.reason for each in player.play(steps)] == ["A transaction needs acks=all"]
    monkeypatch.setattr(sequence, "KNOWN", {})
    (found,) = player.play(steps)
    assert (found.step, found.reason) == (1, None)
    assert player.shortened(steps, found) == [(produce, 9)]


def _name(of: str) -> Any:
    return Symbol("name", of)


def _any(drawn: object) -> Any:
    """What is drawn stands where a message has its own type."""
    return drawn
