"""The router: decide, record, explain, in process."""

from thrifty.router.decision import Decision, Reason
from thrifty.router.explanation import Explanation
from thrifty.router.router import Router
from thrifty.router.settings import Settings

__all__ = ["Decision", "Explanation", "Reason", "Router", "Settings"]
