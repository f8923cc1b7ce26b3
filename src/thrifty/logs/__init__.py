"""Replay: ask a log what another arm, alpha or policy would have done. It never sees the truth."""

from thrifty.logs.aggregates import Aggregates, aggregate
from thrifty.logs.columns import Columns
from thrifty.logs.context import ContextSums, context_columns, context_sums
from thrifty.logs.evaluation import Replay, replay
from thrifty.logs.evidence import Evidence, examine
from thrifty.logs.fees import Fees
from thrifty.logs.frontier import Frontier, frontier
from thrifty.logs.prices import PriceList
from thrifty.logs.reading import Log
from thrifty.logs.source import Query

__all__ = [
    "Aggregates",
    "Columns",
    "ContextSums",
    "Evidence",
    "Fees",
    "Frontier",
    "Log",
    "PriceList",
    "Query",
    "Replay",
    "aggregate",
    "context_columns",
    "context_sums",
    "examine",
    "frontier",
    "replay",
]
