"""A rule switched off for the time of a run, by its number in the catalogue of `tanist lab mutants`.

It shows readers a failure, and lets a scenario file of a broken rule play again. Only this module imports the
catalogue, and only when a rule is named. Some of its rules show in *directed* runs only, which follow a script and not
a plan: these are played unchanged, and cannot be shrunk.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from tanist.sim.run.chaos_run import ChaosRun
from tanist.sim.run.config import ChaosConfig
from tanist.sim.run.drawing import config_of


def rules() -> dict[str, str]:
    """The rules that can be broken, with the behaviour instead."""
    from tanist.lab.mutations.simulator import MUTANTS

    return {name: mutation.rule for name, mutation in MUTANTS.items()}


def broken(mutation: str | None) -> AbstractContextManager[None]:
    """The rule is broken, in this process, while the block runs."""
    if mutation is None:
        return nullcontext()
    from tanist.lab.mutations.simulator import MUTANTS, applied

    return applied(MUTANTS[mutation])


def quorum_rules() -> dict[str, str]:
    """The rules of the metadata quorum alone that can be broken, with the behaviour instead."""
    from tanist.lab.mutations.quorum import QUORUM_MUTATIONS

    return {name: mutation.rule for name, mutation in QUORUM_MUTATIONS.items()}


def quorum_broken(rule: str) -> AbstractContextManager[None]:
    """The rule of `quorum_rules` is broken, in this process, while the block runs."""
    from tanist.lab.mutations.patching import replaced
    from tanist.lab.mutations.quorum import QUORUM_MUTATIONS

    return replaced(QUORUM_MUTATIONS[rule].patches())


def directed(mutation: str) -> Callable[[int], ChaosRun] | None:
    """The function that makes the directed run of a seed, if the rule has one."""
    from tanist.lab.mutations.simulator import MUTANTS

    found = MUTANTS[mutation]
    return found.play if found.directed else None


def profile(mutation: str) -> Callable[[int], ChaosConfig]:
    """The configurations in which a broken rule shows soon; those that seeds draw, if it shows in directed runs."""
    from tanist.lab.mutations.simulator import MUTANTS

    found = MUTANTS[mutation]
    return config_of if found.directed else lambda seed: found.play(seed).config
