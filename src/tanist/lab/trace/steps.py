"""A step of a trace: an action of the TLA+ model, who takes it, and what events tell of the state after it.

Owns the text of the generated module `Traces`, which `Trace.tla` reads. Names of actions and fields are those of
`Trace.tla`. Offsets, epochs and brokers are the model's, which begin at 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

NO_LEADER = 0
"""The model's `NoLeader`."""


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


def module(traces: Iterable[Sequence[Step]]) -> str:
    """The module `Traces`, one step a line."""
    texts = ",\n".join("<<\n" + ",\n".join(f"    {step.text()}" for step in steps) + "\n>>" for steps in traces)
    return (
        "------------------------------- MODULE Traces -------------------------------\n"
        "EXTENDS kip_966_types\n\n"
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
        "Values": f"{{{', '.join(str(n) for n in range(1, values + 1))}}}",
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
