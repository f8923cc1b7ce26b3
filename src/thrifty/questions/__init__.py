"""Questions that analysts ask a log beside replay, frontier and recommend."""

from thrifty.questions.arms import ArmComparison, compare_arms
from thrifty.questions.power import Power, power
from thrifty.questions.readout import Readout, readout
from thrifty.questions.routing import Routing, RoutingValue, value_of
from thrifty.questions.what_if import with_prices

__all__ = [
    "ArmComparison",
    "Power",
    "Readout",
    "Routing",
    "RoutingValue",
    "compare_arms",
    "power",
    "readout",
    "value_of",
    "with_prices",
]
