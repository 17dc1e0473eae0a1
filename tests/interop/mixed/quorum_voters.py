"""The committed voters of a quorum, as any controller describes them on its own listener: ids and directory ids."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from tanist.runtime.client.client import BrokerConnection
from tanist.wire.errors import ErrorCode, WireError
from tanist.wire.ids import METADATA_TOPIC
from tanist.wire.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from tanist.wire.messages.describe_quorum_response import DescribeQuorumResponse

_TIMEOUT_S = 5.0


def described_voters(controllers: Iterable[tuple[str, int]]) -> tuple[int, dict[int, UUID]] | None:
    """The leader, and its voters' directories. None: no controller that answers leads, or the end of its log is not
    committed. DescribeQuorum names the voters of the last record, which may be gone with a leader that is killed.
    """
    topic = TopicData(topic_name=METADATA_TOPIC, partitions=(PartitionData(partition_index=0),))
    for address in controllers:
        try:
            connection = BrokerConnection(address, "voters", _TIMEOUT_S)
        except (OSError, WireError):
            continue
        try:
            answer = connection.ask(DescribeQuorumRequest(topics=(topic,)), _TIMEOUT_S)
        except (OSError, WireError):
            continue
        finally:
            connection.close()
        assert isinstance(answer, DescribeQuorumResponse)
        for found in answer.topics:
            for part in found.partitions:
                if part.error_code == ErrorCode.NONE:
                    replicas = (*part.current_voters, *part.observers)
                    ends = [each.log_end_offset for each in replicas if each.replica_id == part.leader_id]
                    if part.high_watermark < max(ends, default=0):
                        return None
                    return part.leader_id, {each.replica_id: each.replica_directory_id for each in part.current_voters}
    return None
