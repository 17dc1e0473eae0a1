"""A quixstreams application: counts the records of each key in windows of a minute, from one topic into another.

    python quixstreams_windows.py GUARANTEE BOOTSTRAP GROUP SOURCE TARGET STATE COUNT

Its windows are in RocksDB below STATE and in a compacted changelog topic. It ends by itself after COUNT records.
"""

from __future__ import annotations

import sys
from datetime import timedelta

from quixstreams import Application

IDLE_S = 60.0


def main(guarantee: str, bootstrap: str, group: str, source: str, target: str, state: str, count: str) -> None:
    application = Application(
        broker_address=bootstrap,
        consumer_group=group,
        auto_offset_reset="earliest",
        state_dir=state,
        processing_guarantee=guarantee,
        loglevel="DEBUG",
    )
    records = application.dataframe(application.topic(source, value_deserializer="json"))
    counts = records.tumbling_window(timedelta(minutes=1)).count().current()
    counts.to_topic(application.topic(target, value_serializer="json"))
    application.run(count=int(count), timeout=IDLE_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
