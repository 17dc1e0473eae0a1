"""All rules that the simulator is examined with: those of replication, and those of consumer groups.

Owns `MUTANTS`, in the order in which they are listed. What follows plans of its own is not here (`quorum`).
"""

from __future__ import annotations

from collections.abc import Mapping

from tanist.lab.mutations import simulator
from tanist.lab.mutations.rules_of_groups import GROUP_MUTANTS
from tanist.lab.mutations.simulator import Mutation

MUTANTS: Mapping[str, Mutation] = {**simulator.MUTANTS, **GROUP_MUTANTS}
