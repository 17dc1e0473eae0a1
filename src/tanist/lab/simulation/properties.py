"""The meanings of the simulator's properties, a sentence each, for readers of a failure who do not know their numbers.

The numbers are those of docs/simulator.md, which also names the checkers. `tests/lab/test_lab_run.py` keeps both tables
together.
"""

from __future__ import annotations

from tanist.sim.checkers.violation import CRASH

MEANINGS: dict[str, str] = {
    "S1": "the leader of a partition has every record that was ever committed",
    "S2": "everybody who may be elected (ISR and ELR) has every record that was ever committed",
    "S3": "a leader waits for everybody whom the controller might elect before it calls a record committed",
    "S4": "a record is committed only with min.insync.replicas in the ISR, and when all of them have it",
    "S5": "what is committed is only ever added to",
    "S6": "two replicas that have the same offset from the same leader epoch have the same record there",
    "S7": "what was acknowledged stays, and is held by as many disks as min.insync.replicas promised",
    "S8": "a broker that ended uncleanly may be elected nowhere until it is in sync again",
    "S9": "epochs of brokers, leaders and partitions only grow",
    "S10": "an epoch has one leader: of a partition, and of the quorum",
    "S11": "what a leader of an old epoch says changes nothing",
    "S12": "ISR, ELR, LastKnownElr and leader fit together, and with who is alive",
    "S13": "while the ISR is too small, nobody who has everything is struck from those who may be elected",
    "S14": "only a live broker joins the ISR, and in the life in which its leader has seen it fetch",
    "S15": "a replica becomes eligible (ELR) only by leaving an ISR that gets too small",
    "S16": "all nodes see the same metadata, in the same order",
    "S17": "an acknowledgement with acks=all speaks of a committed record, at the offset that it names",
    "S18": "a consumer is given committed records only, all of them, in order",
    "S19": "a new leader says where the log ends only when it knows what its predecessors committed",
    "S20": "what an idempotent producer sends is written once, in its order, and it is not refused for its sequence",
    "S21": "no committed record is ever cut off, and a follower's new records are its leader's",
    "S22": "what is synced survives a crash, and recovery makes nothing up",
    "S23": "a new leader of the quorum has all metadata that was ever committed",
    "S24": "the quorum's voters change one at a time, once the last change and a record of the leader are committed",
    "S25": "a leader of the quorum is elected, and commits, by a majority of the voters that its own log names",
    "S26": "a log begins where retention or DeleteRecords allows it, never earlier again, and nothing else is gone",
    "S27": "no answer denies what was committed before the broker started",
    "S28": "an exception that a node meets is reported, or ends its process",
    "S29": "a request is carried out only for a client that has proved who it is, and only if an access control entry "
    "allowed it at a moment between its arrival and its answer",
    "S30": "a log directory goes offline only if its disk failed, or what it holds may be torn or damaged",
    "S31": "a client is throttled by the most specific quota that stood at a moment between the arrival of its request "
    "and the answer, for as long as its use demands, and by no other",
    "S32": "nothing of a connection is heard before the time is over that its client was given, and it is heard again "
    "then",
    "S33": "a reassignment that leaves fewer replicas ends when all of them are in sync",
    "S34": "an election is reported as unclean if it was, and only then",
    "S35": "no follower leaves an ISR, and no broker's session ends, without having been late, down or cut off",
    "U1": "an unclean election happens only where the recovery strategy in force allows it",
    "U2": "an unclean election chooses the longest log, by (last leader epoch, end), among those who must be asked",
    "U3": "an answer from before a restart counts for nothing",
    "U4": "Balanced recovery loses nothing while fewer than min.insync.replicas members may have lost anything",
    "U5": "an unclean leader is alone in the ISR of a new epoch, marked as recovering, and it is reported once",
    "U6": "after an unclean election everything holds again, for the new leader's log",
    "C1": "an offset that a group's client learns is in the committed log",
    "C2": "the committed offsets of a group that clients learn never go back",
    "C3": "a partition has one owner in a group, and its assignment is in the committed log",
    "C4": "a partition's new owner in a group commits nothing below what its former owner committed",
    "C5": "when the faults are over, every partition of a group gets one owner whose commits succeed",
    "C6": "what a group coordinator has is the replay of its log, offsets of open transactions included",
    "Q1": "what a share group's member has accepted or rejected, and had an answer to, is given to nobody again",
    "Q2": "a record of a share group is given as often as its limit says at most, and what was released counts",
    "Q3": "no two members of a share group have a record at once",
    "Q4": "nothing below a share partition's stored start offset is given, and that never goes back",
    "Q5": "when the faults are over, a share group is done with every committed record, and passes none over",
    "Q6": "the state of a share partition is the replay of its log, and has all that was answered as stored",
    "Q7": "a member of a share group gets committed records only, and those that were given to it",
    "Q8": "when an operator has changed the offsets of a share group, it goes on from there, or begins anew",
    "Q9": "the dead letters of a share group are those that nobody could process, each at least once",
    "W1": "an active task of a Streams group is one member's at a time",
    "W2": "in one life of a Streams group the epochs of the group, its target and its members do not go back",
    "W3": "a process of a Streams group has a task once, and so no standby of what it works on",
    "W4": "when the faults are over, each task of a Streams group has a member whose commits succeed, and its standbys",
    "W5": "the internal topics of a Streams group have the partitions that its topology needs",
    "W6": "a member of a Streams group commits nothing for a task that another has got",
    "X1": "a transaction is atomic over partitions and offsets: an exactly-once application commits each number once",
    "X2": "a transaction whose commit was acknowledged is committed, one whose abort was acknowledged is not",
    "X3": "a marker ends only the transaction whose epoch it carries",
    "X4": "when a client has a new epoch of a transactional id, no transaction of an older one is committed any more",
    "X5": "the last stable offset never goes back, and is never above the high watermark",
    "X6": "a transaction coordinator's table is the replay of its log",
    "X7": "when the faults are over, no transaction stays open",
    "X8": "on each replica, producers and aborted transactions are those of a scan of its log",
    "X9": "when the faults are over, every exactly-once application commits again",
    "X11": "when another member of a group has a partition, an earlier generation commits no offset of it",
    "X12": "a write of a transaction is refused with an error of Produce only, and never for its sequence",
    "X10": "a reader of committed records gets each of them once, and nothing else",
    "L1": "when the faults are over, every node comes up",
    "L2": "every node comes to have all committed metadata",
    "L3": "every produce request is answered",
    "L4": "every partition has a leader, if one of those who may lead is there",
    "L5": "writes are accepted again",
    "L6": "every replica is in sync again",
    "L7": "all replicas become equal, to the byte, and know it",
    "L8": "no AlterPartition waits for ever",
    "L9": "every reassignment ends, and every move to another log directory",
    "L10": "Balanced recovery elects when all of LastKnownElr are back",
    "L11": "Aggressive recovery elects as soon as any replica is there",
    "L12": "consumers read all that is committed",
    "L13": "the cluster comes to rest: elections and changes of ISRs end",
    "L14": "controllers can be added and removed until the voters are the ones that an operator wants",
    "L15": "DeleteRecords is acknowledged, and no replica's log begins before its leader's",
    "L16": "when the faults are over, every client gets what it is allowed, and is denied what it is not, everywhere",
    "L17": "when the faults are over, every throttled client goes on, and every broker obeys the quotas as committed",
    CRASH: "nobody raises an error of his own: no node, whatever comes in, and nobody who looks on",
}


def breach(property_id: str) -> str:
    """The breach of the property, in a few words."""
    return "an error was raised" if property_id == CRASH else f"{property_id} does not hold"


def meaning(property_id: str) -> str:
    """The meaning of a property; empty if it has no description."""
    return MEANINGS.get(property_id, "")
