"""The rule behind a step, in a sentence, derived from the controller and the brokers before and after it.

Owns `why`. The numbers are those of docs/kip966.md. Must never decide anything, and gives no reason for a step that
changes nothing an operator would ask about.
"""

from __future__ import annotations

from tanist.controller.partitions.recovery_strategy import Strategy
from tanist.lab.model.partition.components import Broker, Controller, History, LeaderReplica, size
from tanist.lab.model.partition.configuration import Configuration
from tanist.lab.model.partition.judgements import set_text
from tanist.lab.model.steps import Label

_UNCLEAN = ("lose", "crash")


def why(
    configuration: Configuration,
    label: Label,
    controller: tuple[Controller, Controller],
    brokers: tuple[tuple[Broker, ...], tuple[Broker, ...]],
    history: tuple[History, History],
) -> str | None:
    """Each argument is the state before and after. None: no rule applies."""
    found = [
        *_of_controller(configuration, label, *controller),
        *_of_brokers(label, *brokers),
        *_of_commitment(*history, controller[1]),
    ]
    return "; ".join(found) or None


def _of_controller(configuration: Configuration, label: Label, was: Controller, now: Controller) -> list[str]:
    found = []
    me = 1 << label.who if label.who >= 0 else 0
    if label.name in _UNCLEAN and me & was.candidates and not me & now.elr:
        if me & now.isr:
            found.append("nobody asks whether it was shut down cleanly: the last of the ISR stays in it (49)")
        else:
            found.append("it found no mark of a clean shutdown, so it may have lost records and is not eligible (46)")
    left = was.isr & ~now.isr
    if left & now.elr:
        found.append(
            f"the ISR is below min.insync.replicas {now.effective_min_isr}: what was committed before is still on "
            f"{set_text(left & now.elr)}, which stays eligible (41)"
        )
    if was.elr and not now.elr and size(now.isr) >= now.effective_min_isr:
        found.append("the ISR has min.insync.replicas members again, so nobody else is needed (40)")
    if now.leader != was.leader and now.leader >= 0:
        found.append(_election(configuration, was, now))
    if now.leader < 0 <= was.leader:
        found.append(_nobody(configuration, now))
    return found


def _election(configuration: Configuration, was: Controller, now: Controller) -> str:
    chosen = now.leader
    if was.isr >> chosen & 1:
        return f"{chosen + 1} is in the ISR"
    if was.elr >> chosen & 1:
        return f"{chosen + 1} is eligible: it has all that was committed (35)"
    if not configuration.recovery_manager:
        return f"nobody is left in ISR and ELR, and {chosen + 1} was the last known leader (50)"
    if configuration.strategy is Strategy.BALANCED:
        return f"all that were last known to have everything have answered, and the log of {chosen + 1} goes furthest"
    return f"of those that answered, the log of {chosen + 1} goes furthest"


def _nobody(configuration: Configuration, now: Controller) -> str:
    if now.candidates:
        return f"only {set_text(now.candidates)} may lead, and is not there"
    if configuration.recovery_manager and configuration.strategy is not Strategy.NONE:
        return (
            f"nobody surely has everything: replicas are asked how far their logs go ({configuration.strategy.value})"
        )
    return "nobody is left who surely has everything"


def _of_brokers(label: Label, was: tuple[Broker, ...], now: tuple[Broker, ...]) -> list[str]:
    if label.who < 0:
        return []
    before, after = was[label.who], now[label.who]
    if label.name in ("fetch", "learn", "take") and after.log[: len(before.log)] != before.log:
        return ["where leader epochs part, the leader's log counts"]
    role = after.role
    settled = isinstance(role, LeaderReplica) and role.pending is None
    if (
        label.name == "answer"
        and settled
        and isinstance(before.role, LeaderReplica)
        and before.role.pending is not None
    ):
        return ["from here on it counts with the ISR that is committed"]
    return []


def _of_commitment(was: History, now: History, controller: Controller) -> list[str]:
    if len(now.committed) <= len(was.committed):
        return []
    found = "all that the leader counts with have it"
    if size(controller.isr) < controller.effective_min_isr:
        return [f"{found}, however few they are"]
    return [f"{found}, and they are at least min.insync.replicas {controller.effective_min_isr} (1, 4)"]
