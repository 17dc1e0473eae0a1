"""The mutations of the transactions' model: rules of `rules_of_transactions` that it covers.

Owns `MODEL_TRANSACTION_MUTATIONS`. The numbers are those of the simulator's list.
"""

from __future__ import annotations

from collections.abc import Mapping

from tanist.lab.mutations import rules_of_transactions as rules
from tanist.lab.mutations.model import Mutation

MODEL_TRANSACTION_MUTATIONS: Mapping[str, Mutation] = {
    number: Mutation(
        number, rules.TRANSACTION_MUTANTS[number].rule, configuration, frozenset(caught_by.split()), patches
    )
    for number, configuration, caught_by, patches in (
        ("T1", "transactions", "X7", rules.t1_answers_before_the_commit),
        ("T3", "transactions", "X1 X2", rules.t3_a_fence_keeps_the_epoch),
        ("T4", "transactions-old", "X1 X2", rules.t4_a_new_producer_keeps_the_epoch),
        ("T5", "transactions-old", "X1 X2", rules.t5_any_epoch_may_end),
        ("T6", "transactions-answers", "X7", rules.t6_prepared_transactions_are_left_after_a_failover),
        ("T8", "transactions", "X7", rules.t8_the_next_transaction_begins_before_the_markers),
        ("T15", "transactions-old", "X7", rules.t15_a_marker_of_any_partition_completes),
    )
}
