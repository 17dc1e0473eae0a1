"""Leader elections of any Kafka cluster, asked for through `Client` (ElectLeaders, key 43).

Owns the limit of partitions in one request (KIP-966: "1000 partitions
per request ... others will be returned with REQUEST_LIMIT_REACHED"), and what an answer means for each partition. Which
replica is elected is the controller's decision.

A request whose answer is lost is sent again: the controller elects only where nobody leads (or another than the
preferred one), so what the first request did is ELECTION_NOT_NEEDED to the second. The result says then that it is so.

The types beyond Apache's two need version 3 of the request. A cluster that has less is detected before anything is
sent: an older version has no field for what is wanted, and would elect somebody else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tanist.client.admin import ElectionType
from tanist.runtime.client.changes import ask_once
from tanist.runtime.client.client import Client, KafkaError, Unanswered, Unsupported
from tanist.runtime.client.features import served_version
from tanist.wire.errors import ErrorCode
from tanist.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from tanist.wire.messages.elect_leaders_response import ElectLeadersResponse

PARTITIONS_PER_REQUEST = 1000


@dataclass(frozen=True, slots=True)
class Candidate:
    """A partition that is to have an election; `desired_leader` is for DESIGNATION, and needed there."""

    topic: str
    partition: int
    desired_leader: int | None = None

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class ElectionResult:
    """The result of one partition."""

    topic: str
    partition: int
    error_code: int
    message: str | None
    asked_again: bool = False
    """The answer to a request before this one was lost: it may have elected the leader that is there."""

    @property
    def elected(self) -> bool:
        return self.error_code == ErrorCode.NONE

    @property
    def needless(self) -> bool:
        """It has the leader that was wanted, or any where one was wanted."""
        return self.error_code == ErrorCode.ELECTION_NOT_NEEDED

    @property
    def failed(self) -> bool:
        return not self.elected and not self.needless


def elect(
    client: Client, election: ElectionType, candidates: Sequence[Candidate] | None, *, timeout_ms: int
) -> list[ElectionResult]:
    """Have leaders elected; `candidates` None: for all partitions, those that need none left out of the results.

    `Unsupported` if the cluster does not have the type. A cluster without any controller is asked again until
    `timeout_ms`, which is also how long the controller may take over one request.
    """
    if (known := served_version(client, ElectLeadersRequest)) < election.least_version:
        raise Unsupported(
            f"the brokers have ElectLeaders up to version {known}, and {election.name} elections need version "
            f"{election.least_version}"
        )
    if candidates is None:
        results = _ask(client, election, None, timeout_ms)
    else:
        results = []
        for start in range(0, len(candidates), PARTITIONS_PER_REQUEST):
            results += _ask(client, election, candidates[start : start + PARTITIONS_PER_REQUEST], timeout_ms)
    return sorted(
        _served(client, election, results, candidates or (), timeout_ms), key=lambda o: (o.topic, o.partition)
    )


def _served(
    client: Client,
    election: ElectionType,
    results: list[ElectionResult],
    candidates: Sequence[Candidate],
    timeout_ms: int,
) -> Iterator[ElectionResult]:
    """Ask again for what was over the limit of a request, as long as each answer has served some of it."""
    desired = {(each.topic, each.partition): each.desired_leader for each in candidates}
    while True:
        limited = [each for each in results if each.error_code == ErrorCode.REQUEST_LIMIT_REACHED]
        yield from (each for each in results if each.error_code != ErrorCode.REQUEST_LIMIT_REACHED)
        if len(limited) == len(results):
            yield from limited
            return
        again = [Candidate(o.topic, o.partition, desired.get((o.topic, o.partition))) for o in limited]
        results = []
        for start in range(0, len(again), PARTITIONS_PER_REQUEST):
            results += _ask(client, election, again[start : start + PARTITIONS_PER_REQUEST], timeout_ms)


def _ask(
    client: Client, election: ElectionType, candidates: Sequence[Candidate] | None, timeout_ms: int
) -> list[ElectionResult]:
    request = ElectLeadersRequest(
        election_type=election,
        topic_partitions=None if candidates is None else tuple(_by_topic(candidates)),
        timeout_ms=timeout_ms,
    )

    again = False

    def attempt() -> ElectLeadersResponse:
        nonlocal again
        try:
            answer = ask_once(client, request, ElectLeadersResponse, timeout_ms / 1000)
        except Unanswered:
            again = True
            raise
        if answer.error_code:
            raise KafkaError(answer.error_code)
        return answer

    answer = client.persist(attempt, timeout_s=timeout_ms / 1000)
    return [
        ElectionResult(topic.topic, found.partition_id, found.error_code, found.error_message, again)
        for topic in answer.replica_election_results
        for found in topic.partition_result
    ]


def _by_topic(candidates: Iterable[Candidate]) -> Iterator[TopicPartitions]:
    topics: dict[str, list[Candidate]] = {}
    for each in candidates:
        topics.setdefault(each.topic, []).append(each)
    for topic, partitions in topics.items():
        leaders = tuple(each.desired_leader for each in partitions if each.desired_leader is not None)
        yield TopicPartitions(
            topic=topic,
            partitions=tuple(each.partition for each in partitions),
            # One entry for each partition, by its place (KIP); null where nobody is designated.
            desired_leaders=leaders if len(leaders) == len(partitions) else None,
        )
