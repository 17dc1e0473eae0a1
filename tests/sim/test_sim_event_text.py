"""The lines of the world's events: each has one, under the names that its reader uses."""

from __future__ import annotations

import pytest

from tanist.controller.image.partition_state import PartitionState
from tanist.sim import event_text, events
from tanist.sim.event_text import FAULT, Line, line
from tanist.sim.events import Event
from tanist.sim.faults.links import LINK_FAULTS
from tanist.wire.ids import ZERO_UUID

WITHOUT_LINE = {events.DeletionAnswered, events.PlantedRaised, events.LogRemoved}
"""The first two are for checkers only; `FolderRemoved` or `DiskReplaced` stand for a removed log."""

KEY = (ZERO_UUID, 0)
STATE = PartitionState((1, 2, 3), (1,), leader=1, leader_epoch=4, elr=(2,), last_known_elr=(3,), recovering=True)
LINES = [
    (events.LifeBegan(1, 2), "node 1", "FAULT", "life 2 begins"),
    (events.GaveUp(1, "no disk"), "node 1", "FATAL", "no disk"),
    (events.CannotStart(1, "no disk"), "node 1", "FATAL", "cannot start: no disk"),
    (events.Killed(1), "node 1", "FAULT", "killed"),
    (events.BitRotted(2, KEY, "/data/x", 9), "node 2", "FAULT", "byte 9 of /data/x is rotten"),
    (events.ClientAway("member", "pause", 5), "member", "FAULT", "pause for 5 ms"),
    (events.LinksFailed("partition", ("node1", "node2"), ("node3",)), "node 1, node 2", "FAULT", "cut off from node 3"),
    (
        events.LinksFailed("partition-clients", ("node1",), number=3),
        "node 1",
        "FAULT",
        "3 links to and from clients are cut",
    ),
    (events.LinksMended(("node1",)), "node 1", "FAULT", "connected again"),
    (events.LinksSteady("node1", "node2"), "node 1", "FAULT", "the links to node 2 are steady"),
    (events.BytesLate(20, (("node1", "client"),)), "network", "FAULT", "20 ms under way: node 1>client"),
    (events.RestartOfAllBegan(3), "operator", "DOES", "restarts all nodes, from node 3 on"),
    (events.ReassignmentRequested("t-0", (1, 2), 9), "operator", "DOES", "wants t-0 on [1, 2], at 9 bytes a second"),
    (
        events.DirectoryRequested(2, "t-0", "/d", 9),
        "operator",
        "DOES",
        "wants t-0 of node 2 in /d, at 9 bytes a second",
    ),
    (events.ReassignmentRequested("t-0", None), "operator", "DOES", "cancels the reassignment of t-0"),
    (events.ConfigRequested("", "a.b", None), "operator", "DOES", "sets a.b of the cluster to None"),
    (events.UncleanElectionRequested(KEY, "t-0", 4, 2), "operator", "DOES", "asks for a leader of t-0 (type 4, 2)"),
    (events.VoterRequested(3, adds=False), "operator", "DOES", "removes node 3 from the voters"),
    (
        events.PartitionStateCommitted(KEY, "t-0", None, STATE),
        "metadata",
        "STATE",
        "t-0: leader 1 in epoch 4.0, replicas [1, 2, 3], ISR [1], ELR [2], last known [3], recovering",
    ),
    (events.RecordsLost("t-0", 2, 9, 1), "checker", "LOSS", "t-0: 2 of 9 given up for 1 to lead"),
    (events.MemberRevoked("m", "g", (("t", 1), ("t", 0))), "m", "MEMBER", "gives up t-0 t-1 of g"),
]


@pytest.mark.parametrize(("event", "who", "level", "text"), LINES, ids=[type(each[0]).__name__ for each in LINES])
def test_lines(event: Event, who: str, level: str, text: str) -> None:
    names = {"node1": "node 1", "node2": "node 2", "node3": "node 3"}
    assert line(event, lambda host: names.get(host, host)) == Line(who, level, text)


def test_every_kind_of_link_fault_has_its_words() -> None:
    rendered = {
        kind: line(events.LinksFailed(kind, ("node1",), ("node2",))) for kind in LINK_FAULTS if "strand" not in kind
    }
    assert {each.level for each in rendered.values() if each is not None} == {FAULT}
    assert None not in rendered.values()


def test_every_kind_of_event_has_a_line() -> None:
    tables = (event_text._OF_NODES, event_text._OF_OPERATORS, event_text._OTHERS)
    kinds = {*Event.kinds.values()} - {Event, events.NodeEvent}
    assert kinds - {kind for table in tables for kind in table} == WITHOUT_LINE
    assert sum(len(table) for table in tables) == len(kinds) - len(WITHOUT_LINE), "one is in two tables"
