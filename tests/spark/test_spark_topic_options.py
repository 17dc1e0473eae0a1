from __future__ import annotations

from itertools import pairwise

import pytest

from tanist.runtime.client.records import EARLIEST, LATEST
from tanist.spark.topic.options import OptionError, TopicOptions
from tanist.spark.topic.plan import OffsetRange, split

BASE = {"kafka.bootstrap.servers": "one:9092,two:9093", "subscribe": "orders"}


def test_what_a_query_says_by_default() -> None:
    found = TopicOptions.parse(BASE)
    assert found.connecting.bootstrap == (("one", 9092), ("two", 9093))
    assert (found.topics, found.starting.everywhere, found.ending.everywhere) == (("orders",), EARLIEST, LATEST)
    assert (found.fail_on_data_loss, found.include_headers, found.read_committed) == (True, False, False)


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
        ({"kafka.group.id": "x"}, "the source's own"),
        ({"kafka.linger.ms": "1"}, "not known here"),
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
