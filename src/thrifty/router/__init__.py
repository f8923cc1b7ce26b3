"""The router: decide, record, explain, in process."""

from thrifty.actions import ACTIONS
from thrifty.router.change_log import ConflictError
from thrifty.router.decision import Decision, Reason
from thrifty.router.explanation import Explanation
from thrifty.router.restore import ColdDecisionError, DecisionInFlightError, LogRowError
from thrifty.router.rollout import RolloutStatus
from thrifty.router.router import Router
from thrifty.router.settings import Settings

__all__ = [
    "ACTIONS",
    "ColdDecisionError",
    "ConflictError",
    "Decision",
    "DecisionInFlightError",
    "Explanation",
    "LogRowError",
    "Reason",
    "RolloutStatus",
    "Router",
    "Settings",
]
