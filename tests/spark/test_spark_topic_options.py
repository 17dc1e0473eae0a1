from __future__ import annotations

from itertools import pairwise

import pytest

from tanist.client.positions import EARLIEST, LATEST
from tanist.spark import MetadataDataSource, SegmentsDataSource, TopicDataSource
from tanist.spark.segments import planning as segments_planning
from tanist.spark.sink.options import SinkOptions
from tanist.spark.topic import options as topic_options
from tanist.spark.topic.options import OptionError, TopicOptions, warn
from tanist.spark.topic.plan import OffsetRange, split

BASE = {"kafka.bootstrap.servers": "one:9092,two:9093", "subscribe": "orders"}


def test_what_a_query_says_by_default() -> None:
    found = TopicOptions.parse(BASE)
    assert found.connecting.bootstrap == (("one", 9092), ("two", 9093))
    assert (found.topics, found.starting.everywhere, found.ending.everywhere) == (("orders",), EARLIEST, LATEST)
    assert (found.fail_on_data_loss, found.read_committed) == (True, False)


def test_names_do_not_depend_on_case() -> None:
    """Spark hands them over in lower case."""
    found = TopicOptions.parse(
        {"kafka.bootstrap.servers": "a:1", "ASSIGN": '{"a": [0, 2]}', "StartingOffsets": '{"a": {"0": 5, "2": -2}}'}
    )
    assert found.assigned == {"a": (0, 2)}
    assert found.starting.of == {("a", 0): 5, ("a", 2): EARLIEST}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"assign": '{"a": [0]}'}, "exactly one"),
        ({"kafka.auto.offset.reset": "latest"}, "the source's own"),
        (
            {"kafka.sasl.jaas.config": "x"},
            "security.protocol is missing, so that sasl.jaas.config would have no effect",
        ),
        ({"kafka.security.protocol": "SASL_SSL"}, "sasl.mechanism is GSSAPI \\(the default\\)"),
        ({"kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "PLAIN"}, "sasl.jaas.config is missing"),
        ({"subscribePattern": "a"}, "exactly one"),
        ({"startingOffset": "earliest"}, "no option startingoffset"),
        ({"startingOffsets": "latest"}, "cannot be latest"),
        ({"startingOffsets": '{"orders": {"0": -1}}'}, "cannot be latest"),
        ({"endingOffsets": "earliest"}, "cannot be earliest"),
        ({"endingOffsets": '{"orders": {"0": -3}}'}, "cannot be at -3"),
        ({"endingOffsets": '{"orders": [1]}'}, "endingOffsets is"),
        ({"endingOffsets": "tomorrow"}, "not JSON"),
        ({"startingTimestamp": "-3"}, "milliseconds since 1970, -1 or -2"),
        ({"startingTimestamp": "now"}, "milliseconds since 1970, -1 or -2"),
        ({"failOnDataLoss": "maybe"}, "true or false"),
        ({"minPartitions": "0"}, "above 0"),
        ({"subscribe": " , "}, "names no topic"),
        ({"kafka.isolation.level": "serializable"}, "cannot be"),
        ({"isolation.level": "serializable"}, "cannot be"),
        ({"isolation.level": "read_committed", "kafka.isolation.level": "read_uncommitted"}, "contradict"),
        ({"kafka.bootstrap.servers": "nowhere"}, "not host:port"),
    ],
)
def test_what_cannot_be_is_refused(more: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        TopicOptions.parse(BASE | more)


def test_ranges_are_split_in_proportion() -> None:
    found = [OffsetRange("t", 0, 100, 1000), OffsetRange("t", 1, 0, 100)]
    assert split(found, None) == split(found, 2) == found
    cut = split(found, 10)
    assert len(cut) >= 10
    assert [each for each in cut if each.partition == 1] == [found[1]]
    zero = [each for each in cut if each.partition == 0]
    assert (zero[0].start, zero[-1].end) == (100, 1000)
    assert all(first.end == second.start for first, second in pairwise(zero))
    assert split([OffsetRange("t", 0, 0, 2)], 50) == [OffsetRange("t", 0, 0, 1), OffsetRange("t", 0, 1, 2)]


def test_what_has_no_effect_is_taken_and_said() -> None:
    """A query of the connector's goes on with it; how it does is not hidden."""
    more = {
        "kafka.group.id": "g", "kafka.fetch.min.bytes": "1", "kafka.security.protocol": "plaintext",
        "groupIdPrefix": "p", "kafkaConsumer.pollTimeoutMs": "512", "fetchOffset.numRetries": "3",
        "maxOffsetsPerTrigger": "5",
    }  # fmt: skip
    batch = TopicOptions.parse(BASE | more)
    assert batch.without_effect == (
        "fetchOffset.numRetries", "groupIdPrefix", "kafka.fetch.min.bytes", "kafka.group.id",
        "kafkaConsumer.pollTimeoutMs", "maxOffsetsPerTrigger",
    )  # fmt: skip
    assert batch.max_offsets_per_trigger is None
    stream = TopicOptions.parse(BASE | more, streaming=True)
    assert "maxOffsetsPerTrigger" not in stream.without_effect
    assert stream.max_offsets_per_trigger == 5
    assert TopicOptions.parse(BASE).without_effect == ()


def test_one_warning_names_them_all(capsys: pytest.CaptureFixture[str]) -> None:
    warn(())
    assert capsys.readouterr().err == ""
    warn(TopicOptions.parse({**BASE, "kafka.group.id": "g", "groupIdPrefix": "p"}).without_effect)
    assert capsys.readouterr().err == "tanist: without effect here (docs/spark.md): groupIdPrefix, kafka.group.id\n"


def test_of_a_sink_only_what_is_not_so_anyway_has_no_effect() -> None:
    place = {"kafka.bootstrap.servers": "a:1", "topic": "t"}
    assert SinkOptions.parse({**place, "kafka.acks": "all", "kafka.enable.idempotence": "true"}).without_effect == ()
    found = SinkOptions.parse({**place, "kafka.acks": "1", "kafka.linger.ms": "5", "kafka.max.block.ms": "500"})
    assert found.without_effect == ("kafka.acks", "kafka.linger.ms")
    assert found.max_block_s == 0.5
    with pytest.raises(OptionError, match="the source's own"):
        SinkOptions.parse({**place, "kafka.key.serializer": "x"})


def test_help_names_every_option_of_every_source() -> None:
    """`help(TopicDataSource)` in a notebook."""
    help_of = {
        source.name(): (source.__doc__ or "").lower()
        for source in (TopicDataSource, SegmentsDataSource, MetadataDataSource)
    }
    own = topic_options._OWN | topic_options._OF_BATCHES | topic_options._OF_STREAMS.keys()
    assert not [each for each in own - {"isolation.level"} if f"`{each}`" not in help_of["tanist"]]
    assert not [each for each in ("topic", "exactlyonce") if f"`{each}`" not in help_of["tanist"]]
    assert not [each for each in segments_planning._OPTIONS - {"path"} if f"`{each}`" not in help_of["tanist-segments"]]
    assert "`replica`" in help_of["tanist-metadata"]
    assert all(">>> from tanist.spark import session" in each for each in help_of.values())
