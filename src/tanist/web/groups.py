"""Consumer groups with their lag, asked for through the client."""

from __future__ import annotations

from collections.abc import Callable

from tanist.runtime.client import groups as of_groups
from tanist.runtime.client.activity import high_watermarks
from tanist.runtime.client.client import Client
from tanist.web.state import GroupPartition, GroupState, Json, plain

_GROUPS_MAX = 200
_PARTITIONS_MAX = 1_000


def read_groups(client: Client, leader_of: Callable[[str, int], int]) -> Json:
    """All groups, those most behind first; of very many only the first by name."""
    listed = of_groups.list_groups(client, some=True)
    committed = {each.group: of_groups.committed_offsets(client, each.group) for each in listed[:_GROUPS_MAX]}
    leaders = {place: leader_of(*place) for offsets in committed.values() for place in offsets}
    ends = high_watermarks(client, leaders)
    found = []
    for each in listed[:_GROUPS_MAX]:
        partitions = tuple(
            GroupPartition(topic, index, offset, ends.get((topic, index)))
            for (topic, index), offset in sorted(committed[each.group].items())[:_PARTITIONS_MAX]
        )
        lags = [max(0, part.end - part.committed) for part in partitions if part.end is not None]
        lag = sum(lags) if lags else None
        found.append(GroupState(each.group, each.kind or "classic", each.state, lag, partitions))
    found.sort(key=lambda group: (-(group.lag or 0), group.group))
    return plain(found)
