"""The simulator in the lab: thousands of runs, shrunk failures, and a run as the moments of a replay."""

from tanist.lab.simulation.player import Played, play
from tanist.sim.run.chaos_run import Plan
from tanist.sim.run.drawing import Restriction

__all__ = ["Plan", "Played", "Restriction", "play"]
