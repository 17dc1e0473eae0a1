"""The partitions of a topic that `tanist produce` and `tanist consume` use."""

from __future__ import annotations

import click

from tanist.runtime.client.client import Client, KafkaError
from tanist.wire.errors import ErrorCode


def partitions_of(client: Client, topic: str, partition: int | None) -> list[int]:
    """The partitions to use: the one that was asked for, or all there are."""

    def attempt() -> list[int]:
        about = client.metadata([topic]).topics.get(topic)
        code = about.error_code if about is not None else int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if about is None or code:
            missing = code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            said = (
                f"there is no topic {topic}: `tanist topics create {topic}` makes it" if missing else f"topic {topic}"
            )
            raise KafkaError(code, said)
        return sorted(about.partitions)

    found = client.persist(attempt, timeout_s=2.0)
    if partition is None:
        return found
    if partition not in found:
        raise click.ClickException(f"{topic} has partitions 0 to {len(found) - 1}, not {partition}")
    return [partition]
