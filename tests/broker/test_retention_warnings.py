"""What a broker says of retention: nothing, unless a record keeps it from its work."""

from __future__ import annotations

from tests.broker.cluster_rig import Cluster


def test_a_record_of_the_future_is_reported_once_and_not_at_each_run() -> None:
    """`retention.ms` would wait in silence for years, and the disk fill up."""
    settings = {"log.retention.check.interval.ms": "1000", "log.message.timestamp.after.max.ms": str(2**60)}
    cluster = Cluster(nodes=1, config=settings)
    cluster.create_topic("t", factor=1, config={"retention.ms": "2000", "segment.ms": "1000"})
    future = cluster.client.clock.wall_ms() + 10 * 365 * 86_400_000
    assert cluster.produce("t", [b"from the future"], timestamp=future).error_code == 0
    cluster.run(2_000)
    assert cluster.produce("t", [b"now"]).error_code == 0
    cluster.until(lambda: any("t-0: the segment of offset 0 has a record of 2033-" in line for line in cluster.log))
    cluster.run(20_000)
    said = [line for line in cluster.log if "which is to come" in line]
    assert len(said) == 1
    assert "WARN" in said[0]
    assert cluster.values("t") == [b"from the future", b"now"]
