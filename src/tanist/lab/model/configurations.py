"""The shipped configurations, by their names in `tanist lab check --config`."""

from __future__ import annotations

from collections.abc import Mapping

from tanist.controller.partitions.recovery_strategy import Strategy
from tanist.lab.model.partition.components import Budget
from tanist.lab.model.partition.configuration import Configuration
from tanist.lab.model.quorum.model import QuorumBudget, QuorumConfiguration
from tanist.lab.model.transactions.model import TransactionsConfiguration
from tanist.lab.model.transactions.state import TransactionBudget

_ALL = (
    Configuration(
        name="last-replica-standing",
        about="KIP-966's scenario: two brokers are fenced, and the last one loses its records in a crash",
        budget=Budget(writes=1, losses=1, fences=2),
    ),
    Configuration(
        name="one-fencing",
        about="one fencing, and one crash that takes records",
        budget=Budget(writes=1, losses=1, fences=1),
    ),
    Configuration(
        name="two-losses",
        about="one fencing, and two crashes that take records",
        budget=Budget(writes=1, losses=2, fences=1),
    ),
    Configuration(
        name="two-of-each",
        about="two fencings, and two crashes that take records",
        budget=Budget(writes=1, losses=2, fences=2),
    ),
    Configuration(
        name="min-isr-1",
        about="min.insync.replicas is 1: one crash that takes records, and one fencing",
        budget=Budget(writes=1, losses=1, fences=1),
        min_isr=1,
    ),
    Configuration(
        name="min-isr-3",
        about="min.insync.replicas is 3, as many as there are replicas",
        budget=Budget(writes=1, losses=1, fences=1),
        min_isr=3,
    ),
    Configuration(
        name="slow-followers",
        about="followers are slow, and leave the ISR for it; one fencing",
        budget=Budget(writes=1, fences=1, shrinks=2),
    ),
    Configuration(
        name="unanswered",
        about="an answer to AlterPartition is lost; one fencing, one slow follower",
        budget=Budget(writes=1, fences=1, shrinks=1, unanswered=1),
    ),
    Configuration(
        name="one-outside",
        about="from where a record is committed without the third replica, which fetches again; a crash with a loss",
        budget=Budget(writes=1, losses=1),
        start=("write 1", "fetch 2", "fence 3", "unfence 3", "learn 1", "fetch 2"),
    ),
    Configuration(
        name="two-outside",
        about="from where two replicas have left the ISR and fetch again; slow followers, lost answers, a crash",
        budget=Budget(writes=1, losses=1, shrinks=1, unanswered=1),
        start=("fence 2", "fence 3", "unfence 2", "unfence 3", "learn 1"),
    ),
    Configuration(
        name="two-records",
        about="logs that diverge: two records with acks=1, fetched one by one, and two fencings",
        budget=Budget(writes=2, fences=2),
        acks=1,
        records_a_fetch=1,
    ),
    Configuration(
        name="old-fetches",
        about="a fetch arrives when its sender follows another already: two fencings, a record with acks=1",
        budget=Budget(writes=1, fences=2, old_fetches=1),
        acks=1,
    ),
    Configuration(
        name="preferred-leaders",
        about="the leadership is given to another member of the ISR, twice",
        budget=Budget(writes=1, preferred=2),
        acks=1,
    ),
    Configuration(
        name="checkpoints",
        about="restarts, clean and with a loss, that may find the last high watermark; one fencing",
        budget=Budget(writes=1, losses=1, restarts=1, fences=1),
        checkpoints=True,
    ),
    Configuration(
        name="controlled-shutdown",
        about="one broker shuts down and comes back, another is fenced",
        budget=Budget(writes=1, fences=1, shutdowns=1, restarts=1),
    ),
    Configuration(
        name="min-isr-changes",
        about="min.insync.replicas goes up or down by one; two fencings",
        budget=Budget(writes=1, fences=2, min_isr_changes=1),
    ),
    Configuration(
        name="reassignment",
        about="four brokers: a replica moves to the fourth, or is called back; one fencing",
        budget=Budget(writes=1, fences=1, reassignments=1, cancellations=1),
        brokers=4,
    ),
    Configuration(
        name="reassignment-under-min-isr",
        about="four brokers, from where two replicas are fenced and the third is to leave; a crash that takes records",
        budget=Budget(writes=1, losses=1),
        brokers=4,
        start=("reassign to 2,3,4", "fence 2", "fence 3", "learn 1", "learn 4"),
    ),
    Configuration(
        name="balanced-recovery",
        about="strategy Balanced, min ISR 3: two crashes that take records, and one that does not",
        budget=Budget(writes=1, losses=2, crashes=1),
        min_isr=3,
        strategy=Strategy.BALANCED,
    ),
    Configuration(
        name="all-crashed",
        about="strategy Balanced, from where all have crashed one after the other; then one loses its records",
        budget=Budget(losses=1, old_replies=1),
        strategy=Strategy.BALANCED,
        start=("write 1", "fetch 2", "fetch 3", "fetch 2", "fetch 3", "crash 1 -> 2", "crash 2 -> 3", "crash 3"),
    ),
    Configuration(
        name="diverged-and-crashed",
        about="strategy Balanced, from where a longer log with older records stands beside a shorter one",
        budget=Budget(crashes=2),
        strategy=Strategy.BALANCED,
        acks=1,
        start=("write 1", "write 1", "fence 1 -> 2", "learn 2", "write 2"),
    ),
    Configuration(
        name="aggressive-recovery",
        about="strategy Aggressive: two fencings, and a crash that takes records",
        budget=Budget(writes=1, losses=1, fences=2),
        strategy=Strategy.AGGRESSIVE,
    ),
    Configuration(
        name="first-phase",
        about="KIP-966 as Apache Kafka ships it, where the last known leader is elected: a crash that takes nothing",
        budget=Budget(writes=1, crashes=2, fences=1),
        recovery_manager=False,
    ),
)

_ALL_FETCH = ("fetch 2 from 1", "fetch 3 from 1", "fetch 2 from 1", "fetch 3 from 1")

_QUORUM = (
    QuorumConfiguration(
        name="quorum",
        about="three controllers elect a leader, and another: four timeouts, a record",
        budget=QuorumBudget(timeouts=4, writes=1),
    ),
    QuorumConfiguration(
        name="quorum-crashes",
        about="three controllers, one of which crashes and loses nothing: four timeouts, a record",
        budget=QuorumBudget(timeouts=4, writes=1, crashes=1),
    ),
    QuorumConfiguration(
        name="quorum-losses",
        about="three controllers, one of which loses power: three timeouts, a record",
        budget=QuorumBudget(timeouts=3, writes=1, losses=1),
    ),
    QuorumConfiguration(
        name="quorum-stale-asks",
        about="three controllers, and a request for a vote that arrives late: four timeouts",
        budget=QuorumBudget(timeouts=4, stale_asks=1),
    ),
    QuorumConfiguration(
        name="quorum-old-epoch",
        about="three controllers: from where two have led, and each has an epoch that nobody else has",
        budget=QuorumBudget(timeouts=2),
        batch_a_fetch=True,
        start=(
            "timeout 1",
            "ask 1 the pre-vote of 2",
            "ask 1 the vote of 2",
            "timeout 3",
            "ask 3 the pre-vote of 2",
            "timeout 3",
            "ask 3 the pre-vote of 2",
            "ask 3 the vote of 2",
        ),
    ),
    QuorumConfiguration(
        name="quorum-voter-changes",
        about="two controllers and a third that is no voter: one is added or removed while leaders change",
        voters=2,
        outside=1,
        budget=QuorumBudget(timeouts=3, changes=1),
    ),
    QuorumConfiguration(
        name="quorum-two-changes",
        about="three voters, one of which leads: two of them are removed, and another leader is elected",
        outside=0,
        budget=QuorumBudget(timeouts=2, changes=2),
        start=("timeout 1", "ask 1 the pre-vote of 2", "ask 1 the vote of 2", *_ALL_FETCH),
    ),
    QuorumConfiguration(
        name="quorum-forked-changes",
        about="four voters: a removal that never left its leader, and a second leader that has committed nothing yet",
        voters=4,
        outside=0,
        budget=QuorumBudget(timeouts=1, changes=1),
        start=(
            "timeout 1",
            "ask 1 the pre-vote of 2",
            "ask 1 the pre-vote of 3",
            "ask 1 the vote of 2",
            "ask 1 the vote of 3",
            *("fetch 2 from 1", "fetch 3 from 1", "fetch 4 from 1") * 2,
            "change 1 removes 4",
            "timeout 2",
            "timeout 3",
            "timeout 4",
            "ask 4 the pre-vote of 2",
            "ask 4 the pre-vote of 3",
            "ask 4 the vote of 2",
            "ask 4 the vote of 3",
            "timeout 1",
            "timeout 1",
        ),
    ),
)

_TRANSACTIONS = (
    TransactionsConfiguration(
        name="transactions",
        about="two transactions of one id: the coordinator fails over, one takes too long, a request or marker is late",
        budget=TransactionBudget(transactions=2, failovers=1, timeouts=1, delayed=1),
    ),
    TransactionsConfiguration(
        name="transactions-answers",
        about="two transactions of one id: an answer is lost, one is aborted, the coordinator fails over",
        budget=TransactionBudget(transactions=2, failovers=1, unanswered=1, aborts=1),
    ),
    TransactionsConfiguration(
        name="transactions-old",
        about="two transactions of old clients: the coordinator fails over, one takes too long, an answer is lost",
        budget=TransactionBudget(transactions=2, failovers=1, timeouts=1, unanswered=1),
        bumps=False,
    ),
    TransactionsConfiguration(
        name="transactions-late-end",
        about="two transactions of old clients, and a request that is late: KAFKA-17754",
        budget=TransactionBudget(transactions=2, delayed=1),
        bumps=False,
    ),
)

CONFIGURATIONS: Mapping[str, Configuration | QuorumConfiguration | TransactionsConfiguration] = {
    each.name: each for each in (*_ALL, *_QUORUM, *_TRANSACTIONS)
}
