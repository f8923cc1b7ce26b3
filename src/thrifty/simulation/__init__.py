"""Simulation: one compiled loop for every rule, replications on all cores, results that keep facts."""

from thrifty.simulation.comparison import Comparison, Difference
from thrifty.simulation.results import PolicyRuns, Runs
from thrifty.simulation.runner import SimulationInterrupted, simulate
from thrifty.simulation.setting import Setting
from thrifty.simulation.summaries import mean_interval, summarise
from thrifty.simulation.tables import METRICS

__all__ = [
    "METRICS",
    "Comparison",
    "Difference",
    "PolicyRuns",
    "Runs",
    "Setting",
    "SimulationInterrupted",
    "mean_interval",
    "simulate",
    "summarise",
]
