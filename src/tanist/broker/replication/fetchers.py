"""The fetchers of a broker: which partition is fetched from which leader, and where that is.

A fetcher is made with the first partition that follows its leader, and ends with the last.
"""

from __future__ import annotations

from tanist.broker.context import NodeContext
from tanist.broker.metadata.lifecycle import Lifecycle
from tanist.broker.metadata.view import MetadataView
from tanist.broker.replication.fetcher import Fetcher, FetcherTurn
from tanist.broker.replication.fetcher_session import Key
from tanist.broker.replication.hosted_partition import HostedPartition
from tanist.broker.replication.quotas import Quota
from tanist.broker.replication.replica_effects import ReplicaEffects


class Fetchers:
    """One fetcher for each leader that this broker follows."""

    def __init__(
        self,
        context: NodeContext,
        metadata: MetadataView,
        lifecycle: Lifecycle,
        effects: ReplicaEffects,
        turn: FetcherTurn,
        quota: Quota,
    ) -> None:
        self._context = context
        self._quota = quota
        self._metadata = metadata
        self._lifecycle = lifecycle
        self._effects = effects
        self._turn = turn
        self._by_leader: dict[int, Fetcher] = {}
        self._leader_of: dict[Key, int] = {}

    @property
    def requests_under_way(self) -> int:
        """To the one leader to which there are most."""
        return max((fetcher.requests_under_way for fetcher in self._by_leader.values()), default=0)

    def follow(self, hosted: HostedPartition, leader_id: int) -> None:
        """Fetch `hosted` from `leader_id`; nobody to fetch from: stop fetching it."""
        key = (hosted.topic_id, hosted.index)
        before = self._leader_of.get(key)
        if before is not None and before != leader_id:
            self.stop(hosted)
        endpoint = self._metadata.inter_broker_endpoint(leader_id)
        if endpoint is None:
            self.stop(hosted)
            return
        fetcher = self._by_leader.get(leader_id)
        if fetcher is not None and (fetcher.host, fetcher.port) != endpoint:
            # The leader came back elsewhere: what followed it moves over.
            moved = fetcher.partitions
            fetcher.close()
            fetcher = self._by_leader[leader_id] = self._fetcher(leader_id, endpoint)
            for other in moved:
                if other is not hosted:
                    fetcher.add(other)
        if fetcher is None:
            fetcher = self._by_leader[leader_id] = self._fetcher(leader_id, endpoint)
        self._leader_of[key] = leader_id
        fetcher.add(hosted)

    def _fetcher(self, leader_id: int, endpoint: tuple[str, int]) -> Fetcher:
        return Fetcher(self._context, self._lifecycle, self._effects, self._turn, self._quota, leader_id, *endpoint)

    def stop(self, hosted: HostedPartition) -> None:
        """Stop fetching a partition; a fetcher without work goes."""
        leader_id = self._leader_of.pop((hosted.topic_id, hosted.index), None)
        if leader_id is None:
            return
        fetcher = self._by_leader[leader_id]
        fetcher.remove(hosted)
        if not fetcher.partitions:
            fetcher.close()
            del self._by_leader[leader_id]

    def resume(self, hosted: HostedPartition) -> None:
        """A partition that did not want to be fetched may want to now."""
        leader_id = self._leader_of.get((hosted.topic_id, hosted.index))
        if leader_id is not None:
            self._by_leader[leader_id].wake(hosted)

    def moved(self, hosted: HostedPartition) -> None:
        """A follower's log begins elsewhere by its own doing: its leader is to hear of that some time."""
        leader_id = self._leader_of.get((hosted.topic_id, hosted.index))
        if leader_id is not None:
            self._by_leader[leader_id].moved(hosted)

    def endpoints_changed(self) -> None:
        """Brokers have registered anew: fetchers that point elsewhere follow them."""
        for leader_id, fetcher in list(self._by_leader.items()):
            endpoint = self._metadata.inter_broker_endpoint(leader_id)
            if endpoint is not None and endpoint != (fetcher.host, fetcher.port):
                for hosted in fetcher.partitions:
                    self.follow(hosted, leader_id)

    def close(self) -> None:
        for fetcher in self._by_leader.values():
            fetcher.close()
        self._by_leader.clear()
        self._leader_of.clear()
