"""Events of the metadata quorum: elections, leaders that go, logs that are cut, snapshots, changes of the voters.

Those marked as effects are effects of `tanist.quorum` at the same time: the node carries them out, and emits them
before. All others are emitted where the quorum decides.
"""

from __future__ import annotations

from tanist.events.event import Event

# -- leaders


class QuorumLeaderChanged(Event):
    """Effect: the leader or the epoch that this node knows has changed."""

    leader_id: int | None
    epoch: int


class BecameQuorumLeader(Event):
    """Effect: this node leads `epoch`, and everything older than the epoch is committed and readable (rule 149).

    `epoch_start_offset` is where its own records begin. Until this effect, `append` refuses.
    """

    epoch: int
    epoch_start_offset: int


class SteppedDown(Event):
    """Effect: the node that had become the leader of `epoch` leads no more."""

    epoch: int
    uncommitted: int = 0
    """Records in its log that are not known to be committed. They may be lost."""


class LeaderResigned(Event):
    """A leader ends its leadership by itself."""

    epoch: int
    cause: str
    """MAJORITY_SILENT (check quorum, KIP-996), SHUTDOWN, REMOVED (it is no voter, and that is committed), or
    CONTROLLER: its controller cannot go on."""


class LeaderDeposed(Event):
    """A leader hears of a newer epoch, and leads no more."""

    epoch: int
    newer_epoch: int


class LeaderLeaves(Event):
    """A follower hears from its leader that it goes: another voter need not wait for a timeout (rule 139)."""

    leader_id: int
    epoch: int


class QuorumLeaderGone(Event):
    """Nobody listens where the leader was."""

    leader_id: int


# -- elections


class BecameCandidate(Event):
    epoch: int
    voter: bool
    """False: its removal is not known to be committed, and it does not count its own vote."""


class VoteRefused(Event):
    """Rules 135, 136: by who hears a leader, has voted for another, or has more of the log."""

    candidate_id: int
    epoch: int
    pre_vote: bool


class PreVoteLost(Event):
    """No other voter missed the leader, or no majority answered in time."""

    epoch: int
    leader_id: int | None
    """The leader that is followed again, if one is known."""


class ElectionLost(Event):
    """A candidate's time is over, and it is not elected."""

    epoch: int


class LeaderClaimRefused(Event):
    """A node that leads, or led, an older epoch is answered with the newer one."""

    leader_id: int
    epoch: int
    current_epoch: int


# -- the log


class MetadataFetchRefused(Event):
    """A fetch of the metadata log is answered with an error, and the leader (rule 145). Fine."""

    replica_id: int
    error: str


class SnapshotOffered(Event):
    """A fetcher needs what is not in the log any more: the answer names the latest snapshot (rule 146)."""

    replica_id: int
    end_offset: int
    epoch: int


class MetadataLogTruncated(Event):
    """Effect: the local log was cut: no record at or above `offset` is left of it. Nothing committed was among them."""

    offset: int


class SnapshotDownloaded(Event):
    """Effect: the log was replaced by the leader's snapshot. Load it before reading on from its end."""

    end_offset: int
    epoch: int


class SnapshotLoaded(Event):
    """A snapshot took the place of the metadata up to its end: from the node's own disk, or from the leader."""

    end_offset: int
    epoch: int
    controller: bool
    """The node is a controller; false: a broker that is no voter."""


class SnapshotWritten(Event):
    """A snapshot of the applied metadata is on disk, and the log may be cut below it (KIP-630)."""

    end_offset: int
    epoch: int


class MetadataLogNotClosed(Event):
    problem: str


# -- voters (KIP-853)


class VoterAdded(Event):
    """A set with another voter is committed; emitted by the leader of the quorum."""

    voter_id: int
    directory_id: str


class VoterRemoved(Event):
    """A set without this voter is committed; emitted by the leader of the quorum."""

    voter_id: int
    directory_id: str


class VoterChangeRefused(Event):
    """A request to add or remove a voter is refused before anything is done."""

    voter_id: int
    cause: str
    """OTHER_CLUSTER, NOT_LEADER, KRAFT_VERSION, UNDER_WAY (one at a time), NOT_FENCED (the leader has not committed a
    record of its epoch), BAD_VOTER, ALREADY_VOTER, NO_VOTER or LAST_VOTER."""


class VoterChangeEnded(Event):
    """A change of the voters that was begun has ended, as far as its asker learns."""

    cause: str
    """Empty: it is committed. NOT_LEADER: another leads, and whether it will be committed is open. NOT_CAUGHT_UP: the
    new voter was not added. NOT_COMMITTED: not in the time of the request. KRAFT_VERSION: the new voter lacks it."""


class VoterChangeTruncated(Event):
    """A set of voters was cut off with the log: it was never committed."""

    offset: int
