"""Simulation: one compiled loop for every rule, replications on all cores, results that keep facts."""

from thrifty.simulation.comparison import Comparison, Difference
from thrifty.simulation.results import METRICS, PolicyRuns, Runs
from thrifty.simulation.runner import simulate
from thrifty.simulation.summaries import mean_interval, summarise

__all__ = ["METRICS", "Comparison", "Difference", "PolicyRuns", "Runs", "mean_interval", "simulate", "summarise"]
