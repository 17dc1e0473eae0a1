"""What a broker that the cluster does not count in says of itself, and what `tanist status` makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tanist.runtime.cluster import status
from tanist.runtime.cluster.cluster_file import ClusterFile, NodeEntry
from tanist.runtime.cluster.processes import own_mark
from tanist.runtime.cluster.status import FENCED, RUNNING, STARTING
from tanist.wire.ids import KNOWS_NOTHING_MS
from tanist.wire.messages.describe_cluster_response import DescribeClusterResponse

NODE = 3


def state_of(
    folder: Path, age_ms: int, waits_for: str, seen: set[int], *, serves: bool = True
) -> tuple[str, str | None]:
    """The active controller is known to others."""
    node = NodeEntry(NODE, ("broker", "controller"), 1, 2, process=own_mark())
    cluster = ClusterFile("id", "127.0.0.1", [node])
    answer = DescribeClusterResponse(metadata_age_ms=age_ms) if serves else None
    page = {"waits_for": waits_for or None, "metadata_age_ms": None if age_ms < 0 else age_ms}
    return status._state(cluster, folder, node, True, seen, answer, page)


@pytest.mark.parametrize(
    ("age_ms", "waits_for", "state"),
    [
        (-1, "", (STARTING, None)),
        (-1, "its logs (3 of 8 loaded)", (STARTING, "it waits for its logs (3 of 8 loaded)")),
        (4_200, "", (FENCED, "it has heard from no controller for 4.2 s")),
        (KNOWS_NOTHING_MS, "", (FENCED, "it has heard from no controller since it started")),
        (
            4_200,
            "its logs (3 of 8 loaded)",
            (STARTING, "it waits for its logs (3 of 8 loaded); it has heard from no controller for 4.2 s"),
        ),
        (
            KNOWS_NOTHING_MS,
            "a majority of the controllers",
            (STARTING, "it waits for a majority of the controllers; it has heard from no controller since it started"),
        ),
    ],
)
def test_a_broker_that_is_not_counted_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age_ms: int, waits_for: str, state: tuple[str, str | None]
) -> None:
    for cut_off, hint in ((False, ""), (True, ": `tanist faults` shows what cuts it off")):
        monkeypatch.setattr(status, "is_cut_off", lambda *_, found=cut_off: found)
        expected = (state[0], state[1] + hint) if state[1] and age_ms >= 0 else state
        assert state_of(tmp_path, age_ms, waits_for, set()) == expected
        if waits_for:  # and while it refuses its clients
            assert state_of(tmp_path, age_ms, waits_for, set(), serves=False) == expected
    assert state_of(tmp_path, age_ms, waits_for, {NODE}) == (RUNNING, None)


def test_a_broker_that_refuses_clients_and_tells_nothing_starts(tmp_path: Path) -> None:
    node = NodeEntry(NODE, ("broker", "controller"), 1, 2, process=own_mark())
    cluster = ClusterFile("id", "127.0.0.1", [node])
    assert status._state(cluster, tmp_path, node, True, set(), None, None) == (STARTING, None)
