"""The paper's figures, tables and claims, each as settings -> result -> table -> picture, and a report of all of them."""

from thrifty.experiments.catalogue import EXPERIMENTS, experiment
from thrifty.experiments.experiment import Claim, Experiment, Finding, Scale
from thrifty.experiments.report import reproduce

__all__ = ["EXPERIMENTS", "Claim", "Experiment", "Finding", "Scale", "experiment", "reproduce"]
