"""The same load under the same quotas on Apache Kafka and here: clients have to wait as long."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tanist.wire.frames import decode_response, encode_request
from tanist.wire.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from tanist.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from tanist.wire.messages.delete_topics_request import DeleteTopicsRequest
from tanist.wire.messages.metadata_request import MetadataRequest
from tanist.wire.schema import Request
from tests.broker.quota_answers import CONNECTIONS, FETCH, MUTATIONS, PRODUCE, REQUESTS, alter
from tests.broker.throttle_rig import fetch_request, produce_request
from tests.interop.pair import Pair, pair
from tests.interop.raw import RawClient
from tests.interop.waiting import wait_for

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("java")]

Entity = dict[str, "str | None"]
BOUND = 10_000.0
"""Bytes a second. Bursts come to pauses of ten seconds and more, of which the machine's own time is a small part."""
SIDES = ("apache", "tanist")
_numbers = itertools.count(1)


class Side:
    """One of the two nodes. Each request has a connection of its own, so that none waits for another's pause."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self.new_topic("t")

    def new_topic(self, name: str) -> None:
        self.ask("admin", CreateTopicsRequest(topics=(_topic(name, 1),), timeout_ms=10_000), 7)

        def is_led() -> bool:
            answer = self.ask("admin", fetch_request(0, topic=name), 12)
            return bool(answer.responses[0].partitions[0].error_code == 0)

        wait_for(is_led, "the topic has a leader")

    def ask(self, client_id: str, request: Request, version: int) -> Any:
        client = RawClient(*self._address, timeout_s=30.0)
        try:
            frame = client.exchange(encode_request(request, version, 1, client_id))
        finally:
            client.close()
        return decode_response(request.API_KEY, version, frame)

    def set(self, *quotas: tuple[Entity, dict[str, float | None]]) -> None:
        """Once they are in force: that of a client of its own, set with them, shows."""
        probe = f"probe-{next(_numbers)}"
        of_probe: Entity = {"user": "ANONYMOUS", "client-id": probe}  # it comes before all others
        answer = self.ask("admin", alter((of_probe, {PRODUCE: 1.0}), *quotas), 1)
        assert [each.error_message for each in answer.entries] == [None] * (len(quotas) + 1)
        wait_for(lambda: self.produce(probe, 100) > 0, "the quotas are in force")
        self.ask("admin", alter((of_probe, {PRODUCE: None})), 1)

    def produce(self, client_id: str, value_bytes: int) -> int:
        throttle_ms: int = self.ask(client_id, produce_request(value_bytes), 9).throttle_time_ms
        return throttle_ms

    def fetch(self, client_id: str, topic: str = "t") -> tuple[int, bool]:
        """The pause, and whether there were records."""
        answer = self.ask(client_id, fetch_request(0, topic=topic), 12)
        return answer.throttle_time_ms, any(part.records for topic in answer.responses for part in topic.partitions)


def _topic(name: str, partitions: int) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)


@pytest.fixture(scope="module")
def sides(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    folder: Path = tmp_path_factory.mktemp("throttles")
    both: Pair
    with pair(folder, {}) as both:
        yield Side(both.apache), Side(both.tanist)


def alike(apache: Sequence[int], tanist: Sequence[int]) -> None:
    """Pauses within a tenth of each other, and of none where there is none."""
    assert len(apache) == len(tanist)
    for theirs, ours in zip(apache, tanist, strict=True):
        assert abs(theirs - ours) <= 0.1 * max(theirs, ours), (apache, tanist)


PRODUCERS: dict[str, tuple[list[tuple[Entity, float]], float]] = {
    "a client id": ([({"client-id": "ID"}, BOUND)], BOUND),
    "all client ids": ([({"client-id": None}, BOUND)], BOUND),
    "a user": ([({"user": "ANONYMOUS"}, BOUND), ({"client-id": "ID"}, 1.0)], BOUND),
    "all users": ([({"user": None}, BOUND), ({"client-id": "ID"}, 1.0)], BOUND),
    "a user with a client id": (
        [({"user": "ANONYMOUS", "client-id": "ID"}, BOUND), ({"user": "ANONYMOUS"}, 1.0), ({"client-id": None}, 2.0)],
        BOUND,
    ),
    "a user with all client ids": (
        [({"user": "ANONYMOUS", "client-id": None}, BOUND), ({"user": "ANONYMOUS"}, 1.0)],
        BOUND,
    ),
    "all users with a client id": ([({"user": None, "client-id": "ID"}, BOUND), ({"client-id": "ID"}, 1.0)], BOUND),
    "another client id": ([({"client-id": "another"}, 1.0)], 0.0),
}


@pytest.mark.parametrize("whose", PRODUCERS)
def test_producers(sides: tuple[Side, Side], whose: str) -> None:
    entities, bound = PRODUCERS[whose]
    client_id = f"producer-{next(_numbers)}"
    quotas = [
        ({kind: client_id if name == "ID" else name for kind, name in entity.items()}, value)
        for entity, value in entities
    ]
    found: list[list[int]] = []
    given: list[tuple[Entity, dict[str, float | None]]] = [(entity, {PRODUCE: value}) for entity, value in quotas]
    taken: list[tuple[Entity, dict[str, float | None]]] = [(entity, {PRODUCE: None}) for entity, _ in quotas]
    for side in sides:
        side.set(*given)
        found.append([side.produce(client_id, size) for size in (90_000, 150_000, 100_000)])
        side.set(*taken)
    alike(*found)
    if not bound:
        assert found[1] == [0, 0, 0]
        return
    # 24 s of it, and ten are free; those of a user's other client ids may have been used up.
    assert found[1][1] > 12_000
    assert found[1][2] > 22_000
    assert found[1][0] == 0 or whose in ("a user", "all users")


def test_consumers(sides: tuple[Side, Side]) -> None:
    client_id = f"consumer-{next(_numbers)}"
    found: list[list[int]] = []
    for side in sides:
        side.new_topic("read")
        side.ask("admin", produce_request(90_000, topic="read"), 9)
        side.set(({"client-id": client_id}, {FETCH: BOUND}))
        fetched = [side.fetch(client_id, "read") for _ in range(3)]
        assert [records for _, records in fetched] == [True, False, False]
        found.append([pause for pause, _ in fetched])
    alike(*found)
    assert found[1][0] == 0
    assert found[1][1] > 5_000


@pytest.mark.parametrize(("version", "strict"), [(4, False), (7, True)])
def test_new_topics(sides: tuple[Side, Side], version: int, strict: bool) -> None:
    client_id = f"creator-{next(_numbers)}"
    pauses: list[list[int]] = []
    errors: list[list[int]] = []
    for side in sides:
        side.set(({"client-id": client_id}, {MUTATIONS: 0.1}))
        answers = [
            side.ask(
                client_id, CreateTopicsRequest(topics=(_topic(f"{client_id}-{number}", 3),), timeout_ms=9_000), version
            )
            for number in range(3)
        ]
        pauses.append([answer.throttle_time_ms for answer in answers])
        errors.append([topic.error_code for answer in answers for topic in answer.topics])
    alike(*pauses)
    assert errors[0] == errors[1] == ([0, 89, 89] if strict else [0, 0, 0])
    assert bool(pauses[1][0]) is not strict
    assert pauses[1][1] > 15_000


def test_fewer_topics_and_more_partitions(sides: tuple[Side, Side]) -> None:
    client_id = f"deleter-{next(_numbers)}"
    names = [f"{client_id}-{number}" for number in range(3)]
    pauses: list[list[int]] = []
    errors: list[list[int]] = []
    for side in sides:
        created = side.ask("admin", CreateTopicsRequest(topics=tuple(_topic(n, 3) for n in names), timeout_ms=9_000), 7)
        assert {topic.error_code for topic in created.topics} == {0}
        side.set(({"client-id": client_id}, {MUTATIONS: 0.1}))
        more = tuple(CreatePartitionsTopic(name=name, count=6, assignments=None) for name in names[:2])
        grown = side.ask(client_id, CreatePartitionsRequest(topics=more, timeout_ms=9_000), 3)
        gone = side.ask(client_id, DeleteTopicsRequest(topic_names=tuple(names), timeout_ms=9_000), 5)
        old = side.ask(client_id, DeleteTopicsRequest(topic_names=(names[2],), timeout_ms=9_000), 4)
        pauses.append([grown.throttle_time_ms, gone.throttle_time_ms, old.throttle_time_ms])
        errors.append(
            [*sorted(each.error_code for each in grown.results), *(each.error_code for each in gone.responses)]
            + [each.error_code for each in old.responses]
        )
    alike(*pauses)
    assert errors[0] == errors[1] == [0, 89, 89, 89, 89, 0]


def test_time(sides: tuple[Side, Side]) -> None:
    """How much time a request takes is each program's own matter; a pause for it is a second at most."""
    client_id = f"busy-{next(_numbers)}"
    found: list[list[int]] = []
    for side in sides:
        side.set(({"client-id": client_id}, {REQUESTS: 1e-5}))
        asked = side.ask(client_id, MetadataRequest(topics=None), 9).throttle_time_ms
        found.append([asked, side.produce(client_id, 10), side.fetch(client_id)[0]])
    assert found == [[1_000] * 3] * 2


def test_an_address_that_connects_too_often(sides: tuple[Side, Side]) -> None:
    """The connections of this test are among those that are counted: both sides close what comes too fast."""
    for side in sides:
        side.set(({"ip": "127.0.0.1"}, {CONNECTIONS: 3.0}))
        outcomes = []
        for _ in range(60):
            try:
                side.ask("admin", MetadataRequest(topics=None), 9)
                outcomes.append(True)
            except OSError:
                outcomes.append(False)
                break
        assert outcomes[-1] is False
        assert 20 < len(outcomes) <= 50
