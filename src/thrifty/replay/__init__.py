"""Replay: ask a log what another arm, alpha or policy would have done. It never sees the truth."""

from thrifty.replay.aggregates import Aggregates, aggregate
from thrifty.replay.columns import Columns
from thrifty.replay.evaluation import Replay, replay
from thrifty.replay.evidence import Evidence, examine
from thrifty.replay.frontier import Frontier, frontier
from thrifty.replay.prices import PriceList
from thrifty.replay.reading import Log

__all__ = [
    "Aggregates",
    "Columns",
    "Evidence",
    "Frontier",
    "Log",
    "PriceList",
    "Replay",
    "aggregate",
    "examine",
    "frontier",
    "replay",
]
