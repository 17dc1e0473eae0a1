"""All mutations of the simulator: rules of replication, torn state, invariants, groups, transactions, share groups,
Streams groups, access, quotas.

Owns `MUTANTS`, in listing order. The mutations of the quorum's model are in `quorum`.
"""

from __future__ import annotations

from collections.abc import Mapping

from tanist.lab.mutations import simulator
from tanist.lab.mutations.rules_of_access import ACCESS_MUTANTS
from tanist.lab.mutations.rules_of_exceptions import EXCEPTION_MUTANTS
from tanist.lab.mutations.rules_of_groups import GROUP_MUTANTS
from tanist.lab.mutations.rules_of_invariants import INVARIANT_MUTANTS
from tanist.lab.mutations.rules_of_quotas import QUOTA_MUTANTS
from tanist.lab.mutations.rules_of_shares import SHARE_MUTANTS
from tanist.lab.mutations.rules_of_streams import STREAMS_MUTANTS
from tanist.lab.mutations.rules_of_transactions import TRANSACTION_MUTANTS
from tanist.lab.mutations.simulator import Mutation

MUTANTS: Mapping[str, Mutation] = {
    **simulator.MUTANTS,
    **EXCEPTION_MUTANTS,
    **INVARIANT_MUTANTS,
    **GROUP_MUTANTS,
    **TRANSACTION_MUTANTS,
    **SHARE_MUTANTS,
    **STREAMS_MUTANTS,
    **ACCESS_MUTANTS,
    **QUOTA_MUTANTS,
}
