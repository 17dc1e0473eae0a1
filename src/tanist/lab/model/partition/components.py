"""The components of a state of the partition model: small frozen tuples, and their renaming.

Owns the values. A broker is a number from 0; its broker id in the real objects is that number plus one (`broker_id`).
Sets of brokers are bit masks. Must never decide anything: `controlling` and `replicating` do, by asking the real
objects.

Renaming matters because no rule of the protocol depends on brokers' names: two states that differ in names only have
the same future, and the search looks at one of them (`symmetry`). Each value here can be renamed by a permutation `to`,
in which `to[broker]` is the new name.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from tanist.lab.model.steps import Permutation, rename_mask, rename_one

Record: TypeAlias = tuple[int, int]
"""Leader epoch and payload."""
Log: TypeAlias = tuple[Record, ...]

NEVER_FETCHED = -2
"""In place of the broker epoch of a follower that has not fetched from the leader in this epoch."""


def broker_id(broker: int) -> int:
    """The broker's id in the real objects."""
    return broker + 1


def ids_of(mask: int) -> tuple[int, ...]:
    """The broker ids in a mask, ascending."""
    return tuple(broker_id(broker) for broker in members(mask))


def members(mask: int) -> tuple[int, ...]:
    found = []
    broker = 0
    while mask >> broker:
        if mask >> broker & 1:
            found.append(broker)
        broker += 1
    return tuple(found)


def mask_of_ids(ids: tuple[int, ...]) -> int:
    mask = 0
    for each in ids:
        mask |= 1 << (each - 1)
    return mask


def size(mask: int) -> int:
    return mask.bit_count()


class Registration(NamedTuple):
    """A broker's registration in the metadata log."""

    epoch: int
    fenced: bool
    shutting_down: bool

    @property
    def active(self) -> bool:
        return not self.fenced and not self.shutting_down


def _renamed_registrations(registrations: tuple[Registration, ...], to: Permutation) -> tuple[Registration, ...]:
    renamed = list(registrations)
    for broker, registration in enumerate(registrations):
        renamed[to[broker]] = registration
    return tuple(renamed)


class View(NamedTuple):
    """One state of the metadata log as brokers see it: without the ELR."""

    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: int
    isr: int
    adding: int
    removing: int
    recovering: bool
    min_isr: int
    registrations: tuple[Registration, ...]

    def renamed(self, to: Permutation) -> View:
        return self._replace(
            leader=rename_one(self.leader, to),
            replicas=rename_mask(self.replicas, to),
            isr=rename_mask(self.isr, to),
            adding=rename_mask(self.adding, to),
            removing=rename_mask(self.removing, to),
            registrations=_renamed_registrations(self.registrations, to),
        )

    def seen_by(self, broker: int) -> View:
        """The part that matters to a broker: everything to the leader, to others only the leader to follow."""
        if self.leader == broker:
            return self
        return self._replace(replicas=self.replicas & 1 << broker, isr=0, adding=0, removing=0, registrations=())

    def says_no_more_than(self, before: View) -> bool:
        """Whether this has nothing new for a broker that has seen `before` (both are `seen_by` it)."""
        if not self.replicas:
            return not before.replicas
        return not self.registrations and self._replace(partition_epoch=before.partition_epoch) == before


class Reply(NamedTuple):
    """A replica's reply about its log, kept by a controller that compares logs (KIP-966, unclean recovery)."""

    broker: int
    broker_epoch: int
    leader_epoch: int
    last_epoch: int
    end_offset: int
    epochs: tuple[tuple[int, int], ...]
    """Leader epochs and their start offsets."""


class Recovery(NamedTuple):
    """An unclean recovery under way. `clock`: 0 it has just begun, 1 after the grace period, 2 after the deadline."""

    clock: int
    replies: tuple[Reply, ...]

    def renamed(self, to: Permutation) -> Recovery:
        return Recovery(self.clock, tuple(sorted(reply._replace(broker=to[reply.broker]) for reply in self.replies)))


class Controller(NamedTuple):
    """The partition, the registrations, and the active controller's memory besides the log.

    The order of the replicas is not in it. It only decides between several candidates, and an operator can change it at
    any time without moving a replica; so an election is tried with each of them first in the list.
    """

    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: int
    isr: int
    elr: int
    last_known_elr: int
    adding: int
    removing: int
    recovering: bool
    min_isr: int
    registrations: tuple[Registration, ...]
    recovery: Recovery | None

    @property
    def candidates(self) -> int:
        return self.isr | self.elr

    @property
    def effective_min_isr(self) -> int:
        return min(self.min_isr, size(self.replicas))

    def view(self) -> View:
        return View(
            leader=self.leader,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            replicas=self.replicas,
            isr=self.isr,
            adding=self.adding,
            removing=self.removing,
            recovering=self.recovering,
            min_isr=self.min_isr,
            registrations=self.registrations,
        )

    def renamed(self, to: Permutation) -> Controller:
        return self._replace(
            leader=rename_one(self.leader, to),
            replicas=rename_mask(self.replicas, to),
            isr=rename_mask(self.isr, to),
            elr=rename_mask(self.elr, to),
            last_known_elr=rename_mask(self.last_known_elr, to),
            adding=rename_mask(self.adding, to),
            removing=rename_mask(self.removing, to),
            registrations=_renamed_registrations(self.registrations, to),
            recovery=None if self.recovery is None else self.recovery.renamed(to),
        )


class Proposal(NamedTuple):
    """One partition's part of an AlterPartition: the proposed members with their broker epochs."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]

    @property
    def mask(self) -> int:
        mask = 0
        for broker, _ in self.isr:
            mask |= 1 << broker
        return mask

    def renamed(self, to: Permutation) -> Proposal:
        return self._replace(isr=tuple(sorted((to[broker], epoch) for broker, epoch in self.isr)))


class Remote(NamedTuple):
    """A leader's knowledge of a follower."""

    broker: int
    broker_epoch: int
    end_offset: int


class LeaderReplica(NamedTuple):
    """A replica that leads, by the metadata that it has applied. `heard`: followers that fetched in this epoch (a
    ghost)."""

    leader_epoch: int
    partition_epoch: int
    replicas: int
    isr: int
    adding: int
    removing: int
    recovering: bool
    min_isr: int
    registrations: tuple[Registration, ...]
    start_offset: int
    pending: Proposal | None
    maximal: int
    remotes: tuple[Remote, ...]
    heard: int

    def renamed(self, to: Permutation) -> LeaderReplica:
        return self._replace(
            replicas=rename_mask(self.replicas, to),
            isr=rename_mask(self.isr, to),
            adding=rename_mask(self.adding, to),
            removing=rename_mask(self.removing, to),
            registrations=_renamed_registrations(self.registrations, to),
            pending=None if self.pending is None else self.pending.renamed(to),
            maximal=rename_mask(self.maximal, to),
            remotes=tuple(sorted(remote._replace(broker=to[remote.broker]) for remote in self.remotes)),
            heard=rename_mask(self.heard, to),
        )


class FollowerReplica(NamedTuple):
    """A replica that follows `leader`; -1: it does not know a leader yet."""

    leader: int
    leader_epoch: int
    min_isr: int

    def renamed(self, to: Permutation) -> FollowerReplica:
        return self._replace(leader=rename_one(self.leader, to))


Role: TypeAlias = LeaderReplica | FollowerReplica | None
"""None: no replica of the partition."""


class Broker(NamedTuple):
    """One life of a broker and its replica."""

    epoch: int
    log: Log
    epochs: tuple[tuple[int, int], ...]
    """Leader epochs and their start offsets: more than the records have, because an epoch may have no record."""
    high_watermark: int
    role: Role

    def renamed(self, to: Permutation) -> Broker:
        return self if self.role is None else self._replace(role=self.role.renamed(to))

    @property
    def leader_epoch(self) -> int:
        return -1 if self.role is None else self.role.leader_epoch


class Request(NamedTuple):
    """A follower's fetch. It asks for `offset`, so it has everything below."""

    broker: int
    broker_epoch: int
    offset: int
    last_epoch: int
    leader_epoch: int

    def renamed(self, to: Permutation) -> Request:
        return self._replace(broker=to[self.broker])


class Answer(NamedTuple):
    """A leader's answer to a fetch and, for a follower that is out of range, the end of its log."""

    error: int
    high_watermark: int
    records: Log
    diverging: tuple[int, int] | None
    leader_end_offset: int
    request: Request


class AlterRequest(NamedTuple):
    """An AlterPartition on its way to the controller."""

    sender: int
    sender_epoch: int
    proposal: Proposal

    @property
    def hears(self) -> int:
        """The broker that gets the answer."""
        return self.sender

    def renamed(self, to: Permutation) -> Message:
        return self._replace(sender=to[self.sender], proposal=self.proposal.renamed(to))


class AlterAnswer(NamedTuple):
    """The controller's answer on its way back."""

    receiver: int
    proposal: Proposal
    error: int
    leader_epoch: int
    isr: int
    partition_epoch: int
    recovering: bool

    @property
    def hears(self) -> int:
        return self.receiver

    def renamed(self, to: Permutation) -> Message:
        return self._replace(
            receiver=to[self.receiver], proposal=self.proposal.renamed(to), isr=rename_mask(self.isr, to)
        )


class SentFetch(NamedTuple):
    """A fetch on its way to a leader.

    Unless fetches are split, only fetches of an earlier leader epoch or life of the sender.
    """

    receiver: int
    request: Request

    def renamed(self, to: Permutation) -> Message:
        return SentFetch(to[self.receiver], self.request.renamed(to))


class SentAnswer(NamedTuple):
    """A leader's answer to a fetch on its way back, where fetches are split."""

    answer: Answer

    def renamed(self, to: Permutation) -> Message:
        return SentAnswer(self.answer._replace(request=self.answer.request.renamed(to)))


class SentReply(NamedTuple):
    """A broker's answer to GetReplicaLogInfo from an earlier life, on its way to the controller."""

    reply: Reply

    def renamed(self, to: Permutation) -> Message:
        return SentReply(self.reply._replace(broker=to[self.reply.broker]))


Message: TypeAlias = AlterRequest | AlterAnswer | SentFetch | SentAnswer | SentReply


class History(NamedTuple):
    """Ghost variables: only the checker knows them."""

    committed: Log
    """H: the records below T, as they were when the high watermark of a leader first passed them."""
    lossy: int
    """Brokers that lost records since they last joined the ISR."""
    unclean: int
    """Brokers that came back from a crash and have not joined the ISR since."""
    recovered_in: int
    """The leader epoch of the last unclean election; -1: there was none."""
    lost: int
    """Committed records that it cost."""

    @property
    def recovered(self) -> bool:
        return self.recovered_in >= 0

    def renamed(self, to: Permutation) -> History:
        return self._replace(lossy=rename_mask(self.lossy, to), unclean=rename_mask(self.unclean, to))


class Budget(NamedTuple):
    """How often each event may still happen. Other events are not limited."""

    writes: int = 0
    losses: int = 0
    """Crashes that lose the end of a log."""
    crashes: int = 0
    """Crashes that lose nothing: the broker cannot know."""
    restarts: int = 0
    """Clean ones."""
    fences: int = 0
    shutdowns: int = 0
    """Controlled ones, up to the change of leadership."""
    shrinks: int = 0
    """Proposals to drop slow followers."""
    preferred: int = 0
    """Elections of a preferred leader."""
    reassignments: int = 0
    cancellations: int = 0
    min_isr_changes: int = 0
    failovers: int = 0
    """Another controller becomes active."""
    unanswered: int = 0
    """Answers to AlterPartition that are lost."""
    old_fetches: int = 0
    """Fetches that arrive after their sender has changed its epoch or life."""
    old_replies: int = 0
    """Replies about logs that arrive after their sender has restarted."""
