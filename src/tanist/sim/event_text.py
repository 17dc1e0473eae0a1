"""`line`: an event of the world as a line of the trace. The one place with sentences about faults and operators.

The lines are part of a run's digest. Who shows them under other names of hosts ("node 1") passes `shown`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

from tanist.controller.image.partition_state import PartitionState
from tanist.controller.image.registration import BrokerRegistration
from tanist.quorum.voters import VoterSet
from tanist.sim import events
from tanist.sim.events import Event, Links, TopicPartition

FAULT, DOES, STATE, LOSS, FATAL, MEMBER, VIOLATION = "FAULT", "DOES", "STATE", "LOSS", "FATAL", "MEMBER", "VIOLATION"
OPERATOR = "operator"

Shown: TypeAlias = Callable[[str], str]
"""The name of a host -> the name under which it is shown."""


class Line(NamedTuple):
    """`who` are the shown names of nodes and clients, or `OPERATOR` and others who are no hosts."""

    who: str
    level: str
    text: str


def line(event: Event, shown: Shown = str) -> Line | None:
    """None: the event has no line of its own."""
    fault = _OF_NODES.get(type(event))
    if fault is not None:
        return Line(_node(event, shown), FAULT, fault(event))
    operation = _OF_OPERATORS.get(type(event))
    if operation is not None:
        return Line(OPERATOR, DOES, operation(event, shown))
    other = _OTHERS.get(type(event))
    return None if other is None else other(event, shown)


def story_line(event: Event, shown: Shown) -> Line | None:
    """The same for people who do not know a trace: a few events in more words."""
    rendered, words = line(event, shown), _IN_STORIES.get(type(event))
    return rendered if rendered is None or words is None else rendered._replace(text=words(event))


_IN_STORIES: dict[type[Event], Callable[[Any], str]] = {
    events.LifeBegan: lambda event: "starts" if event.life == 1 else f"starts again (life {event.life})",
    events.GaveUp: lambda event: f"gives up: {event.reason}",
    events.CannotStart: lambda event: f"gives up: cannot start: {event.reason}",
    events.Killed: lambda event: "killed (SIGKILL); what it wrote stays in the page cache",
    events.PowerLost: lambda event: "loses its power, and what was not synced with it",
    events.Frozen: lambda event: "frozen: nothing runs, its connections stay",
    events.StopRequested: lambda event: "stops (controlled shutdown)",
}


def _node(event: Any, shown: Shown) -> str:
    return shown(f"node{event.node_id}")


_OF_NODES: dict[type[Event], Callable[[Any], str]] = {
    events.LifeBegan: lambda event: f"life {event.life} begins",
    events.DiedMidTurn: lambda event: "died in the middle of a turn",
    events.Killed: lambda event: "killed",
    events.PowerLost: lambda event: "lost power",
    events.StopRequested: lambda event: "is asked to stop",
    events.Stopped: lambda event: "has stopped",
    events.Frozen: lambda event: "frozen",
    events.ExceptionPlanted: lambda event: f"an exception is planted: {event.place}",
    events.Thawed: lambda event: "goes on",
    events.ClockSkewed: lambda event: f"wall clock off by {event.skew_ms} ms",
    events.Healed: lambda event: "healed",
    events.SyncsSlowed: lambda event: "syncs are slow",
    events.DiskFailed: lambda event: "the disk fails",
    events.DiskMended: lambda event: "the disk is mended",
    events.DiskFilled: lambda event: "the disk is full",
    events.DiskFreed: lambda event: "there is room on the disk again",
    events.DirectoryFailed: lambda event: f"{event.path} fails",
    events.DirectoryMended: lambda event: f"{event.path} is mended",
    events.DiskReplaced: lambda event: f"the disk of {event.path} is a new one",
    events.MetadataDiskReplaced: lambda event: "the disk of its metadata log is a new one",
    events.BitRotted: lambda event: f"byte {event.offset} of {event.path} is rotten",
}


def _reassignment(event: events.ReassignmentRequested) -> str:
    if event.replicas is None:
        return f"cancels the reassignment of {event.partition_name}"
    rate = "" if event.throttle_bytes is None else f", at {event.throttle_bytes} bytes a second"
    return f"wants {event.partition_name} on {list(event.replicas)}{rate}"


def _directory(event: events.DirectoryRequested, shown: Shown) -> str:
    rate = "" if event.rate_bytes is None else f", at {event.rate_bytes} bytes a second"
    return f"wants {event.partition_name} of {_node(event, shown)} in {event.path}{rate}"


def _unclean_election(event: events.UncleanElectionRequested) -> str:
    desired = "" if event.desired is None else f", {event.desired}"
    return f"asks for a leader of {event.partition_name} (type {event.election_type}{desired})"


def _voter(event: events.VoterRequested, shown: Shown) -> str:
    name = _node(event, shown)
    return f"adds {name} to the voters" if event.adds else f"removes {name} from the voters"


_OF_OPERATORS: dict[type[Event], Callable[[Any, Shown], str]] = {
    events.RestartOfAllBegan: lambda event, shown: f"restarts all nodes, from {_node(event, shown)} on",
    events.LogRestored: lambda event, shown: f"restores the logs of {_node(event, shown)} from a copy",
    events.FolderRemoved: lambda event, shown: f"removes {event.path} of {_node(event, shown)}",
    events.ReassignmentRequested: lambda event, shown: _reassignment(event),
    events.DirectoryRequested: lambda event, shown: _directory(event, shown),
    events.ThrottlesRemoved: lambda event, shown: "takes the throttles away",
    events.ConfigRequested: lambda event, shown: f"sets {event.key} of {event.topic or 'the cluster'} to {event.value}",
    events.ElrVersionRequested: lambda event, shown: f"sets eligible.leader.replicas.version to {event.level}",
    events.PreferredLeadersRequested: lambda event, shown: "asks for preferred leaders",
    events.UncleanElectionRequested: lambda event, shown: _unclean_election(event),
    events.UnregistrationRequested: lambda event, shown: f"unregisters broker {event.broker_id}",
    events.DeletionRequested: lambda event, shown: (
        f"deletes the records of {event.partition_name} below {event.offset}"
    ),
    events.VoterRequested: _voter,
    events.AccessRequested: lambda event, shown: event.what,
    events.QuotaRequested: lambda event, shown: event.what,
    events.GroupMoved: lambda event, shown: f"moves {event.group} to the {event.protocol} protocol: {event.how}",
    events.TopologyChanged: lambda event, shown: f"changes the topology of {event.group}: {event.how}",
    events.PartitionsRequested: lambda event, shown: f"wants {event.count} partitions of {event.topic}",
}

_LINKS = {
    "partition": "cut off from {others}",
    "partition-one-way": "cannot reach {others}",
    "slow": "slow towards {others}",
    "reset": "connections to {others} reset",
    "mute": "is heard by nobody",
    "deaf": "hears nobody",
    "partition-clients": "{number} links to and from clients are cut",
    "flap": "the links to {others} flap",
    "lossy": "packets to and from {others} get lost",
    "apart": "cut off from each other",
    "alone": "cut off from all other nodes",
    "all slow": "its links are slow",
}
"""Kinds of `LinksFailed`."""


def _links_failed(event: events.LinksFailed, shown: Shown) -> Line:
    text = _LINKS[event.kind].format(others=_names(event.others, shown), number=event.number)
    return Line(_names(event.hosts, shown), FAULT, text)


def _assigned(event: events.MemberAssigned, shown: Shown) -> Line:
    text = f"has {_partitions(event.partitions)} in epoch {event.epoch} of {event.group}"
    return Line(event.client, MEMBER, text)


def _lost(event: events.RecordsLost, shown: Shown) -> Line:
    text = f"{event.lost} of {event.committed} given up for {event.leader} to lead"
    return Line("checker", LOSS, f"{event.partition_name}: {text}")


_OTHERS: dict[type[Event], Callable[[Any, Shown], Line]] = {
    events.CannotStart: lambda event, shown: Line(_node(event, shown), FATAL, f"cannot start: {event.reason}"),
    events.GaveUp: lambda event, shown: Line(_node(event, shown), FATAL, event.reason),
    events.ClientAway: lambda event, shown: Line(event.client, FAULT, f"{event.how} for {event.away_ms} ms"),
    events.LinksFailed: _links_failed,
    events.LinksMended: lambda event, shown: Line(_names(event.hosts, shown), FAULT, "connected again"),
    events.LinksSteady: lambda event, shown: Line(
        shown(event.host), FAULT, f"the links to {shown(event.other)} are steady"
    ),
    events.BytesLate: lambda event, shown: Line(
        "network", FAULT, f"{event.late_ms} ms under way: {_arrows(event.links, shown)}"
    ),
    events.NearEndsReset: lambda event, shown: Line(
        "network", FAULT, f"reset at the near end only: {_arrows(event.links, shown)}"
    ),
    events.PartitionStateCommitted: lambda event, shown: Line(
        "metadata", STATE, f"{event.partition_name}: {_state(event.after)}"
    ),
    events.ElrSwitched: lambda event, shown: Line(
        "metadata", STATE, f"eligible leader replicas are {'on' if event.on else 'off'}"
    ),
    events.VotersCommitted: lambda event, shown: Line("quorum", STATE, f"voters are {voter_names(event.voters)}"),
    events.RecordsLost: _lost,
    events.MemberAssigned: _assigned,
    events.MemberRevoked: lambda event, shown: Line(
        event.client, MEMBER, f"gives up {_partitions(event.partitions)} of {event.group}"
    ),
    events.PropertyViolated: lambda event, shown: Line("checker", VIOLATION, event.text),
}


def _names(hosts: Iterable[str], shown: Shown) -> str:
    return ", ".join(map(shown, hosts))


def _arrows(links: Links, shown: Shown) -> str:
    return ", ".join(f"{shown(one)}>{shown(two)}" for one, two in links)


def _partitions(partitions: Iterable[TopicPartition]) -> str:
    return " ".join(f"{name}-{index}" for name, index in sorted(partitions)) or "nothing"


def value_text(value: object) -> str:
    """A value of a violation, as people write it."""
    match value:
        case PartitionState():
            return f"<{state_text(value)}>"
        case BrokerRegistration():
            state = "fenced" if value.fenced else "shutting down" if value.in_controlled_shutdown else "unfenced"
            return f"<broker {value.id}, broker epoch {value.epoch}, {state}>"
        case VoterSet():
            return voter_names(value)
    return str(value)


def state_text(state: PartitionState) -> str:
    """Who leads a partition, and who may."""
    leader = "no leader" if state.leader < 0 else f"leader {state.leader}"
    parts = [f"{leader}, epoch {state.leader_epoch}", f"ISR {ids(state.isr)}"]
    parts += [
        f"{name} {ids(members)}"
        for name, members in (("ELR", state.elr), ("LastKnownElr", state.last_known_elr))
        if members
    ]
    return ", ".join(parts)


def ids(members: Iterable[int]) -> str:
    return f"[{','.join(map(str, members))}]"


def voter_names(voters: VoterSet) -> str:
    return "[" + ", ".join(f"{voter.node_id}@{str(voter.directory_id)[:4]}" for voter in voters) + "]"


def _state(state: PartitionState) -> str:
    parts = [
        f"leader {state.leader} in epoch {state.leader_epoch}.{state.partition_epoch}",
        f"replicas {list(state.replicas)}",
        f"ISR {list(state.isr)}",
    ]
    for name, members in (
        ("ELR", state.elr),
        ("last known", state.last_known_elr),
        ("adding", state.adding),
        ("removing", state.removing),
    ):
        if members:
            parts.append(f"{name} {list(members)}")
    if state.recovering:
        parts.append("recovering")
    return ", ".join(parts)
