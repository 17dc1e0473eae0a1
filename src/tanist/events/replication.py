"""Events of replicas: roles, the ISR, high watermarks, truncations, and what fetches and produces are refused.

Emitted by `replica` and `broker/replication`. A `partition` is "events-0". Errors are Kafka's codes. Those that say
*fine* come with records or fetches, and are emitted only if somebody wants them (`stream.Events.fine`).
"""

from __future__ import annotations

from tanist.events.event import Event

# ---- roles


class BecameLeader(Event):
    """This replica leads, in a leader epoch that it had not led in before (rule 22)."""

    partition: str
    leader_epoch: int
    leader_epoch_start_offset: int


class SucceededItself(Event):
    """A leader has been elected again. Its followers' offsets hold if nobody can have led in between (rule 14)."""

    partition: str
    leader_epoch: int
    remembers_followers: bool


class BecameFollower(Event):
    """This replica follows `leader` (-1: none yet), in a leader epoch that is new to it."""

    partition: str
    leader: int
    leader_epoch: int


class StoppedReplicating(Event):
    """This broker is no replica of the partition any more."""

    partition: str
    leader_epoch: int


# ---- the ISR, by its leader


class IsrProposed(Event):
    """The leader wants another ISR than the committed one (rules 9-12)."""

    partition: str
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    """The committed one, in which nothing has changed yet."""
    proposed: tuple[int, ...]


class IsrChanged(Event):
    """The committed ISR has changed, by our proposal or by the controller's decision."""

    partition: str
    isr: tuple[int, ...]
    grew: tuple[int, ...]
    shrank: tuple[int, ...]


class IsrUpdateFailed(Event):
    """The controller did not take our proposal (rule 18). `rolled_back`: the committed ISR counts again."""

    partition: str
    error: int
    rolled_back: bool


class IsrProposalRepeated(Event):
    """AlterPartition got no answer, or failed as a whole. It may have been applied: it is sent again (rule 21)."""

    partition: str
    leader_epoch: int
    partition_epoch: int


class IsrProposalEnded(Event):
    """Metadata has ended a proposal: the controller has moved on (rule 25)."""

    partition: str
    leader_epoch: int
    partition_epoch: int


class IsrAnswerIgnored(Event):
    """The answer to a proposal does not count (rule 20).

    `reason`: "overtaken" by metadata or another proposal; "replaced", the role that proposed is over; "ahead" of the
    metadata, which the leader waits for.
    """

    partition: str
    reason: str


class IsrJoinDelayed(Event):
    """Fine. A follower outside the ISR has fetched and may not join it yet (rules 11, 15).

    `reason`: it is behind the "high watermark" or the "leader epoch", it is not "eligible", or another proposal is
    "pending".
    """

    partition: str
    broker_id: int
    reason: str


# ---- high watermarks


class HighWatermarkMoved(Event):
    """Fine. The leader has committed up to here."""

    partition: str
    previous: int
    high_watermark: int
    isr: tuple[int, ...]
    """The committed one."""
    proposed: tuple[int, ...]
    """What the leader has proposed; empty if nothing is pending."""


class HighWatermarkWaits(Event):
    """Fine. The high watermark is held back for a follower outside the ISR that is about to join it (rule 4)."""

    partition: str
    broker_id: int
    log_end_offset: int


class HighWatermarkLearned(Event):
    """Fine. A follower has learned another high watermark from its leader. It may be a lower one (rule 7)."""

    partition: str
    previous: int
    high_watermark: int


# ---- fetches and produces


class FollowerFetched(Event):
    """Fine. A leader has taken a follower's fetch: the follower has all records below `fetch_offset`."""

    partition: str
    broker_id: int
    broker_epoch: int
    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int


class FetchRefused(Event):
    """Fine. A leader has refused a follower's fetch.

    `reason`: its "leader epoch" is another one (KIP-320), it is "no replica" (rule 108), it comes from a "former life"
    of the broker (rule 16), or its "offset" is out of range.
    """

    partition: str
    broker_id: int
    current_leader_epoch: int
    """The fetch's; `leader_epoch` is the leader's."""
    leader_epoch: int
    error: int
    reason: str


class DivergenceFound(Event):
    """A follower's log diverges from its leader's beyond `end_offset` of `epoch`, at the latest (rule 113)."""

    partition: str
    broker_id: int
    fetch_offset: int
    last_fetched_epoch: int
    epoch: int
    end_offset: int


class ProduceRefused(Event):
    """Fine. A leader appends nothing: with acks=all, too few replicas are in sync (rule 118)."""

    partition: str
    isr: tuple[int, ...]
    min_isr: int


class FetchAnswerDropped(Event):
    """Fine. The answer to an older fetch: of another leader epoch, or from before a truncation or an append."""

    partition: str
    leader_epoch: int
    offset: int
    """Of that fetch."""


class FetchFailed(Event):
    """Fine. The leader has answered a follower's fetch with an error: it asks again in `delay_ms`."""

    partition: str
    leader: int
    leader_epoch: int
    error: int
    delay_ms: int


class FollowerFenced(Event):
    """The leader knows a newer leader epoch: this follower waits until it hears of it."""

    partition: str
    leader: int
    leader_epoch: int


class RecordsRefused(Event):
    """What the leader of the epoch has sent cannot follow this log: nothing of it was appended."""

    partition: str
    leader: int
    leader_epoch: int
    error: int
    reason: str


class FetchResponseMalformed(Event):
    """A leader's answer to a fetch cannot be parsed."""

    leader: int
    reason: str


class ReplicationThrottled(Event):
    """Fine. This broker's rate as a "leader" or a "follower" is exceeded for now (KIP-73)."""

    side: str


# ---- truncations


class CutAnnounced(Event):
    """A follower is about to cut records off, and waits until they are saved (`storage.RecordsSalvaged`)."""

    partition: str
    leader_epoch: int
    offset: int
    end_offset: int
    high_watermark: int
    fully: bool
    reason: str


class LogTruncated(Event):
    """The follower's log was cut from `previous_end_offset` to `offset`, or emptied and restarted there (`fully`).

    `previous_high_watermark` above `offset` means that records which had been committed, as far as this replica knew,
    are gone from it: only an unclean election explains that (rule 115).
    """

    partition: str
    offset: int
    previous_end_offset: int
    previous_high_watermark: int
    fully: bool = False


class TruncationUnfinished(Event):
    """The leader has named an epoch that this log never had: it is cut, and the next fetch says how much more has to
    go (KIP-279).
    """

    partition: str
    epoch: int
    offset: int


# ---- which replicas are here


class ReplicaDeleted(Event):
    """The metadata does not place the partition here any more: its log is deleted.

    `at_start`: it was taken away while the broker was down. Else its topic was deleted, or it was reassigned.
    """

    partition: str
    at_start: bool


class ReplicaUnknown(Event):
    """A log without a topic id that the metadata does not place here. It is not ours to delete: it stays."""

    partition: str


class ReplicaOfDeletedTopic(Event):
    """The log on disk belongs to another topic of that name, which is deleted (A50). So is the log."""

    partition: str


class ReplicaFoundTwice(Event):
    """The partition lies in two log directories. The older log, in `older_directory`, is deleted."""

    partition: str
    older_directory: str


class ReplicaMoves(Event):
    """An operator moves the replica from one log directory of the broker to another (KIP-113): copying begins."""

    partition: str
    source: str
    target: str


class ReplicaMoved(Event):
    """The replica has all of its log in the other directory, and is served from there."""

    partition: str
    source: str
    target: str


class ReplicaMoveEnded(Event):
    """The replica stays in its log directory: it does not go to `target` any more."""

    partition: str
    target: str
    reason: str


class ReplicasWait(Event):
    """Too many files are open: this new replica has to wait, and others after it."""

    partition: str


class ReplicasWaitNoMore(Event):
    """Files can be opened again: the logs of the new replicas that waited are made."""

    replicas: int
