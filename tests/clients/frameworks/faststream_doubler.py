"""A faststream application: doubles the numbers of one topic into another, in a group. SIGTERM ends it.

python faststream_doubler.py confluent|aiokafka BOOTSTRAP GROUP SOURCE TARGET
"""

from __future__ import annotations

import asyncio
import sys

from faststream import FastStream


def main(library: str, bootstrap: str, group: str, source: str, target: str) -> None:
    if library == "confluent":
        from faststream.confluent import KafkaBroker
    else:
        from faststream.kafka import KafkaBroker
    broker = KafkaBroker(bootstrap.split(","))

    @broker.subscriber(source, group_id=group, auto_offset_reset="earliest")
    @broker.publisher(target)
    async def double(number: int) -> int:
        return 2 * number

    asyncio.run(FastStream(broker).run())


if __name__ == "__main__":
    main(*sys.argv[1:])
