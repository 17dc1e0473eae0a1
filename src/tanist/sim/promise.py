"""The promise: the losses that the protocol survives, from the settings in force and the losses so far.

The promise (KIP-966): with min.insync.replicas m, m - 1 replicas may lose their unsynced records at overlapping times,
and no committed record is lost. With the recovery manager only these count as losses. The KIP's first phase trusts the
last leader when no replica is eligible, so there all unclean shutdowns count as soon as one of them is a loss.

Reads the oracle and imports no checker. In a run that must not lose anything, faults and operators ask it what they may
do; the checkers hold the nodes to it. It must never ask the product's own code what is promised.
"""

from __future__ import annotations

from tanist.controller.image.partition_state import PartitionState
from tanist.sim.oracle import Oracle, PartitionOracle, ReplicaMirror

NONE, BALANCED, AGGRESSIVE = "None", "Balanced", "Aggressive"
FIRST_PHASE = "first phase"
"""Without the recovery manager: the last known leader, or any replica if `unclean.leader.election.enable` is true."""

_TOPIC, _BROKER = 2, 4


class Promise:
    """The promise of one run."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self.elr_may_be_off = False
        """Since an operator has asked for it. Without the ELR nothing backs the ISR, and no loss is survived."""

    def strategy(self, oracle: PartitionOracle) -> str:
        """The strategy in force for a partition without an eligible replica."""
        image = self._oracle.image
        static = image.static_configs
        if static.get("unclean.recovery.manager.enabled") == "false" or not image.elr_enabled:
            return FIRST_PHASE
        name = oracle.name.rpartition("-")[0]
        for values in (image.configs.get((_TOPIC, name), {}), image.configs.get((_BROKER, ""), {}), static):
            if "unclean.recovery.strategy" in values:
                return values["unclean.recovery.strategy"]
            if "unclean.leader.election.enable" in values:
                return AGGRESSIVE if values["unclean.leader.election.enable"] == "true" else BALANCED
        return BALANCED

    def anybody_will_do(self, oracle: PartitionOracle) -> bool:
        """The first phase's `unclean.leader.election.enable`."""
        return self._oracle.image.unclean_election_enabled(oracle.name.rpartition("-")[0])

    def may_lack(self, oracle: PartitionOracle, mirror: ReplicaMirror) -> bool:
        """Its page cache was lost, or its disk is damaged."""
        return mirror.lossy_since_epoch is not None or (oracle.key, mirror.node_id) in self._oracle.rotten

    def survives(
        self, node_id: int, state: PartitionState, oracle: PartitionOracle, *, lossy: bool, dying: set[int]
    ) -> bool:
        """Whether nothing is lost if this node dies now, with or without its page cache.

        `dying`: other nodes that will die, with their page caches kept.
        """
        members = {*state.isr, *state.elr, *state.last_known_elr}
        if node_id not in members:
            return True
        mirrors = [mirror for mirror in oracle.mirrors.values() if mirror.released_epoch is None]
        losses = {mirror.node_id for mirror in mirrors if self.may_lack(oracle, mirror)}
        if lossy:
            losses.add(node_id)
        if self.elr_may_be_off:
            return not losses
        if not losses:
            return True
        if self.strategy(oracle) == FIRST_PHASE:
            losses |= {mirror.node_id for mirror in mirrors if mirror.doubtful} | (dying & members) | {node_id}
        return len(losses) < oracle.needed

    def survives_everywhere(self, node_id: int, *, lossy: bool, dying: set[int]) -> bool:
        """The same for all partitions."""
        oracle = self._oracle
        return all(
            self.survives(node_id, state, oracle.partitions[key], lossy=lossy, dying=dying)
            for key, state in oracle.states.items()
        )

    def elr_may_end(self) -> bool:
        """Whether an operator may switch ELR off: not while a replica may lack committed records.

        Without ELR the last member of an ISR stays in it and leads with the log that it has when it returns (Kafka
        before KIP-966), so no replica may lose anything from there on.
        """
        return not any(
            mirror.released_epoch is None and self.may_lack(oracle, mirror)
            for oracle in self._oracle.partitions.values()
            for mirror in oracle.mirrors.values()
        )
