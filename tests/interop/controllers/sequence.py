"""One random sequence: five brokers that nobody has met, topics, and some dozens of steps."""

from __future__ import annotations

from functools import partial

from tanist.client.admin import BROKER_RESOURCE
from tests.interop.controllers.choices import MIN_ISR, UNCLEAN_ELECTION, Choices
from tests.interop.controllers.comparison import Comparison
from tests.interop.controllers.pulse import SESSION_MS, Disturbed, Pulse
from tests.interop.controllers.side import LATEST, Side
from tests.interop.controllers.steps import DeleteTopic, Heartbeat, Register, SetConfig, Silence, Step

ATTEMPTS = 5


def play(
    apache: Side,
    tanist: Side,
    seed: int,
    steps: int,
    metadata_version: int = LATEST,
    session_ms: int = SESSION_MS,
) -> Comparison:
    """The whole of it, again if it was disturbed. It ends early where the brokers are not in one state any more."""
    for attempt in range(ATTEMPTS):
        comparison = Comparison(apache, tanist, metadata_version=metadata_version)
        try:
            Sequence(comparison, seed, attempt, session_ms).play(steps)
        except Disturbed:
            continue
        return comparison
    raise Disturbed(f"seed {seed} was disturbed {ATTEMPTS} times: this machine is too busy")


class Sequence:
    def __init__(self, comparison: Comparison, seed: int, attempt: int, session_ms: int) -> None:
        self._comparison = comparison
        self._choices = Choices(seed, attempt, comparison.tanist, comparison.apart)
        self._pulse = Pulse((comparison.apache, comparison.tanist), self._choices.brokers, session_ms)
        comparison.brokers = self._choices.brokers

    def play(self, steps: int) -> None:
        try:
            self._begin()
            for _ in range(steps):
                if self._comparison.over:
                    return
                self._next()
        finally:
            self._end()

    def _next(self) -> None:
        step = self._choices.next()
        if isinstance(step, Register) and not self._choices.hasty():
            self._play(Silence(step.broker_id, partial(self._pulse.silence, step.broker_id)))
        if not self._comparison.over:
            self._play(step)

    def _play(self, step: Step) -> None:
        self._pulse.keep_alive()
        self._pulse.heard(step)
        self._comparison.play(step)
        self._pulse.check()

    def _begin(self) -> None:
        prepare = self._comparison.prepare
        self._comparison.reset_settings()
        prepare(SetConfig(BROKER_RESOURCE, "", MIN_ISR, "1"))
        prepare(SetConfig(BROKER_RESOURCE, "", UNCLEAN_ELECTION, None))
        for broker_id in self._choices.brokers:
            prepare(Register(broker_id, clean=False, incarnation=self._choices.incarnation()))
            unfence = Heartbeat(broker_id)
            self._pulse.heard(unfence)
            prepare(unfence)
        self._play(self._choices.create_topic())

    def _end(self) -> None:
        """Nothing of it leads anything, or is there to lead, in the sequences to come."""
        for topic in self._comparison.topics():
            self._comparison.prepare(DeleteTopic(topic))
        for broker_id in self._choices.brokers:
            self._comparison.prepare(Heartbeat(broker_id, want_fence=True))
            self._comparison.register_all_features(broker_id)
