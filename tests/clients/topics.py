"""Topics for the tests in which making them is not what is tested."""

from __future__ import annotations

from tests.interop.cluster import Cluster, wait_in_sync

TIMEOUT_S = 30.0


def create_topics(cluster: Cluster, *names: str, partitions: int) -> None:
    """With three replicas each; every broker knows them, and all replicas are in sync."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for future in admin.create_topics([NewTopic(name, partitions, 3) for name in names]).values():
        future.result(TIMEOUT_S)
    for name in names:
        wait_in_sync(cluster, name)
