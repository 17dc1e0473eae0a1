"""The workload of records: producers, consumers and observers of each topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from tanist.client.positions import EARLIEST, LATEST
from tanist.sim.checkers.compaction import POLICY, key_of
from tanist.sim.checkers.liveness import LIVENESS_STREAM, LivenessPhase
from tanist.sim.run.coverage import EXPECTED
from tanist.sim.run.workload import Run
from tanist.sim.workload.producer import Producer, no_key
from tanist.sim.workload.readers import Consumer, Observer
from tanist.sim.world.clock import stream


class Records:
    """Of one seed. A `Workload`."""

    expected: ClassVar[Mapping[str, str]] = EXPECTED

    def __init__(self, run: Run) -> None:
        self._run: Final = run

    def play(self, liveness: LivenessPhase) -> None:
        run, world, config = self._run, self._run.world, self._run.config
        producers, consumers, observers = self._producers(), self._consumers(), self._observers()
        clients: list[Producer | Consumer | Observer] = [*producers, *consumers, *observers]
        for client in clients:
            client.start()
        run.begin_faults()
        world.run_for(config.fault_time_ms // 2)
        late = self._consumers("late", config.late_consumers)
        for consumer in late:
            consumer.reads_again = True
            consumer.start()
        consumers += late
        world.run_for(config.fault_time_ms - config.fault_time_ms // 2)
        for consumer in late:
            consumer.reads_again = False
        liveness.run(stream(run.seed, LIVENESS_STREAM), config.left_out, producers, consumers, observers)

    def _producers(self) -> list[Producer]:
        run, config, made = self._run, self._run.config, []
        for topic in config.topics:
            for n in range(config.producers + config.careless_producers):
                careful = n < config.producers
                made.append(
                    Producer(
                        run.world,
                        f"{topic.name}/{'producer' if careful else 'careless'}{n}",
                        run.history,
                        topic.name,
                        topic.partitions,
                        pause_ms=config.pause_ms,
                        event_age_ms=config.event_age_ms if careful else 0,
                        acks=-1 if careful else 1,
                        idempotent=careful,
                        value_bytes=config.value_bytes,
                        key_of=key_of if (POLICY, "compact") in topic.configs else no_key,
                    )
                )
        return made

    def _consumers(self, name: str = "consumer", number: int = 1) -> list[Consumer]:
        return [
            Consumer(
                self._run.world,
                f"{topic.name}/{name}{n or ''}",
                self._run.history,
                topic.name,
                topic.partitions,
                reset=EARLIEST if self._run.config.trims else LATEST,
            )
            for topic in self._run.config.topics
            for n in range(number)
        ]

    def _observers(self) -> list[Observer]:
        return [
            Observer(
                self._run.world,
                f"{topic.name}/observer{n}",
                self._run.history,
                topic.name,
                topic.partitions,
                self._run.checkers.committed_before,
                pause_ms=2 * self._run.config.pause_ms,
            )
            for topic in self._run.config.topics
            for n in range(self._run.config.observers)
        ]
