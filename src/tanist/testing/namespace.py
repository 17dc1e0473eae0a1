"""`Kafka`: a cluster as one test sees it, with names of its own, and everything as before when the test is over.

Owns what is undone after a test: faults end, nodes that are down start, topics and groups that were made are deleted. A
failed test's topics stay in the data folder, as evidence; no other test has their names.
"""

from __future__ import annotations

import uuid
from contextlib import suppress

from tanist.runtime.client import groups as client_groups
from tanist.runtime.client.client import KafkaError, Unreachable, Unsupported
from tanist.testing.cluster import Cluster
from tanist.testing.errors import ClusterError
from tanist.testing.history import Event
from tanist.testing.operations import Operations

_CLEAN_UP_S = 5.0
_SETTLE_S = 20.0


class Kafka(Operations):
    """A cluster, and a namespace in it."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster.backend)
        self.cluster = cluster
        self._suffix = uuid.uuid4().hex[:6]
        self._names: list[str] = []
        self._groups: list[str] = []
        self._own = cluster.backend.local is not None
        self._topics_before = frozenset(self.topics())
        self._groups_before = frozenset(self._all_groups()) if self._own else frozenset()
        self._did_before = len(cluster.backend.did)

    def topic(self, name: str) -> str:
        """A topic's name that no other test has; the same for the same `name`. `create_topic` creates it."""
        return self._named(name, self._names)

    def group(self, name: str) -> str:
        """A group's name that no other test has; the same for the same `name`."""
        return self._named(name, self._groups)

    @property
    def own_topics(self) -> list[str]:
        """The topics that were made in this test."""
        made = [name for name in self.topics() if name not in self._topics_before]
        return made if self._own else [name for name in made if name in self._names]

    @property
    def named_topics(self) -> list[str]:
        """The names that `topic` has given."""
        return list(self._names)

    @property
    def did(self) -> list[Event]:
        """What this test has done to the cluster."""
        return self._backend.did[self._did_before :]

    def clean_up(self, *, failed: bool = False) -> None:
        """Undo what the test did. Where a cluster of our own cannot be mended, it is emptied and starts anew."""
        try:
            self._mend()
            if not failed:
                self._delete_all()
        except (ClusterError, TimeoutError):
            if not self._own:
                raise
            with suppress(ClusterError):
                self.heal()
            if failed:
                raise
            self.cluster.reset()
            if self.down:
                self.start()
        finally:
            del self._backend.did[self._did_before :]

    # -- inner

    def _named(self, name: str, names: list[str]) -> str:
        found = f"{name}-{self._suffix}"
        if found not in names:
            names.append(found)
        return found

    def _mend(self) -> None:
        if not self._own:
            return
        if self.faults():
            self.heal()
            self.start()
            self._wait_for_brokers()

    def _wait_for_brokers(self) -> None:
        """The next test begins with brokers that all others know."""

        def all_there() -> bool:
            try:
                with self._client() as client:
                    client.timeout_s = 2.0
                    return set(client.metadata(()).brokers) == set(self.brokers)
            except (Unreachable, KafkaError):
                return False

        self.wait_until(all_there, timeout=_SETTLE_S)

    def _delete_all(self) -> None:
        for name in self.own_topics:
            self.delete_topic(name)
        made = [group for group in self._all_groups() if group not in self._groups_before]
        ours = made if self._own else [group for group in made if group in self._groups]
        if ours:
            with self._client() as client:
                client.timeout_s = _CLEAN_UP_S
                client_groups.delete_groups(client, ours)  # one with members goes when its session ends

    def _all_groups(self) -> list[str]:
        try:
            with self._client() as client:
                client.timeout_s = _CLEAN_UP_S
                return [listing.group for listing in client_groups.list_groups(client)]
        except (KafkaError, Unreachable, Unsupported):
            return []
