"""Advice: which policy and alpha to run, worked out from a log by simulation."""

from thrifty.advice.criteria import Criteria
from thrifty.advice.games import Effort
from thrifty.advice.recommendation import Recommendation, recommend

__all__ = ["Criteria", "Effort", "Recommendation", "recommend"]
