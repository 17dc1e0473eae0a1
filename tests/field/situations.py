"""Situations in which planted bugs show, beside those of the mutations (`tanist.lab.mutations.situations`).

Configurations of the simulator: they make a moment likelier, and force none. `seeds.py` names them.
"""

from __future__ import annotations

from dataclasses import replace

from tanist.lab.mutations import situations
from tanist.sim.run.additions import last_epochs
from tanist.sim.run.config import BUMPING, TRANSACTIONS, ChaosConfig
from tanist.sim.run.drawing import config_of
from tanist.sim.workload.operations import Topic


def at_the_last_epochs(seed: int) -> ChaosConfig:
    """Transactions with epochs that run out."""
    config = config_of(seed, TRANSACTIONS)
    return replace(config, properties={**config.properties, **last_epochs(seed, always=True)})


def first_phase(seed: int) -> ChaosConfig:
    """The same without the recovery manager: the last known leader is elected, and may have lost anything."""
    made = situations.recovering("Balanced", may_lose=True)(seed)
    return replace(made, properties={**made.properties, "unclean.recovery.manager.enabled": "false"})


def late_followers(seed: int) -> ChaosConfig:
    """Followers are late, leave the ISR and join it again, while leaders change."""
    drawn = config_of(seed)
    return replace(
        drawn,
        roles={1: "broker", 2: "broker", 3: "broker", 11: "controller"},
        plain=(),
        topics=(Topic("events", 5, 3),),
        careless_producers=2,
        latency_us=(500, 25_000),
        pause_ms=10,
        kinds=("pause", "pause", "slow", "crash-leader"),
        fault_pause_ms=(50, 500),
        operations=("preferred",),
        operation_pause_ms=(300, 1_500),
        properties={**drawn.properties, "replica.lag.time.max.ms": "700", "broker.session.timeout.ms": "3000"},
    )


def failing_directories(seed: int) -> ChaosConfig:
    """One of two log directories fails, of brokers that go on."""
    drawn = config_of(seed)
    return replace(
        drawn,
        directories=2,
        topics=(Topic("events", 4, 3),),
        pause_ms=10,
        kinds=("log-dir-failed", "log-dir-failed", "crash-leader", "stop"),
        fault_pause_ms=(50, 800),
        operations=("preferred", "reassign"),
        operation_pause_ms=(200, 1_000),
    )


def new_logs(seed: int) -> ChaosConfig:
    """Machines lose their power while replicas are new and epochs begin."""
    drawn = config_of(seed)
    return replace(
        drawn,
        topics=(Topic("events", 4, 2),),
        kinds=("power-loss", "blackout", "crash-leader"),
        fault_pause_ms=(50, 600),
        operations=("reassign", "preferred"),
        operation_pause_ms=(30, 300),
        properties={**drawn.properties, "log.flush.interval.messages": "1"},
    )


def calm_transactions(seed: int) -> ChaosConfig:
    """Applications of `transaction.version` 2 without faults and zombies, whose epochs run out."""
    config = at_the_last_epochs(seed).calm()
    return config.with_settings(instances=1, members="", clients=BUMPING, client_pause_ms=1, abandons=False)


def cleaned_offsets(seed: int) -> ChaosConfig:
    """The logs of groups' offsets, with those of transactions, are cleaned all the time, and coordinators load them."""
    config = config_of(seed, TRANSACTIONS).with_settings(client_pause_ms=5, abort_share=0.5)
    cleaning = {
        "log.roll.ms": "300",
        "log.cleaner.backoff.ms": "50",
        "log.cleaner.min.cleanable.ratio": "0.01",
        "log.cleaner.dedupe.buffer.size": "2000",
        "log.segment.delete.delay.ms": "1",
    }
    return replace(
        config,
        kinds=("crash-leader", "crash", "stop"),
        fault_pause_ms=(100, 800),
        may_lose=False,
        properties={**config.properties, **cleaning},
    )
