"""The output of `tanist top`: one refresh in 80 columns, or as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tanist.client.topic_partition import TopicPartition
from tanist.runtime.client.activity import Sample, rates
from tanist.text import counted

_WIDTH = 79
_NAME_CHARS = 24


def screen(before: Sample, after: Sample, topics: Sequence[str], most: int, now: str) -> Iterator[str]:
    """The lines of one sample."""
    rate = rates(before, after)
    places = _ordered(after, rate, topics)
    down = sorted(broker_ids(after) - after.brokers)
    missing = f" ({', '.join(map(str, down))} down)" if down else ""
    speed = sum(rate.get(place, 0.0) for place in places)
    controller = "none" if after.controller is None else after.controller
    yield (
        f"{now}  {counted(len(after.brokers), 'broker')}{missing}, controller {controller}, "
        f"{counted(len(places), 'partition')}, {_number(speed)} records/s"
    )[:_WIDTH]
    yield ""
    yield f"{'BROKER':8}{'STATE':8}{'LEADS':>7}{'REPLICAS':>10}{'IN SYNC':>9}{'RECORDS/S':>11}"
    for broker in sorted(broker_ids(after)):
        leads = [place for place, each in after.partitions.items() if each.leader == broker]
        holds = sum(broker in each.replicas for each in after.partitions.values())
        in_sync = sum(broker in each.isr for each in after.partitions.values())
        written = _number(sum(rate.get(place, 0.0) for place in leads))
        state = "up" if broker in after.brokers else "down"
        yield f"{broker:<8}{state:8}{len(leads):>7}{holds:>10}{in_sync:>9}{written:>11}"
    yield ""
    yield f"{'PARTITION':{_NAME_CHARS}} {'LEADER':>6} {'ISR':8} {'END':>9} {'RECORDS/S':>9} {'LAG':>6}"
    for place in places[:most]:
        yield _partition_line(place, after, rate)
    if len(places) > most:
        yield f"and {counted(len(places) - most, 'more partition')}: --rows shows more, --topic fewer"


def _partition_line(place: TopicPartition, after: Sample, rate: Mapping[TopicPartition, float]) -> str:
    partition = after.partitions[place]
    name = f"{place[0]}-{place[1]}"
    name = name if len(name) <= _NAME_CHARS else f"{place[0][: _NAME_CHARS - len(str(place[1])) - 3]}..-{place[1]}"
    leader = "none" if partition.leader < 0 else str(partition.leader)
    isr = ",".join(map(str, partition.isr)) or "-"
    missing = len(partition.replicas) - len(partition.isr)
    isr = (isr if len(isr) <= 7 else f"{len(partition.isr)}/{len(partition.replicas)}") + ("!" if missing else "")
    end = after.ends.get(place)
    lag = after.lag(place)
    speed = _number(rate[place]) if place in rate else "-"
    shown = f"{name:{_NAME_CHARS}} {leader:>6} {isr:8} {'-' if end is None else end:>9} {speed:>9} "
    return (shown + (f"{'-':>6}" if lag is None else f"{lag[0]:>6} {lag[1]}"))[:_WIDTH]


def _ordered(after: Sample, rate: Mapping[TopicPartition, float], topics: Sequence[str]) -> list[TopicPartition]:
    def urgency(place: TopicPartition) -> tuple[bool, bool, float, TopicPartition]:
        partition = after.partitions[place]
        return (
            partition.leader >= 0,
            len(partition.isr) >= len(partition.replicas),
            -rate.get(place, 0.0),
            place,
        )

    return sorted((place for place in after.partitions if not topics or place[0] in topics), key=urgency)


def broker_ids(after: Sample) -> set[int]:
    return set(after.brokers) | {broker for each in after.partitions.values() for broker in each.replicas}


def _number(value: float) -> str:
    return f"{value:.1f}" if 0 < value < 10 else f"{value:.0f}"


def refresh_json(before: Sample, after: Sample, topics: Sequence[str]) -> dict[str, object]:
    rate = rates(before, after)
    places = _ordered(after, rate, topics)
    return {
        "interval_s": round(after.at_s - before.at_s, 3),
        "controller": after.controller,
        "brokers": [
            {
                "id": broker,
                "up": broker in after.brokers,
                "leads": sum(each.leader == broker for each in after.partitions.values()),
                "replicas": sum(broker in each.replicas for each in after.partitions.values()),
                "in_sync": sum(broker in each.isr for each in after.partitions.values()),
            }
            for broker in sorted(broker_ids(after))
        ],
        "partitions": [
            {
                "topic": place[0],
                "partition": place[1],
                "leader": after.partitions[place].leader,
                "replicas": list(after.partitions[place].replicas),
                "isr": list(after.partitions[place].isr),
                "end": after.ends.get(place),
                "records_per_s": round(rate[place], 3) if place in rate else None,
                "lag": {
                    group: max(0, after.ends[place] - offsets[place])
                    for group, offsets in after.committed.items()
                    if place in offsets and place in after.ends
                },
            }
            for place in places
        ],
    }
