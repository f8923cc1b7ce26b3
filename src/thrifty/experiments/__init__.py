"""The paper's figures, tables and claims, each as settings -> results -> table, figure and claims.

`thrifty.reports.reproduction` draws them and writes the report.
"""

from thrifty.experiments.catalogue import EXPERIMENTS, experiment
from thrifty.experiments.experiment import Experiment, Finding, Scale
from thrifty.experiments.running import run_experiments
from thrifty.experiments.verdict import Claim

__all__ = ["EXPERIMENTS", "Claim", "Experiment", "Finding", "Scale", "experiment", "run_experiments"]
