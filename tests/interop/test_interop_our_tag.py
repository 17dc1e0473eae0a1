"""What stands in a tag of our own (966): Apache Kafka's readers pass over it and miss nothing else.

The epoch of the last unclean election, the age of metadata without a quorum, and the offset of a forwarded change.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tanist.wire.codec import encoder
from tanist.wire.messages.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse
from tanist.wire.messages.describe_topic_partitions_response import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from tanist.wire.messages.envelope_response import EnvelopeResponse
from tanist.wire.metadata import PartitionRecord
from tests.interop import apache

pytestmark = pytest.mark.interop

READER = """
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import org.apache.kafka.common.message.DescribeClusterResponseData;
import org.apache.kafka.common.message.DescribeTopicPartitionsResponseData;
import org.apache.kafka.common.message.EnvelopeResponseData;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;

public class Reader {
    public static void main(String[] arguments) throws Exception {
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            String[] parts = line.split(" ");
            Message message = switch (parts[0]) {
                case "record" -> new PartitionRecord();
                case "cluster" -> new DescribeClusterResponseData();
                case "envelope" -> new EnvelopeResponseData();
                default -> new DescribeTopicPartitionsResponseData();
            };
            ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(parts[2]));
            message.read(new ByteBufferAccessor(bytes), Short.parseShort(parts[1]));
            System.out.println(bytes.remaining() + " bytes left of " + message);
        }
    }
}
"""

RECORD = PartitionRecord(
    partition_id=3,
    topic_id=UUID(int=5),
    replicas=(1, 2, 3),
    isr=(1,),
    leader=1,
    leader_epoch=8,
    partition_epoch=21,
    directories=(UUID(int=1001), UUID(int=1002), UUID(int=1003)),
    eligible_leader_replicas=(2,),
    last_known_elr=(3,),
)
PARTITION = DescribeTopicPartitionsResponsePartition(
    partition_index=3,
    leader_id=1,
    leader_epoch=8,
    replica_nodes=(1, 2, 3),
    isr_nodes=(1,),
    eligible_leader_replicas=(2,),
    last_known_elr=(3,),
    offline_replicas=(2,),
)
CLUSTER = DescribeClusterResponse(cluster_id="c", controller_id=1, brokers=(DescribeClusterBroker(broker_id=1),))


def answer(partition: DescribeTopicPartitionsResponsePartition) -> DescribeTopicPartitionsResponse:
    topic = DescribeTopicPartitionsResponseTopic(name="t", partitions=(partition, partition))
    return DescribeTopicPartitionsResponse(topics=(topic, topic))


def test_apache_kafka_reads_the_same_with_and_without_it(java: None, tmp_path: Path) -> None:
    reported: list[tuple[str, int, Any]] = []
    for epoch in (-1, 7):
        reported += [("record", version, replace(RECORD, last_unclean_epoch=epoch)) for version in (0, 1, 2)]
        of_ours = replace(CLUSTER, metadata_age_ms=epoch)
        reported += [("cluster", version, of_ours) for version in (0, 1, 2)]
        reported.append(("envelope", 0, EnvelopeResponse(error_code=41, committed_offset=epoch)))
        reported.append(("answer", 0, answer(replace(PARTITION, last_unclean_epoch=epoch))))
    encoded = [(kind, version, bytes(encoder(type(message), version)(message))) for kind, version, message in reported]
    half = len(encoded) // 2
    assert all(plain[2] != tagged[2] for plain, tagged in zip(encoded[:half], encoded[half:], strict=True))
    lines = tmp_path / "lines"
    lines.write_text("".join(f"{kind} {version} {data.hex()}\n" for kind, version, data in encoded))
    source = tmp_path / "Reader.java"
    source.write_text(READER)
    seen = apache.tool(str(source), str(lines)).stdout.splitlines()
    assert len(seen) == len(encoded)
    assert all(line.startswith("0 bytes left") for line in seen)
    assert seen[:half] == seen[half:]
    assert "eligibleLeaderReplicas=[2]" in seen[-1]
