"""The trace format of the transactions' model: steps and states as sentences, and as values for programs."""

from __future__ import annotations

from typing import Any

from tanist.lab.model.steps import Label, State, Table
from tanist.lab.model.transactions.state import CLIENTS, COORDINATOR, PARTITIONS, Batch, Client, CoordinatorState


class TransactionTraceFormat:
    """Formats the states of one search."""

    def __init__(
        self,
        coordinators: Table[CoordinatorState],
        partitions: Table[tuple[Batch, ...]],
        clients: Table[Client],
        program: tuple[str, ...],
    ) -> None:
        self._coordinators = coordinators
        self._partitions = partitions
        self._clients = clients
        self._program = program

    def sentence(self, label: Label, before: State, after: State) -> str:
        """The event, and how the coordinator and its clients have changed."""
        text = _SENTENCES[label.name].format(who=label.who + 1, detail=label.detail)
        was, now = (_of_coordinator(self._coordinators[state[COORDINATOR]]) for state in (before, after))
        return text if was == now else f"{text}: the coordinator has {now}"

    def why(self, label: Label, before: State, after: State) -> str | None:
        return _REASONS.get(label.name)

    def lanes(self, label: Label, before: State) -> tuple[str, str | None]:
        if label.name in ("send", "late", "delay", "give up") and label.who >= 0:
            return f"client {label.who + 1}", "coordinator" if label.name == "send" else None
        return "coordinator", None

    def picture(self, state: State) -> list[str]:
        clients = [self._clients[number] for number in state[CLIENTS]]
        return [
            f"coordinator: {_of_coordinator(self._coordinators[state[COORDINATOR]])}",
            *(
                f"partition {index}: [{' '.join(map(_of_batch, self._partitions[number]))}]"
                for index, number in enumerate(state[PARTITIONS])
            ),
            *(f"client {number}: {self._of_client(client)}" for number, client in enumerate(clients, 1)),
        ]

    def values(self, state: State) -> dict[str, Any]:
        return {"state": self.picture(state)}

    def _of_client(self, client: Client) -> str:
        if client.stage >= len(self._program):
            return "is done, or fenced"
        waits = ", and waits" if client.waits else ""
        epoch = "" if client.epoch < 0 else f" in epoch {client.epoch}"
        return f"is to send {self._program[client.stage]}{epoch}{waits}"


def _of_coordinator(known: CoordinatorState) -> str:
    values = known.values
    text = "nothing" if values is None else f"{values.state.title} in epoch {values.producer_epoch}"
    if known.pending is not None:
        text += f", {known.pending.values.state.title} in epoch {known.pending.values.producer_epoch} under way"
    if known.left:
        text += f", no marker yet in {', '.join(map(str, sorted(known.left)))}"
    return text


def _of_batch(batch: Batch) -> str:
    return f"{batch.attempt}@{batch.epoch}" if batch.kind == "data" else f"{batch.kind}@{batch.epoch}"


_SENTENCES = {
    "send": "Client {who} sends: {detail}",
    "delay": "A request of client {who} is held up: {detail}",
    "late": "A request that was held up arrives: {detail}",
    "give up": "Client {who} means to abort",
    "commit": "What is under way is committed {detail}",
    "marker": "The marker is written {detail}",
    "failover": "Another broker takes over as coordinator {detail}",
    "timeout": "The transaction takes too long",
}
_REASONS = {
    "failover": "what is in the log counts, and prepared transactions get their markers again",
    "timeout": "it is aborted with an epoch that no client has",
}
