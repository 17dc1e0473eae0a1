"""A rule switched off for the time of a run, by its number in the catalogue of `tanist lab mutants`.

So that a reader can see what a failure looks like, and a scenario file that came of a broken rule plays as it did.
Only this module asks the catalogue, and it is loaded only when a rule is named. Some of its rules show in *directed*
runs only, which follow a script and not a plan: these are played as they are, and cannot be made smaller.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from tanist.sim.run.profiles import ChaosConfig
from tanist.sim.run.run import Run


def rules() -> dict[str, str]:
    """The rules that can be broken, and what is the case instead."""
    from tanist.lab.mutations.simulator import MUTANTS

    return {name: mutation.rule for name, mutation in MUTANTS.items()}


def broken(mutation: str | None) -> AbstractContextManager[None]:
    """The rule is broken, in this process, while the block runs."""
    if mutation is None:
        return nullcontext()
    from tanist.lab.mutations.simulator import MUTANTS, applied

    return applied(MUTANTS[mutation])


def directed(mutation: str | None) -> Callable[[int], Run] | None:
    """What makes the directed run of a seed, if the rule has one."""
    if mutation is None:
        return None
    from tanist.lab.mutations.simulator import MUTANTS

    found = MUTANTS[mutation]
    return found.play if found.directed else None


def profile(mutation: str | None) -> Callable[[int], ChaosConfig]:
    """The configurations in which a broken rule shows soon; without one, whatever a seed draws."""
    if mutation is None:
        return ChaosConfig.drawn
    from tanist.lab.mutations.simulator import MUTANTS

    play = MUTANTS[mutation].play
    return lambda seed: play(seed).config
