"""Why a partition is as it is: each case of KIP-966's order of elections in words, held against the controller's."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.controller.decision import ControllerSettings
from tanist.controller.image.image import ELR_VERSION, METADATA_VERSION, MetadataImage, PartitionState
from tanist.controller.partitions.change import Context, Election, Intent, elected_leader
from tanist.controller.partitions.unclean_recovery import Phase, UncleanRecoveries
from tanist.runtime.client.explain import Situation, explain
from tanist.wire.ids import MIGRATING_DIRECTORY, ZERO_UUID
from tanist.wire.metadata import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)

REPLICAS = (1, 2, 3)
LATEST = 30

Case = tuple[dict[str, Any], str]


def situation(**fields: Any) -> Situation:
    offline = frozenset(fields.pop("offline", ()))
    return Situation(**{"leader": -1, "replicas": REPLICAS, "isr": (), "min_isr": 2, "offline": offline, **fields})


FIRST_PHASE: dict[str, Any] = {"recovery_manager": False}
BEFORE: dict[str, Any] = {"recovery_manager": False, "elr_enabled": False}
UNCLEAN: dict[str, Any] = {"unclean_election": True}
AGGRESSIVE: dict[str, Any] = {"strategy": "Aggressive"}
NONE: dict[str, Any] = {"strategy": "None"}

CASES: list[Case] = [
    # Somebody leads.
    (
        {"leader": 1, "isr": (1, 2, 3)},
        "broker 1 leads and every replica is in sync",
    ),
    (
        {"leader": 2, "isr": (1, 2), "offline": (3,)},
        "broker 2 leads, and broker 3 is offline; 2 in sync meet min.insync.replicas=2, one more loss stops acks=all",
    ),
    (
        {"leader": 2, "isr": (2, 3), "min_isr": 1},
        "broker 2 leads, and broker 1 is catching up; 2 in sync meet min.insync.replicas=1, 1 more may fail before "
        "acks=all stops",
    ),
    (
        {"leader": 2, "isr": (2,), "elr": (3,), "offline": (3,)},
        "broker 2 leads, but broker 3 is offline and broker 1 is catching up; with 1 in sync of min.insync.replicas=2, "
        "acks=all is refused and the high watermark stands still (KIP-966 high watermark requirement); "
        "broker 3 has every record below it and may lead (KIP-966 ELR)",
    ),
    (
        {"leader": 2, "isr": (2,), "min_isr": 5, "elr": (1, 3)},
        "broker 2 leads, but brokers 1 and 3 are catching up; with 1 in sync of min.insync.replicas=3, "
        "acks=all is refused and the high watermark stands still (KIP-966 high watermark requirement); "
        "brokers 1 and 3 have every record below it and may lead (KIP-966 ELR)",
    ),
    (
        {"leader": 2, "isr": (2,), "offline": (1, 3), **BEFORE},
        "broker 2 leads, but brokers 1 and 3 are offline; with 1 in sync of min.insync.replicas=2, acks=all is refused "
        "and the high watermark stands still (KIP-966 high watermark requirement)",
    ),
    (
        {"leader": 1, "isr": (1, 2, 3), "last_unclean_epoch": 7},
        "broker 1 leads and every replica is in sync; leader epoch 7 began with an unclean election: records committed "
        "before it may be lost",
    ),
    # 1. "If there are other ISR members, choose an ISR member."
    (
        {"isr": (1, 2), "offline": (1,)},
        "no leader: broker 2 is in the ISR and live, and about to be elected (KIP-966 leader election 1)",
    ),
    (
        {"isr": (1,), "elr": (2,), "offline": (1,)},
        "no leader: broker 1, the last of the ISR, is offline and is waited for (KIP-966 leader election 1)",
    ),
    # 2. "If there are unfenced ELR members, choose an ELR member."
    (
        {"elr": (1, 3), "offline": (1, 2)},
        "no leader: ISR is empty; broker 3 is eligible (ELR) and live, and about to be elected "
        "(KIP-966 leader election 2)",
    ),
    # 3. "If there are fenced ELR members": a. Aggressive, b. otherwise.
    (
        {"elr": (2,), "offline": (2,), **AGGRESSIVE},
        "no leader: ISR is empty; broker 2 is eligible (ELR) but fenced; strategy Aggressive does not wait: "
        "the longest log of brokers 1 and 3 leads (KIP-966 leader election 3a)",
    ),
    (
        {"elr": (2,), "offline": (1, 2, 3), **AGGRESSIVE},
        "no leader: ISR is empty; broker 2 is eligible (ELR) but fenced; strategy Aggressive does not wait: "
        "the first replica to return leads (KIP-966 leader election 3a)",
    ),
    (
        {"elr": (2,), "offline": (2,)},
        "no leader: ISR is empty; broker 2 is eligible (ELR) but fenced; strategy Balanced waits for it "
        "(KIP-966 leader election 3b)",
    ),
    (
        {"elr": (1, 2), "offline": (1, 2), **NONE},
        "no leader: ISR is empty; brokers 1 and 2 are eligible (ELR) but fenced; strategy None waits for the first of "
        "them to return (KIP-966 leader election 3b)",
    ),
    # Its broker is live: a log directory has failed, and no election follows from a broker that returns.
    (
        {"elr": (2,), "offline": (2,), "without_directory": frozenset({2})},
        "no leader: ISR is empty; broker 2 is eligible (ELR) but its log directory is offline; strategy Balanced waits "
        "for it (KIP-966 leader election 3b)",
    ),
    (
        {"elr": (1, 2), "offline": (1, 2), "without_directory": frozenset({1, 2})},
        "no leader: ISR is empty; brokers 1 and 2 are eligible (ELR) but their log directories are offline; strategy "
        "Balanced waits for the first of them to return (KIP-966 leader election 3b)",
    ),
    (
        {"offline": (1,), "last_known_elr": (1,), "without_directory": frozenset({1})},
        "no leader: ISR and ELR are empty; strategy Balanced recovers uncleanly once broker 1 of LastKnownElr is there "
        "again (KIP-966 leader election 4b)",
    ),
    (
        {"elr": (1, 2), "offline": (1, 2), "without_directory": frozenset({1})},
        "no leader: ISR is empty; brokers 1 and 2 are eligible (ELR) but offline; strategy Balanced waits for the "
        "first of them to return (KIP-966 leader election 3b)",
    ),
    # 4. "If there are no ELR members": a. Aggressive, b. Balanced, c. None.
    (
        {"offline": (1,), "last_known_elr": (1,), **AGGRESSIVE},
        "no leader: ISR and ELR are empty; strategy Aggressive recovers uncleanly: the longest log of brokers 2 and 3 "
        "leads (KIP-966 leader election 4a)",
    ),
    (
        {"offline": (1, 3), "last_known_elr": (1, 2)},
        "no leader: ISR and ELR are empty; strategy Balanced recovers uncleanly once broker 1 of LastKnownElr is "
        "unfenced (KIP-966 leader election 4b)",
    ),
    (
        {"offline": (1, 2, 3), "last_known_elr": (1, 2)},
        "no leader: ISR and ELR are empty; strategy Balanced recovers uncleanly once brokers 1 and 2 of LastKnownElr "
        "are unfenced (KIP-966 leader election 4b)",
    ),
    (
        {"offline": (3,), "last_known_elr": (1, 2)},
        "no leader: ISR and ELR are empty; strategy Balanced recovers uncleanly: the longest log of brokers 1 and 2 "
        "leads (KIP-966 leader election 4b)",
    ),
    (
        {"offline": (1,), "unregistered": frozenset({1}), "last_known_elr": (1,)},
        "no leader: ISR and ELR are empty; strategy Balanced recovers uncleanly: the longest log of brokers 2 and 3 "
        "leads (KIP-966 leader election 4b)",
    ),
    (
        {"offline": (1,)},
        "no leader: ISR and ELR are empty; strategy Balanced recovers uncleanly once broker 1 is unfenced "
        "(KIP-966 leader election 4b)",
    ),
    (
        {"last_known_elr": (1,), **NONE},
        "no leader: ISR and ELR are empty; strategy None leaves the choice to an operator: `tanist recovery "
        "plan` shows what each choice loses (KIP-966 leader election 4c)",
    ),
    # The delivery plan's first phase: ELR without the recovery manager, as Apache Kafka.
    (
        {"isr": (1,), "offline": (2, 3), **FIRST_PHASE},
        "no leader: broker 1 is in the ISR and live, and about to be elected (KIP-966 leader election 1)",
    ),
    (
        {"elr": (2,), "offline": (2,), **FIRST_PHASE},
        "no leader: ISR is empty; broker 2 is eligible (ELR) but fenced; unclean.leader.election.enable=false waits "
        "for it (KIP-966 delivery plan)",
    ),
    (
        {"elr": (2, 3), "offline": (2, 3), **FIRST_PHASE},
        "no leader: ISR is empty; brokers 2 and 3 are eligible (ELR) but fenced; unclean.leader.election.enable=false "
        "waits for the first of them to return (KIP-966 delivery plan)",
    ),
    (
        {"elr": (1,), "offline": (1,), **FIRST_PHASE, **UNCLEAN},
        "no leader: ISR is empty; broker 1 is eligible (ELR) but fenced; unclean.leader.election.enable=true does not "
        "wait: broker 2, the first that is live, leads next (KIP-966 delivery plan)",
    ),
    (
        {"last_known_elr": (2,), "offline": (2,), **FIRST_PHASE},
        "no leader: ISR and ELR are empty; unclean.leader.election.enable=false waits for broker 2, the last known "
        "leader (KIP-966 delivery plan)",
    ),
    (
        {"last_known_elr": (2,), **FIRST_PHASE},
        "no leader: ISR and ELR are empty; broker 2, the last known leader, is live and about to be elected "
        "(KIP-966 delivery plan)",
    ),
    (
        {"last_known_elr": (2,), "offline": (2,), **FIRST_PHASE, **UNCLEAN},
        "no leader: ISR and ELR are empty; unclean.leader.election.enable=true: broker 1, the first that is live, "
        "leads next (KIP-966 delivery plan)",
    ),
    (
        {"offline": (1, 2, 3), **FIRST_PHASE, **UNCLEAN},
        "no leader: ISR and ELR are empty; unclean.leader.election.enable=true: the first replica to return leads "
        "(KIP-966 delivery plan)",
    ),
    (
        {**FIRST_PHASE},
        "no leader: ISR and ELR are empty; unclean.leader.election.enable=false, and no last known leader is recorded: "
        "an operator has to choose; `tanist recovery plan` shows what each choice loses (KIP-966 delivery plan)",
    ),
    (
        {"last_known_elr": (1, 2), **FIRST_PHASE},
        "no leader: ISR and ELR are empty; unclean.leader.election.enable=false, and no last known leader is recorded: "
        "an operator has to choose; `tanist recovery plan` shows what each choice loses (KIP-966 delivery plan)",
    ),
    (
        {"isr": (1,), "offline": (1,), **FIRST_PHASE, **UNCLEAN},
        "no leader: broker 1, the last of the ISR, is offline; unclean.leader.election.enable=true does not wait: "
        "broker 2, the first that is live, leads next (KIP-966 delivery plan)",
    ),
    # Kafka as it was before the KIP: the last member stays in the ISR.
    (
        {"isr": (1,), "offline": (1,), **BEFORE},
        "no leader: broker 1, the last of the ISR, is offline; ELR is off and unclean.leader.election.enable=false: "
        "broker 1 is waited for (Kafka before KIP-966)",
    ),
    (
        {"isr": (1,), "offline": (1,), **BEFORE, **UNCLEAN},
        "no leader: broker 1, the last of the ISR, is offline; ELR is off and unclean.leader.election.enable=true: "
        "broker 2, the first that is live, leads next (Kafka before KIP-966)",
    ),
    (
        {"elr": (1,), "offline": (1,), **BEFORE},
        "no leader: ISR is empty; broker 1 is eligible (ELR) but fenced; ELR is off and "
        "unclean.leader.election.enable=false: broker 1, left over from ELR, is waited for (Kafka before KIP-966)",
    ),
    (
        {**BEFORE},
        "no leader: ISR is empty; ELR is off and unclean.leader.election.enable=false: no replica is known to have "
        "every record: an operator has to choose (Kafka before KIP-966)",
    ),
]


@pytest.mark.parametrize(("fields", "said"), CASES)
def test_every_case_has_its_sentence(fields: dict[str, Any], said: str) -> None:
    assert explain(situation(**fields)) == said


subsets = st.lists(st.sampled_from(REPLICAS), unique=True).map(lambda found: tuple(sorted(found)))


@given(
    isr=subsets,
    elr=subsets,
    last_known_elr=subsets,
    offline=subsets,
    elr_enabled=st.booleans(),
    unclean=st.booleans(),
)
def test_what_it_says_of_the_first_phase_is_what_the_controller_would_do(
    isr: tuple[int, ...],
    elr: tuple[int, ...],
    last_known_elr: tuple[int, ...],
    offline: tuple[int, ...],
    elr_enabled: bool,
    unclean: bool,
) -> None:
    elr = tuple(replica for replica in elr if replica not in isr)
    said = explain(
        situation(
            isr=isr,
            elr=elr,
            last_known_elr=last_known_elr,
            offline=offline,
            elr_enabled=elr_enabled,
            unclean_election=unclean,
            recovery_manager=False,
            min_isr=3,
        )
    )
    state = PartitionState(
        replicas=REPLICAS, isr=isr, elr=elr, last_known_elr=last_known_elr, directories=(MIGRATING_DIRECTORY,) * 3
    )
    context = Context(
        min_isr=3,
        elr_enabled=elr_enabled,
        metadata_version=LATEST,
        acceptable=lambda replica: replica not in offline,
    )
    intent = Intent(topic_id=ZERO_UUID, partition=0, election=Election.UNCLEAN if unclean else Election.ONLINE)
    elected = elected_leader(state, intent, context)
    if elected.leader < 0:
        assert "waited for" in said or "waits for" in said or "operator" in said or "replica to return" in said
        assert "about to be elected" not in said
        assert "leads next" not in said
    elif elected.unclean and "last known leader" not in said:
        assert f"broker {elected.leader}, the first that is live, leads next" in said
    else:
        about, _, _ = said.partition(" live, and about to be elected")
        assert "about to be elected" in said
        assert str(elected.leader) in about


PHASES = {
    Phase.ELIGIBLE_AWAITED: ("waits for", "3b"),
    Phase.OPERATOR_AWAITED: ("leaves the choice to an operator", "4c"),
    Phase.LAST_KNOWN_AWAITED: ("recovers uncleanly once", "4b"),
    Phase.COMPARING: (" leads (", ""),
}


@given(
    elr=subsets,
    last_known_elr=subsets,
    fenced=subsets,
    gone=subsets,
    strategy=st.sampled_from(["None", "Balanced", "Aggressive"]),
)
def test_what_it_says_of_the_recovery_manager_is_where_the_manager_stands(
    elr: tuple[int, ...],
    last_known_elr: tuple[int, ...],
    fenced: tuple[int, ...],
    gone: tuple[int, ...],
    strategy: str,
) -> None:
    elr = tuple(replica for replica in elr if replica not in gone)  # who is unregistered leaves the ELR
    said = explain(
        situation(
            elr=elr,
            last_known_elr=last_known_elr,
            offline={*fenced, *gone},
            unregistered=frozenset(gone),
            strategy=strategy,
            min_isr=3,
        )
    )
    image = MetadataImage()
    image.replay(FeatureLevelRecord(name=METADATA_VERSION, feature_level=LATEST))
    image.replay(FeatureLevelRecord(name=ELR_VERSION, feature_level=1))
    for replica in set(REPLICAS) - set(gone):
        image.replay(
            RegisterBrokerRecord(
                broker_id=replica, incarnation_id=UUID(int=replica), broker_epoch=1, fenced=replica in fenced
            )
        )
    key = (UUID(int=1000), 0)
    image.replay(TopicRecord(name="t", topic_id=key[0]))
    for name, value in (("unclean.recovery.strategy", strategy), ("min.insync.replicas", "3")):
        image.replay(ConfigRecord(resource_type=2, resource_name="t", name=name, value=value))
    image.replay(
        PartitionRecord(
            partition_id=0,
            topic_id=key[0],
            replicas=REPLICAS,
            isr=(),
            leader=-1,
            leader_epoch=5,
            partition_epoch=5,
            eligible_leader_replicas=elr,
            last_known_elr=last_known_elr,
        )
    )
    manager = UncleanRecoveries(ControllerSettings())
    manager.activate(image)
    elected = manager.step(image, 0).records
    phase = manager.phase_of(key)
    if elected:
        (record,) = elected
        assert isinstance(record, PartitionChangeRecord)
        assert f"broker {record.leader}" in said or "brokers" in said
        assert "about to be elected (KIP-966 leader election 2)" in said
    else:
        assert phase is not None
        words, rule = PHASES[phase]
        assert words in said
        assert f"KIP-966 leader election {rule}" in said
