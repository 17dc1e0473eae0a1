"""Plays sequences of requests to both nodes, counts what was asked, and shortens what differs."""

from __future__ import annotations

import time
from collections import Counter

from tanist.wire.apis import request_class
from tanist.wire.messages.api_versions_request import ApiVersionsRequest
from tanist.wire.messages.api_versions_response import ApiVersionsResponse
from tests.interop.pair import Asker, Pair
from tests.interop.requests.drawing import WEIGHTS
from tests.interop.requests.sequence import Counts, Difference, Step, play

PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


def common_versions(nodes: Pair) -> dict[int, tuple[int, int]]:
    """By key, the versions that both serve. (Both say Produce 0 to 2 for old librdkafka's sake, and refuse them.)"""
    tables = []
    for address in (nodes.apache, nodes.tanist):
        with Asker(address) as asker:
            answer = asker.ask(
                ApiVersionsRequest(client_software_name="t", client_software_version="1"), 3, ApiVersionsResponse
            )
        tables.append({each.api_key: (each.min_version, each.max_version) for each in answer.api_keys})
    tables.append({key: request_class(key).VERSIONS for key in WEIGHTS})
    return {
        key: (max(each[key][0] for each in tables), min(each[key][1] for each in tables))
        for key in WEIGHTS
        if all(key in each for each in tables)
    }


class Player:
    def __init__(self, nodes: Pair) -> None:
        self._sides = nodes.apache, nodes.tanist
        self.versions = common_versions(nodes)
        self.counts = Counts(Counter(), Counter(), Counter())

    def play(self, steps: list[Step], *, to_the_end: bool = False) -> list[Difference]:
        prefix = f"s{time.time_ns():x}-"
        return play(self._sides, prefix, steps, self.counts, to_the_end=to_the_end)

    def shortened(self, steps: list[Step], wanted: Difference) -> list[Step] | None:
        """The fewest steps with this difference; None if it does not come again."""

        def differs(tried: list[Step]) -> bool:
            found = self.play(tried)
            return bool(found) and found[-1].shape == wanted.shape and found[-1].reason is None

        steps = steps[: wanted.step + 1]
        if not differs(steps):
            return None
        for number in range(len(steps) - 2, -1, -1):
            tried = steps[:number] + steps[number + 1 :]
            if differs(tried):
                steps = tried
        return steps
