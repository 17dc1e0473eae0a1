"""The trace format of the partition model: steps and states as sentences, and as values for programs.

Owns `PartitionTraceFormat`. A sentence compares the states before and after a step, so that it gives the effect of an
event and not only its name. Decides nothing.
"""

from __future__ import annotations

from typing import Any

from tanist.lab.model.partition import reasons
from tanist.lab.model.partition.components import (
    AlterAnswer,
    AlterRequest,
    Broker,
    Controller,
    FollowerReplica,
    LeaderReplica,
    Message,
    SentAnswer,
    SentFetch,
    SentReply,
    ids_of,
)
from tanist.lab.model.partition.configuration import Configuration
from tanist.lab.model.partition.judgements import log_text, payload_text, set_text
from tanist.lab.model.partition.symmetry import BROKERS, CONTROLLER, HISTORY, NETWORK
from tanist.lab.model.partition.tables import StateTables
from tanist.lab.model.steps import Label, State


class PartitionTraceFormat:
    """Formats the states of one search."""

    def __init__(self, tables: StateTables, configuration: Configuration) -> None:
        self._tables = tables
        self._configuration = configuration
        self._brokers = configuration.brokers

    # -- steps

    def sentence(self, label: Label, before: State, after: State) -> str:
        """The event and its effect."""
        who = label.who + 1
        tell = _SENTENCES.get(label.name)
        if tell is not None:
            return f"{tell.format(who=who, detail=label.detail)}{self._consequence(before, after)}"
        was, is_now = self._broker(before, label.who), self._broker(after, label.who)
        if label.name == "write":
            return f"A producer writes {payload_text(is_now.log[-1][1])} to {who}{self._committed(before, after)}"
        if label.name in ("fetch", "ask"):
            return self._fetch(label, was, is_now) + self._proposed(before, after) + self._committed(before, after)
        if label.name == "learn":
            part = f", {label.detail} of the changes" if label.detail else ""
            return f"{who} applies the metadata{part}: it {_role(is_now)}{self._committed(before, after)}"
        if label.name == "lag":
            slow = label.detail.removeprefix("for ")
            return f"To leader {who}, {slow} has not caught up for too long{self._proposed(before, after)}"
        if label.name == "alter":
            return f"The controller looks at {who}'s proposal{self._consequence(before, after) or ': it is refused'}"
        if label.name in ("lose", "crash", "restart"):
            return self._restart(label, was, is_now) + self._consequence(before, after)
        return f"{label}{self._consequence(before, after)}"

    def _fetch(self, label: Label, was: Broker, is_now: Broker) -> str:
        who = label.who + 1
        if label.name == "ask":
            return f"{who} fetches from offset {len(was.log)}, and the answer is lost"
        got = is_now.log[len(was.log) :]
        if is_now.log[: len(was.log)] != was.log:
            return f"{who} fetches, learns that its log diverges, and cuts it to {log_text(is_now.log)}"
        if got:
            return f"{who} fetches from offset {len(was.log)} and is sent {log_text(got)}"
        if is_now.high_watermark != was.high_watermark:
            return f"{who} fetches, and learns the high watermark {is_now.high_watermark}"
        return f"{who} fetches from offset {len(was.log)}: it has what lies below"

    def _restart(self, label: Label, was: Broker, is_now: Broker) -> str:
        who = label.who + 1
        if label.name == "restart":
            return f"{who} is shut down cleanly and registers again"
        if label.name == "crash":
            return f"{who} crashes, loses nothing, and registers again"
        gone = log_text(was.log[len(is_now.log) :])
        left = "; something it has sent is still under way" if "under way" in label.detail else ""
        return f"{who} crashes, loses {gone} which it had not synced, and registers again{left}"

    def _consequence(self, before: State, after: State) -> str:
        """The controller's changes."""
        was, is_now = (self._tables.controllers[state[CONTROLLER]] for state in (before, after))
        changes = []
        if is_now.isr != was.isr:
            changes.append(f"ISR {set_text(is_now.isr)}")
        if is_now.elr != was.elr:
            changes.append(f"ELR {set_text(is_now.elr)}")
        if is_now.last_known_elr != was.last_known_elr:
            changes.append(f"LastKnownElr {set_text(is_now.last_known_elr)}")
        if is_now.replicas != was.replicas or (is_now.adding, is_now.removing) != (was.adding, was.removing):
            changes.append(f"replicas {set_text(is_now.replicas)}")
        if is_now.leader != was.leader:
            changes.append("nobody leads" if is_now.leader < 0 else f"{is_now.leader + 1} leads")
        text = f": {', '.join(changes)}" if changes else ""
        return text + self._committed(before, after)

    def _proposed(self, before: State, after: State) -> str:
        new = set(self._messages(after)) - set(self._messages(before))
        asked = [message for message in new if isinstance(message, AlterRequest)]
        return "".join(f"; {each.sender + 1} proposes the ISR {set_text(each.proposal.mask)}" for each in asked)

    def _committed(self, before: State, after: State) -> str:
        was, is_now = (self._tables.histories[state[HISTORY]] for state in (before, after))
        if is_now.lost:
            return f"; {is_now.lost} committed record(s) are lost"
        if len(is_now.committed) > len(was.committed):
            return f"; committed now: {log_text(is_now.committed)}"
        return ""

    def why(self, label: Label, before: State, after: State) -> str | None:
        """The rule behind the step."""
        tables = self._tables
        inboxes = BROKERS + self._brokers
        was, now = ([tables.brokers[number] for number in state[BROKERS:inboxes]] for state in (before, after))
        return reasons.why(
            self._configuration,
            label,
            (tables.controllers[before[CONTROLLER]], tables.controllers[after[CONTROLLER]]),
            (tuple(was), tuple(now)),
            (tables.histories[before[HISTORY]], tables.histories[after[HISTORY]]),
        )

    def lanes(self, label: Label, before: State) -> tuple[str, str | None]:
        """Each broker has a lane, and so have the controller, the client and the operator."""
        broker = f"broker {label.who + 1}"
        if label.name in ("fetch", "ask", "send"):
            role = self._broker(before, label.who).role
            leads = isinstance(role, FollowerReplica) and role.leader >= 0
            return broker, f"broker {role.leader + 1}" if isinstance(role, FollowerReplica) and leads else None
        if label.name in ("prefer", "reassign", "cancel", "min_isr"):
            return "operator", None
        if label.name in ("alter", "reply", "old_reply"):
            return broker, "controller"
        if label.name in ("answer", "unanswered"):
            return "controller", broker
        if label.name == "write":
            return "client", broker
        return ("controller", None) if label.name in _BY_THE_CONTROLLER else (broker, None)

    # -- states

    def picture(self, state: State) -> list[str]:
        """The partition, and each broker's replica."""
        at = self._tables.controllers[state[CONTROLLER]]
        leads = "nobody leads" if at.leader < 0 else f"{at.leader + 1} leads"
        fenced = [broker + 1 for broker, each in enumerate(at.registrations) if each.fenced]
        lines = [
            f"controller: {leads}, epoch {at.leader_epoch}, ISR {set_text(at.isr)}, ELR {set_text(at.elr)}"
            + (f", LastKnownElr {set_text(at.last_known_elr)}" if at.last_known_elr else "")
            + (f", fenced {','.join(map(str, fenced))}" if fenced else "")
        ]
        for broker in range(self._brokers):
            each = self._broker(state, broker)
            behind = len(self._tables.inboxes[state[BROKERS + self._brokers + broker]])
            lines.append(
                f"{broker + 1}: {log_text(each.log)} high watermark {each.high_watermark}, {_role(each)}"
                + (", has metadata to apply" if behind else "")
            )
        lines += [f"under way: {_message(message)}" for message in self._messages(state)]
        return lines

    def values(self, state: State) -> dict[str, Any]:
        """The same for programs."""
        at = self._tables.controllers[state[CONTROLLER]]
        history = self._tables.histories[state[HISTORY]]
        return {
            "partition": {
                "leader": at.leader if at.leader < 0 else at.leader + 1,
                "leader_epoch": at.leader_epoch,
                "partition_epoch": at.partition_epoch,
                "replicas": list(ids_of(at.replicas)),
                "isr": list(ids_of(at.isr)),
                "elr": list(ids_of(at.elr)),
                "last_known_elr": list(ids_of(at.last_known_elr)),
                "adding": list(ids_of(at.adding)),
                "removing": list(ids_of(at.removing)),
                "min_isr": at.min_isr,
            },
            "brokers": [_broker_values(at, broker, self._broker(state, broker)) for broker in range(self._brokers)],
            "committed": [_record_values(record) for record in history.committed],
            "lost": history.lost,
            "under_way": [_message(message) for message in self._messages(state)],
        }

    def _broker(self, state: State, broker: int) -> Broker:
        return self._tables.brokers[state[BROKERS + broker]]

    def _messages(self, state: State) -> list[Message]:
        return [self._tables.messages[message] for message in self._tables.networks[state[NETWORK]]]


_BY_THE_CONTROLLER = ("fence", "unfence", "clock", "failover")

_SENTENCES = {
    "fence": "The controller fences {who}",
    "unfence": "{who} is unfenced",
    "shut_down": "{who} begins a controlled shutdown",
    "prefer": "The preferred leader is elected",
    "reassign": "The partition is to move, {detail}",
    "cancel": "The reassignment is cancelled",
    "min_isr": "min.insync.replicas is set to {detail}",
    "clock": "Time passes, and the recovery waits no longer for replicas that it can do without",
    "failover": "Another controller becomes active",
    "reply": "{who} tells the controller how far its log goes",
    "answer": "The controller's answer reaches {who}",
    "unanswered": "The controller's answer to {who} is lost, and it asks again",
    "old_reply": "What {who} said of its log before it restarted reaches the controller",
    "send": "{who} sends a fetch",
    "hear": "{who} hears {detail}",
    "take": "{who} is answered",
    "drop": "{who} gets no answer: {detail} is lost",
}


def _role(state: Broker) -> str:
    role = state.role
    if role is None:
        return "has no replica"
    if isinstance(role, LeaderReplica):
        counted = f"counts with {set_text(role.maximal)}"
        pending = f", has proposed {set_text(role.pending.mask)}" if role.pending is not None else ""
        return f"leads in epoch {role.leader_epoch} by the ISR {set_text(role.isr)}, {counted}{pending}"
    if role.leader < 0:
        return f"waits for a leader in epoch {role.leader_epoch}"
    return f"follows {role.leader + 1} in epoch {role.leader_epoch}"


def _message(message: Message) -> str:
    if isinstance(message, AlterRequest):
        return f"{message.sender + 1}'s proposal of the ISR {set_text(message.proposal.mask)}"
    if isinstance(message, AlterAnswer):
        return f"the controller's answer to {message.receiver + 1}: " + (
            f"error {message.error}" if message.error else f"ISR {set_text(message.isr)}"
        )
    if isinstance(message, SentReply):
        return f"what {message.reply.broker + 1} said of its log before it restarted"
    if isinstance(message, SentAnswer):
        return f"an answer to {message.answer.request.broker + 1}'s fetch"
    return _fetch(message)


def _fetch(message: SentFetch) -> str:
    asked = message.request
    where = f"{asked.broker + 1} to {message.receiver + 1} from offset {asked.offset}"
    return f"a fetch of {where}, sent in epoch {asked.leader_epoch}"


def _broker_values(at: Controller, broker: int, state: Broker) -> dict[str, Any]:
    return {
        "id": broker + 1,
        "fenced": at.registrations[broker].fenced,
        "broker_epoch": state.epoch,
        "log": [_record_values(record) for record in state.log],
        "high_watermark": state.high_watermark,
        "leader_epoch": state.leader_epoch,
        "leads": isinstance(state.role, LeaderReplica),
        "role": _role(state),
    }


def _record_values(record: tuple[int, int]) -> dict[str, Any]:
    return {"epoch": record[0], "value": payload_text(record[1])}
