"""Inquirers in the virtual world: each asks one broker what there is, again and again, from the moment it starts.

They are the operators and tools that list topics, brokers, groups and transactional ids, and believe the answer. What
they hear goes to a witness, together with what it noted when they asked.
"""

from __future__ import annotations

from itertools import cycle
from typing import Any, Protocol

from tanist.sim.workload.clients import SimClient
from tanist.sim.workload.cluster_client import REQUEST_TIMEOUT_MS
from tanist.sim.workload.history import History
from tanist.sim.world.world import BROKER_PORT, World
from tanist.wire.messages.describe_cluster_request import DescribeClusterRequest
from tanist.wire.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from tanist.wire.messages.list_groups_request import ListGroupsRequest
from tanist.wire.messages.list_transactions_request import ListTransactionsRequest
from tanist.wire.messages.metadata_request import MetadataRequest
from tanist.wire.schema import Request

_QUESTIONS: tuple[tuple[Request, int], ...] = (
    (MetadataRequest(topics=None), 12),
    (ListGroupsRequest(), 5),
    (DescribeTopicPartitionsRequest(), 0),
    (ListTransactionsRequest(), 1),
    (DescribeClusterRequest(include_fenced_brokers=True), 2),
)
"""And their versions. None of them names anything: the answer is to name all."""
_REFUSED_MS = 5
"""The pause of one that is turned away: it is to be there when the broker says its first word."""


class Witness(Protocol):
    """Gets the answers."""

    def asks(self, broker_id: int) -> object:
        """A broker is about to be asked. What is given back comes along with the answer."""

    def check_answer(self, broker_id: int, asked: object, answer: Any) -> None:
        """The answer to a request of an inquirer."""


class Inquirer(SimClient):
    """Asks one broker."""

    def __init__(
        self, world: World, name: str, history: History, broker_id: int, witness: Witness, *, pause_ms: int
    ) -> None:
        super().__init__(world, name, history)
        self._broker_id = broker_id
        self._address = (world.hosts[broker_id].name, BROKER_PORT)
        self._witness = witness
        self._pause_ms = pause_ms
        self._questions = cycle(_QUESTIONS)

    def start(self) -> None:
        self.run(self._ask)

    def _ask(self) -> None:
        if self.stopped:
            return
        request, version = next(self._questions)
        asked = self._witness.asks(self._broker_id)

        def handle_response(answer: Any) -> None:
            if answer is None:
                self.later(_REFUSED_MS, self._ask)
                return
            self._witness.check_answer(self._broker_id, asked, answer)
            self.later(self._pause_ms, self._ask)

        self.channel(self._address).call(request, version, REQUEST_TIMEOUT_MS, handle_response)
