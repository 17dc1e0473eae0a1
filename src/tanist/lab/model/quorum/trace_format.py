"""The trace format of the quorum's model: steps and states as sentences, and as values for programs.

Owns `QuorumTraceFormat`. Decides nothing.
"""

from __future__ import annotations

import re
from typing import Any

from tanist.lab.model.quorum.voter_state import GHOSTS, MEMBERS, Ghosts, MetadataLog, VoterState, set_of_payload
from tanist.lab.model.steps import Label, State, Table


class QuorumTraceFormat:
    """Formats the states of one search."""

    def __init__(self, members: Table[VoterState], ghosts: Table[Ghosts], voters: int) -> None:
        self._members = members
        self._ghosts = ghosts
        self._voters = voters

    def sentence(self, label: Label, before: State, after: State) -> str:
        """The event, and the voters that it changed."""
        text = _SENTENCES[label.name].format(who=label.who + 1, detail=label.detail)
        if label.detail and "{detail}" not in _SENTENCES[label.name]:
            text += f", {label.detail}"
        changes = []
        for voter in range(self._voters):
            was, is_now = (self._members[state[MEMBERS + voter]] for state in (before, after))
            if (was.role, was.epoch, was.voted) != (is_now.role, is_now.epoch, is_now.voted):
                changes.append(f"{voter + 1} is {_role(is_now)}")
        committed = self._ghosts[after[GHOSTS]].committed
        if committed != self._ghosts[before[GHOSTS]].committed:
            changes.append(f"committed now: {_log(committed)}")
        return text + (f": {'; '.join(changes)}" if changes else "")

    def why(self, label: Label, before: State, after: State) -> str | None:
        """The rule behind the step."""
        found = []
        for voter in range(self._voters):
            was, now = (self._members[state[MEMBERS + voter]] for state in (before, after))
            if was.role != now.role or was.epoch != now.epoch:
                reason = _REASONS.get(now.role)
                found += [] if reason is None else [f"{voter + 1}: {reason}"]
        if self._ghosts[after[GHOSTS]].committed != self._ghosts[before[GHOSTS]].committed:
            found.append("a majority has it, and a record of the leader's own epoch with it (142)")
        return "; ".join(found) or None

    def lanes(self, label: Label, before: State) -> tuple[str, str | None]:
        voter = f"controller {label.who + 1}"
        other = re.search(r"\b(?:of|from|to) (\d+)", label.detail)
        return voter, f"controller {other[1]}" if other else None

    def picture(self, state: State) -> list[str]:
        lines = []
        for voter in range(self._voters):
            member = self._members[state[MEMBERS + voter]]
            durable = f", on disk to {member.on_disk}" if member.on_disk < len(member.log) else ""
            lines.append(
                f"{voter + 1}: {_log(member.log)} committed to {member.high_watermark}{durable}, {_role(member)}"
            )
        return lines

    def values(self, state: State) -> dict[str, Any]:
        members = [self._members[number] for number in state[MEMBERS:]]
        return {
            "voters": [
                {
                    "id": voter + 1,
                    "role": member.role,
                    "epoch": member.epoch,
                    "leader": None if member.leader < 0 else member.leader + 1,
                    "voted": None if member.voted < 0 else member.voted + 1,
                    "log": [{"epoch": epoch, "value": value} for epoch, value in member.log],
                    "on_disk": member.on_disk,
                    "high_watermark": member.high_watermark,
                }
                for voter, member in enumerate(members)
            ],
            "committed": len(self._ghosts[state[GHOSTS]].committed),
        }


_SENTENCES = {
    "timeout": "{who} has waited long enough",
    "append": "{who} writes a record",
    "sync": "The log of {who} is durable",
    "crash": "{who} restarts, and finds its whole log",
    "lose": "{who} restarts after a loss of power, and {detail} records",
    "ask": "{who} asks for {detail}",
    "fetch": "{who} fetches {detail}",
    "claim": "{who} tells {detail} what it is",
    "change": "{who} {detail}",
    "stale_ask": "An ask of {who}, which it has forgotten, arrives: the vote {detail}",
}


_REASONS = {
    "Prospective": "it asks first whether it would be elected, and disturbs nobody (134)",
    "Candidate": "a majority would vote for it; its own vote is stored first (137)",
    "Leader": "a majority has voted for it, and nobody votes twice in an epoch (136)",
    "Follower": "an epoch has one leader (138)",
    "Resigned": "it led this epoch, and may not lead it again with a shorter log (133)",
}


def _role(member: VoterState) -> str:
    leader = "" if member.leader < 0 else f" of {member.leader + 1}"
    voted = "" if member.voted < 0 else f", has voted for {member.voted + 1}"
    if member.role == "Leader":
        return f"Leader in epoch {member.epoch}" + (", and serves" if member.announced else "")
    return f"{member.role}{leader} in epoch {member.epoch}{voted}"


def _log(log: MetadataLog) -> str:
    return "[" + " ".join(f"{_payload(value)}@{epoch}" for epoch, value in log) + "]"


def _payload(value: int) -> str:
    mask = set_of_payload(value)
    if mask is None:
        return "-" if value < 0 else str(value)
    return "{" + ",".join(str(number + 1) for number in range(mask.bit_length()) if mask >> number & 1) + "}"
