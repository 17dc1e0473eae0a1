"""The simulator in the lab: thousands of runs, shrunk failures, and a run as the moments of a replay."""

from tanist.lab.simulation.plan import Plan, Restriction
from tanist.lab.simulation.player import Played, play

__all__ = ["Plan", "Played", "Restriction", "play"]
