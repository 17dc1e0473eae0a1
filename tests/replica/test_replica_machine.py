"""Three replicas, a controller, and whatever can happen to them, in any order: safety must hold after every step.

The machine has what a simulator has: messages that are delayed, reordered, repeated by their senders and lost; brokers
that learn of the metadata late, one record at a time or many at once; fencing, elections, restarts that lose no data.
What is checked after each step is in `Stage.check`: S1-S6, S10, S11, S14, S17, S18 and S21. That the machine can find
something is shown on mutants. `test_replica_walk` looks further; this one tells a short story of what it finds.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tanist.lab.scenarios.replica import LAG_MS
from tanist.replica.partition import Partition
from tests.replica.replica_controller import Violation
from tests.replica.replica_mutants import MUTANTS
from tests.replica.replica_stage import Stage

MESSAGES_MAX = 12
brokers = st.integers(1, 3)


class ReplicaMachine(RuleBasedStateMachine):
    partition_class: type[Partition] = Partition

    @initialize(min_isr=st.sampled_from([2, 2, 1, 3]), fetch_max=st.sampled_from([None, None, 1]))
    def begin(self, min_isr: int, fetch_max: int | None) -> None:
        self.stage = Stage(3, min_isr, self.partition_class, fetch_max_entries=fetch_max)

    # ---- clients

    @rule(broker=brokers, count=st.integers(1, 3), acks=st.sampled_from([1, -1]))
    def produce(self, broker: int, count: int, acks: int) -> None:
        self.stage.append(broker, count, acks)

    # ---- replication, whole and in pieces

    @rule(broker=brokers)
    def fetch(self, broker: int) -> None:
        self.stage.fetch(broker)

    @rule(broker=brokers)
    def ask(self, broker: int) -> None:
        self.stage.ask(broker)

    @precondition(lambda self: len(self.stage.messages) < MESSAGES_MAX)
    @rule(broker=brokers)
    def send_fetch(self, broker: int) -> None:
        self.stage.send_fetch(broker)

    @precondition(lambda self: self.stage.messages)
    @rule(data=st.data())
    def deliver(self, data: st.DataObject) -> None:
        self.stage.deliver(data.draw(st.sampled_from(self.stage.messages)))

    @precondition(lambda self: self.stage.messages)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        self.stage.drop(data.draw(st.sampled_from(self.stage.messages)))

    # ---- the controller

    @rule(broker=brokers)
    def fence(self, broker: int) -> None:
        self.stage.controller.fence(broker)

    @rule(broker=brokers)
    def unfence(self, broker: int) -> None:
        self.stage.controller.unfence(broker)

    @rule(broker=brokers)
    def shut_down(self, broker: int) -> None:
        self.stage.controller.shut_down(broker)

    @rule(broker=brokers)
    def prefer(self, broker: int) -> None:
        self.stage.controller.prefer(broker)

    @rule()
    def settle_proposals(self) -> None:
        self.stage.settle_proposals()

    @rule(broker=brokers)
    def learn(self, broker: int) -> None:
        self.stage.learn(broker)

    @rule(broker=brokers)
    def learn_next(self, broker: int) -> None:
        self.stage.learn_next(broker)

    @rule()
    def learn_all(self) -> None:
        self.stage.learn_all()

    # ---- brokers and time

    @rule(broker=brokers, checkpoint=st.sampled_from([None, 0]))
    def restart(self, broker: int, checkpoint: int | None) -> None:
        self.stage.restart(broker, checkpoint=checkpoint)

    @rule(broker=brokers, duration_ms=st.sampled_from([1, LAG_MS // 2, LAG_MS + 1]))
    def time_passes(self, broker: int, duration_ms: int) -> None:
        self.stage.now_ms += duration_ms
        self.stage.check_lag(broker)

    # ---- what must hold

    @invariant()
    def safe(self) -> None:
        self.stage.check()


TestReplicaMachine = ReplicaMachine.TestCase
TestReplicaMachine.settings = settings(
    max_examples=60, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
)

FOUND_BY_THE_MACHINE = {
    "A1": {"S4"},
    "A8": {"S2", "S3", "S4"},
    "A9": {"S2", "S3", "S4"},
    "A17": {"S4"},
    "A18": {"S4"},
}


@pytest.mark.parametrize("mutation", FOUND_BY_THE_MACHINE)
def test_machine_finds_mutant(mutation: str) -> None:
    machine = type("MutantMachine", (ReplicaMachine,), {"partition_class": MUTANTS[mutation]})
    budget = settings(
        max_examples=400,
        stateful_step_count=60,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],  # found is enough here: shrinking is for people who have to read the trace
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    with pytest.raises(Violation) as caught:
        run_state_machine_as_test(machine, settings=budget)
    assert caught.value.name in FOUND_BY_THE_MACHINE[mutation]
