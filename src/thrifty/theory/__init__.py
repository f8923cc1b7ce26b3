"""The paper's theory as code: bounds, inequalities, the Bernoulli factory and the reduction."""

from thrifty.theory.bounds import (
    consistent_bound,
    consistent_quality_bound,
    direct_lower_bound,
    etc_bound,
    first_rejection,
    mixture_bound,
    optimal_tau,
    paper_lower_bound,
    paper_tau,
    sharp_lower_bound,
    unknown_costs_bound,
)
from thrifty.theory.factory import flip_linear
from thrifty.theory.inequalities import flip_bound, kl, kl_bound, log_slack, thompson_floor, weight_range
from thrifty.theory.instance_bound import InstanceBound, instance_lower_bound
from thrifty.theory.reduction import Derived, derive

__all__ = [
    "Derived",
    "InstanceBound",
    "consistent_bound",
    "consistent_quality_bound",
    "derive",
    "direct_lower_bound",
    "etc_bound",
    "first_rejection",
    "flip_bound",
    "flip_linear",
    "instance_lower_bound",
    "kl",
    "kl_bound",
    "log_slack",
    "mixture_bound",
    "optimal_tau",
    "paper_lower_bound",
    "paper_tau",
    "sharp_lower_bound",
    "thompson_floor",
    "unknown_costs_bound",
    "weight_range",
]
