"""A step of a trace: an action of the TLA+ model, who takes it, and what events tell of the state after it.

Owns the text of the generated module `Traces`, which `Trace.tla` reads. Names of actions and fields are those of
`Trace.tla`. Offsets, epochs and brokers are the model's, which begin at 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

NO_LEADER = 0
"""The model's `NoLeader`."""


class ModelValue(str):
    """A constant of the model."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class Step:
    """One step."""

    action: str
    broker: int
    reported: dict[str, Any] = field(default_factory=dict)
    at_us: int = 0
    node_id: int = 0
    source: str = ""
    """The event that it was made of."""

    def text(self) -> str:
        """As a record of TLA+."""
        fields = {"action": self.action, "b": self.broker, **self.reported}
        return f"[{', '.join(f'{name} |-> {_value(name, value)}' for name, value in fields.items())}]"


def module(traces: Iterable[Sequence[Step]], name: str = "Traces", types: str = "kip_966_types") -> str:
    """The module of the traces, one step a line. `types`: the model's module of constants."""
    texts = ",\n".join("<<\n" + ",\n".join(f"    {step.text()}" for step in steps) + "\n>>" for steps in traces)
    return (
        f"------------------------------- MODULE {name} -------------------------------\n"
        f"EXTENDS {types}\n\n"
        f"Traces == <<\n{texts}\n>>\n"
        "=============================================================================\n"
    )


MODEL_VALUES = (
    *("FENCED", "UNFENCED", "STARTING", "RUNNING", "OFFLINE_CLEAN", "OFFLINE_DIRTY", "Leader", "Follower"),
    *("RegisterBrokerRequest", "RegisterBrokerResponse", "AlterPartitionRequest", "AlterPartitionResponse"),
    *("FetchRequest", "FetchResponse", "IneligibleReplica", "FencedLeaderEpoch", "UnknownLeaderEpoch"),
    *("NotLeaderOrFollower", "Controller", "NoLeader", "Nil", "PartitionChangeRecord"),
)
_LIMITS = (
    "NoDataLossShutdownLimit",
    "DataLossShutdownLimit",
    "FenceBrokerLimit",
    "LeaderShrinkIsrLimit",
    "ReassignmentLimit",
)


def configuration(traces: Sequence[Sequence[Step]], *, brokers: int, min_isr: int) -> str:
    """The configuration of TLC for these traces."""
    values = max(sum(step.action == "WriteRecordToLeader" for step in steps) for steps in traces)
    constants = {
        "BrokerCount": brokers,
        "InitReplicationFactor": brokers,
        "InitIsrSize": brokers,
        "MinISR": min_isr,
        "Values": _numbers(values),
        **dict.fromkeys(_LIMITS, max(map(len, traces)) + 1),
        "Broken": "{}",
        **{name: name for name in MODEL_VALUES},
    }
    replaced = {
        "Converged": "NeverConverged",
        "GetCommitOffset": "CommittedAsReported",
        "ProposeNewISR": "ProposedAsReported",
        "ApplyPartitionChange": "ApplyWithLastKnown",
        "TruncateToSafePoint": "Truncated",
    }
    return _text(constants, replaced)


_QUORUM_VALUES = (
    *("Unattached", "Follower", "Prospective", "Candidate", "Leader", "Resigned", "DeadNoState", "IllegalState", "Nil"),
    *("AppendCommand", "InitClusterCommand", "AddVoterCommand", "RemoveVoterCommand", "LeaderChangeRecord"),
    *("RequestVoteRequest", "RequestVoteResponse", "BeginQuorumEpochRequest", "FetchRequest", "FetchResponse"),
    *("Ok", "NotOk", "Diverging", "FencedLeaderEpoch", "NotLeader", "UnknownLeader", "UnknownMember", "AlreadyMember"),
    *("ReconfigInProgress", "LeaderNotReady", "InvalidRequest", "EqualEpoch", "AnyEpoch"),
)
_QUORUM_LIMITS = ("MaxEpoch", "MaxDisruptiveElectionTriggers", "MaxValuesPerEpoch", "MaxRestarts")
_QUORUM_NEVER = ("MaxPermCrashes", "MaxAddReconfigs", "MaxRemoveReconfigs", "MaxConnectivityChanges")


def quorum_configuration(traces: Sequence[Sequence[Step]], *, voters: int) -> str:
    """The configuration of TLC for these traces of a metadata quorum."""
    appended = max(sum(step.action == "HandleClientRequest" for step in steps) for steps in traces)
    values = [f"v{n}" for n in range(1, appended + 1)]
    constants = {
        **dict.fromkeys(("InitClusterSize", "MinClusterSize", "MaxClusterSize", "MaxSpawnedServers"), voters),
        "Hosts": _numbers(voters),
        "Value": f"{{{', '.join(values)}}}",
        "TestLiveness": "FALSE",
        **dict.fromkeys(_QUORUM_LIMITS, max(map(len, traces)) + 1),
        **dict.fromkeys(_QUORUM_NEVER, 0),
        **{name: name for name in (*_QUORUM_VALUES, *values)},
    }
    return _text(constants, {"NewHighwaterMark": "CommittedAsReported", "NoMorePreVotesToCount": "GivesUpAnyTime"})


def _numbers(last: int) -> str:
    return f"{{{', '.join(str(n) for n in range(1, last + 1))}}}"


def _text(constants: Mapping[str, object], replaced: Mapping[str, str]) -> str:
    return "\n".join(
        (
            "CONSTANTS",
            *(f"    {name} = {value}" for name, value in constants.items()),
            *(f"    {name} <- {value}" for name, value in replaced.items()),
            "INIT TraceInit",
            "NEXT TraceNext",
            "CONSTRAINT Judgement",
            "VIEW TraceView",
            "",
        )
    )


def _value(name: str, value: Any) -> str:
    if name == "leader" and value == NO_LEADER:
        return "NoLeader"
    if isinstance(value, ModelValue):
        return value
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, frozenset):
        return f"{{{', '.join(map(str, sorted(value)))}}}"
    if isinstance(value, tuple):
        return f"<<{', '.join(map(str, value))}>>"
    if isinstance(value, dict):
        return f"[{', '.join(f'{key} |-> {each}' for key, each in value.items())}]"
    return str(value)
