"""Random histories of a cluster, and what must hold after each record (safety S2, S8, S9, S12-S15).

The model of the data is the smallest that can be wrong: per partition, the set of brokers that hold everything
committed. Records are committed to the whole ISR, and only while the ISR has min.insync.replicas members; a broker
that restarts uncleanly holds nothing for certain. Each member of ISR and ELR must then hold everything, or
electing it loses records.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tanist.controller.decision import ControllerSettings, Decision
from tanist.controller.image.image import ELR_VERSION, METADATA_VERSION, TOPIC, MetadataImage, PartitionState
from tanist.controller.image.snapshot import from_records, to_records
from tanist.controller.partitions import elections, fencing
from tanist.controller.partitions.alter_partition import alter_partition
from tanist.controller.partitions.elect_leaders import elect_leaders
from tanist.controller.partitions.reassignment import alter_partition_reassignments
from tanist.controller.partitions.unclean_recovery import UncleanRecoveries
from tanist.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tanist.wire.messages.alter_partition_request import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from tanist.wire.messages.elect_leaders_request import ElectLeadersRequest
from tanist.wire.metadata import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from tanist.wire.schema import MetadataRecord

BROKERS = (1, 2, 3, 4, 5)
TOPIC_ID = UUID(int=9)
PARTITIONS = {0: (1, 2, 3), 1: (3, 4, 5, 1)}

some_broker = st.sampled_from(BROKERS)
some_partition = st.sampled_from(sorted(PARTITIONS))


class Cluster(RuleBasedStateMachine):
    """The controller's side of a cluster with ELR on."""

    last_known_leader = True

    @initialize()
    def start(self) -> None:
        self.settings = ControllerSettings(unclean_recovery_manager_enabled=not self.last_known_leader)
        self.image = MetadataImage(self.settings.topic_defaults())
        self.epochs = 100
        self.complete = {number: set(replicas) for number, replicas in PARTITIONS.items()}
        self.lost = {number: set[int]() for number in PARTITIONS}
        self.image.replay(FeatureLevelRecord(name=METADATA_VERSION, feature_level=30))
        self.image.replay(FeatureLevelRecord(name=ELR_VERSION, feature_level=1))
        for broker in BROKERS:
            self._register(broker, fenced=False)
        self.image.replay(TopicRecord(name="t", topic_id=TOPIC_ID))
        self._config(2)
        for number, replicas in PARTITIONS.items():
            self.image.replay(
                PartitionRecord(
                    partition_id=number,
                    topic_id=TOPIC_ID,
                    replicas=replicas,
                    isr=replicas,
                    leader=replicas[0],
                    leader_epoch=0,
                    partition_epoch=0,
                )
            )

    # -- applying records, and what holds of each step

    def _apply(
        self, records: Any, lossy: int | None = None, operator: bool = False, proposed: tuple[int, ...] = ()
    ) -> None:
        for record in records:
            before = dict(self.image.topics[TOPIC_ID].partitions)
            self.image.replay(record)
            for number, after in self.image.topics[TOPIC_ID].partitions.items():
                self._step(number, before[number], after, lossy, operator, proposed)

    def _step(
        self,
        number: int,
        before: PartitionState,
        after: PartitionState,
        lossy: int | None,
        operator: bool,
        proposed: tuple[int, ...],
    ) -> None:
        if before == after:
            return
        # S9
        assert after.partition_epoch == before.partition_epoch + 1
        assert after.leader_epoch - before.leader_epoch in (0, 1)
        assert after.leader_epoch == before.leader_epoch + 1 or after.leader == before.leader
        # S15
        joined = set(after.elr) - set(before.elr)
        assert joined <= set(before.isr)
        assert not joined or len(after.isr) < self._min_isr(after)
        assert lossy not in after.isr + after.elr
        # A46: only a loss (or a smaller minimum, or an unclean election) makes candidates fewer than they have to be.
        candidates, were = set(after.isr + after.elr), set(before.isr + before.elr)
        recovered = after.recovering and not before.recovering
        if lossy is None and not recovered:
            assert len(candidates) >= min(len(were), self._min_isr(after))
        # U5: who leads without having been in sync or eligible is marked, and stands alone.
        leader = after.leader
        if leader not in (-1, before.leader) and leader not in before.isr + before.elr + proposed:
            assert after.recovering
            assert (after.isr, after.elr) == ((leader,), ())
            assert operator or before.last_known_elr == (leader,)  # A16: nobody but an operator elects uncleanly
            self.complete[number] = {leader}

    def _min_isr(self, state: PartitionState) -> int:
        return min(self.image.min_insync_replicas("t"), len(state.replicas))

    def _register(self, broker: int, *, fenced: bool) -> None:
        self.epochs += 1
        record = RegisterBrokerRecord(
            broker_id=broker,
            incarnation_id=UUID(int=self.epochs),
            broker_epoch=self.epochs,
            fenced=fenced,
            log_dirs=(UUID(int=(1 << 70) + broker),),
        )
        self.image.replay(record)

    def _config(self, min_isr: int) -> None:
        self.image.replay(
            ConfigRecord(resource_type=TOPIC, resource_name="t", name="min.insync.replicas", value=str(min_isr))
        )

    def _change(self, broker: int, **change: Any) -> MetadataRecord:
        epoch = self.image.brokers[broker].epoch
        return BrokerRegistrationChangeRecord(broker_id=broker, broker_epoch=epoch, **change)

    def _state(self, number: int) -> PartitionState:
        return self.image.topics[TOPIC_ID].partitions[number]

    # -- what happens

    @rule(number=some_partition)
    def records_are_committed(self, number: int) -> None:
        state = self._state(number)
        if state.has_leader and len(state.isr) >= self._min_isr(state):
            self.complete[number] = set(state.isr)

    @rule(broker=some_broker)
    def fence(self, broker: int) -> None:
        registered = self.image.brokers.get(broker)
        if registered is not None and not registered.fenced:
            self._apply(fencing.broker_fenced(self.image, broker, self.settings))
            self._apply([self._change(broker, fenced=1)])

    @rule(broker=some_broker)
    def unfence(self, broker: int) -> None:
        registered = self.image.brokers.get(broker)
        if registered is not None and registered.fenced and not registered.in_controlled_shutdown:
            records = elections.broker_unfenced(self.image, broker, self.settings)
            self._apply([self._change(broker, fenced=-1)])
            self._apply(records)

    @rule(broker=some_broker)
    def shut_down(self, broker: int) -> None:
        registered = self.image.brokers.get(broker)
        if registered is not None and registered.active:
            records = elections.broker_controlled_shutdown(self.image, broker, self.settings)
            self._apply([self._change(broker, in_controlled_shutdown=1)])
            self._apply(records)

    @rule(broker=some_broker, clean=st.booleans())
    def restart(self, broker: int, clean: bool) -> None:
        clean = clean and broker in self.image.brokers  # rule 83: an unknown broker is never clean
        records = elections.broker_new_incarnation(self.image, broker, self.settings, clean)
        if not clean:
            for number in PARTITIONS:
                self.complete[number].discard(broker)
        self._apply(records, lossy=None if clean else broker)
        self._register(broker, fenced=True)

    @rule(broker=some_broker)
    def unregister(self, broker: int) -> None:
        registered = self.image.brokers.get(broker)
        if registered is not None:
            self._apply(elections.broker_unregistered(self.image, broker, self.settings), lossy=broker)
            self.image.replay(UnregisterBrokerRecord(broker_id=broker, broker_epoch=registered.epoch))

    @rule(broker=some_broker)
    def disk_fails(self, broker: int) -> None:
        registered = self.image.brokers.get(broker)
        if registered is not None:
            self._apply(elections.directories_offline(self.image, broker, self.settings, registered.directories))
            # Its data is not lost but nobody reads it; the process goes down with its only disk.
            self.fence(broker)

    @rule(number=some_partition, members=st.sets(some_broker))
    def leader_proposes_isr(self, number: int, members: set[int]) -> None:
        state = self._state(number)
        if not state.has_leader:
            return
        isr = (state.leader, *sorted(members - {state.leader}))
        request = AlterPartitionRequest(
            broker_id=state.leader,
            broker_epoch=self.image.brokers[state.leader].epoch,
            topics=(
                TopicData(
                    topic_id=TOPIC_ID,
                    partitions=(
                        PartitionData(
                            partition_index=number,
                            leader_epoch=state.leader_epoch,
                            partition_epoch=state.partition_epoch,
                            new_isr_with_epochs=tuple(BrokerState(broker_id=member) for member in isr),
                        ),
                    ),
                ),
            ),
        )
        decision = alter_partition(self.image, request, self.settings)
        if decision.records:
            # It proposes who has caught up with it, so each new member holds what it holds.
            if state.leader in self.complete[number]:
                self.complete[number] |= set(isr)
            self._apply(decision.records, proposed=isr)

    @rule(number=some_partition, replicas=st.lists(some_broker, min_size=1, max_size=4, unique=True))
    def reassign(self, number: int, replicas: list[int]) -> None:
        self._apply(self._reassign(number, tuple(replicas)).records)

    @rule(number=some_partition)
    def cancel(self, number: int) -> None:
        self._apply(self._reassign(number, None).records)

    def _reassign(self, number: int, replicas: tuple[int, ...] | None) -> Decision:
        wanted = ReassignablePartition(partition_index=number, replicas=replicas)
        request = AlterPartitionReassignmentsRequest(topics=(ReassignableTopic(name="t", partitions=(wanted,)),))
        return alter_partition_reassignments(self.image, request, self.settings)

    @rule(min_isr=st.integers(1, 4))
    def min_isr_is_set(self, min_isr: int) -> None:
        records = elections.min_isr_changed(self.image, TOPIC_ID, min_isr)
        self._config(min_isr)
        self._apply(records)

    @rule()
    def balance(self) -> None:
        self._apply(elections.preferred_elections(self.image, self.settings)[0])

    @precondition(lambda self: any(not state.has_leader for state in self.image.topics[TOPIC_ID].partitions.values()))
    @rule()
    def operator_elects_uncleanly(self) -> None:
        request = ElectLeadersRequest(election_type=1, topic_partitions=None)
        self._apply(
            elect_leaders(self.image, request, self.settings, UncleanRecoveries(self.settings), 0, 2).records,
            operator=True,
        )

    # -- what holds at any time

    @invariant()
    def structure(self) -> None:  # S12
        for state in self.image.topics[TOPIC_ID].partitions.values():
            isr, elr, known = set(state.isr), set(state.elr), set(state.last_known_elr)
            assert isr | elr <= set(state.replicas)
            assert not isr & elr
            assert len(isr) < self._min_isr(state) or not elr | known
            assert state.leader in isr if state.has_leader else not isr
            assert all(self.image.brokers[member].active for member in isr)
            assert state.leader_epoch <= state.partition_epoch
            assert len(state.directories) == len(state.replicas)
            if self.last_known_leader:
                assert not (state.has_leader and known)
            else:
                assert not elr & known
                assert not isr & known

    @invariant()
    def candidates_are_complete(self) -> None:  # S2
        for number, state in self.image.topics[TOPIC_ID].partitions.items():
            assert set(state.isr) | set(state.elr) <= self.complete[number]

    @invariant()
    def nobody_who_could_lead_is_left_waiting(self) -> None:  # the safe half of L4
        for state in self.image.topics[TOPIC_ID].partitions.values():
            if not state.has_leader:
                for member in state.elr:
                    assert member not in self.image.brokers or not self.image.brokers[member].active

    @invariant()
    def indexes_agree(self) -> None:
        states = self.image.topics[TOPIC_ID].partitions
        for broker in BROKERS:
            assert [n for _, n in self.image.partitions_in_isr(broker)] == [
                n for n in states if broker in states[n].isr
            ]
            assert [n for _, n in self.image.partitions_in_elr(broker)] == [
                n for n in states if broker in states[n].elr
            ]
            assert [n for _, n in self.image.partitions_on(broker)] == [
                n for n in states if broker in states[n].replicas
            ]
            assert [n for _, n in self.image.partitions_led_by(broker)] == [
                n for n in states if broker == states[n].leader
            ]
        assert [n for _, n in self.image.leaderless_partitions()] == [n for n in states if not states[n].has_leader]

    def teardown(self) -> None:
        if hasattr(self, "image"):
            assert from_records(to_records(self.image)) == self.image


class FullKip(Cluster):
    """The same with LastKnownElr as the KIP has it: who was eligible and lost it."""

    last_known_leader = False


class EnoughCandidates(FullKip):
    """S13: min ISR unchanged and nothing reassigned, the last min ISR members are always known."""

    @rule(min_isr=st.just(2))
    def min_isr_is_set(self, min_isr: int) -> None:
        self._config(min_isr)

    @rule(number=some_partition)
    def reassign(self, number: int) -> None:
        self._apply(self._reassign(number, self._state(number).replicas).records)

    @rule()
    def operator_elects_uncleanly(self) -> None:
        """Starts the count anew, so it is left out."""

    @invariant()
    def enough_candidates(self) -> None:
        for state in self.image.topics[TOPIC_ID].partitions.values():
            known = set(state.isr) | set(state.elr) | set(state.last_known_elr)
            assert len(known) >= self._min_isr(state)


_thorough = settings(max_examples=60, stateful_step_count=40, deadline=None)

TestCluster = Cluster.TestCase
TestCluster.settings = _thorough
TestFullKip = FullKip.TestCase
TestFullKip.settings = _thorough
TestEnoughCandidates = EnoughCandidates.TestCase
TestEnoughCandidates.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)
