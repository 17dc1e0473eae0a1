"""Topic configs as a log reads them."""

from __future__ import annotations

import pytest

from tanist.log.config import LogConfig


def test_kafkas_defaults() -> None:
    config = LogConfig()
    assert config.segment_bytes == 1073741824
    assert config.segment_ms == config.retention_ms == 604800000
    assert config.segment_index_bytes == 10485760
    assert config.max_message_bytes == 1048588
    assert config.message_timestamp_after_max_ms == 3600000
    assert config.message_timestamp_before_max_ms == config.flush_messages == 9223372036854775807
    assert config.file_delete_delay_ms == 60000
    assert config.deletes
    assert not config.compacts
    assert not config.log_append_time


def test_from_topic_configs() -> None:
    config = LogConfig.from_topic_configs(
        {
            "segment.bytes": "4096",
            "cleanup.policy": "compact, delete",
            "message.timestamp.type": "LogAppendTime",
            "min.cleanable.dirty.ratio": "0.25",
            "preallocate": "TRUE",
            "unclean.leader.election.enable": "false",
            "retention.ms": "-1",
            "somebody.elses": "whatever",
        }
    )
    assert config.segment_bytes == 4096
    assert config.compacts
    assert config.deletes
    assert config.log_append_time
    assert config.min_cleanable_dirty_ratio == 0.25
    assert config.preallocate
    assert not config.unclean_leader_election_enable
    assert config.retention_ms == -1


@pytest.mark.parametrize(
    ("name", "text"),
    [("segment.bytes", "1k"), ("preallocate", "yes"), ("retention.ms", ""), ("compression.type", "rar")],
)
def test_a_value_that_cannot_be_read_names_its_config(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=name):
        LogConfig.from_topic_configs({name: text})
