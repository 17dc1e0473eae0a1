"""Traffic of brokers and of the watched partitions: rates from the counters of one sample and the one before."""

from __future__ import annotations

import time
from typing import Any

from tanist.web.metadata_view import MetadataView
from tanist.web.node_pages import Pages, row_of
from tanist.web.rates import Key, Rates, rounded
from tanist.web.source import Watched
from tanist.web.state import BrokerTraffic, Json, PartitionTraffic, plain


class Traffic:
    """What was counted at the last sample, and what groups had committed."""

    def __init__(self) -> None:
        self._rates = Rates()
        self._group_rates = Rates()
        self._consumed: dict[tuple[str, int], float] = {}

    def read(self, view: MetadataView, pages: Pages, watched: Watched) -> dict[str, Json]:
        now_s = time.monotonic()
        sample: dict[str, Json] = {}
        keys: set[Key] = set()
        for node, answers in pages.items():
            counters = answers[-1].get("traffic")
            if counters is None:
                continue
            keys.add((node,))
            found = self._rates.of((node,), now_s, counters)
            if found is not None:
                sample[f"b/{node}"] = plain(BrokerTraffic(node, **found))
        for topic, partition in watched:
            state = view.state(topic, partition)
            row = None if state is None else row_of(pages.get(state.leader, ()), topic, partition)
            if state is None or row is None or row["role"] != "leader":
                continue
            key = (topic, partition, state.leader)  # another leader's log may be another length
            keys.add(key)
            found = self._rates.of(key, now_s, {"records": row["log_end_offset"], "bytes": row.get("size_bytes", 0)})
            if found is not None:
                out = self._consumed.get((topic, partition))
                traffic = PartitionTraffic(topic, partition, found["records"], found["bytes"], out)
                sample[f"t/{topic}/{partition}"] = plain(traffic)
        self._rates.keep(keys)
        return sample

    def commits(self, groups: list[dict[str, Any]]) -> None:
        """What groups have committed: its growth is what they consume."""
        committed: dict[Key, dict[str, int]] = {}
        for group in groups:
            for each in group["partitions"]:
                committed.setdefault((each["topic"], each["partition"]), {})[group["group"]] = each["committed"]
        now_s = time.monotonic()
        rates = {place: self._group_rates.of(place, now_s, by_group) for place, by_group in committed.items()}
        self._group_rates.keep({*committed})
        self._consumed = {
            (str(topic), int(partition)): rounded(sum(found.values()))
            for (topic, partition), found in rates.items()
            if found is not None
        }
