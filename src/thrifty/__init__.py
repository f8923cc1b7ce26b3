"""thrifty always takes the cheapest arm that is good enough, and learns online which one that is.

>>> import thrifty
>>> world = thrifty.Instance(means=[0.5, 0.46], costs=[1.0, 0.0], alpha=0.1)
>>> world.optimal_arm
1
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from thrifty.advice import Criteria, Effort, recommend
    from thrifty.client import AsyncClient, Client
    from thrifty.environments import Bernoulli, Beta, ClippedGaussian, Deterministic, Fees, Resampled, World, scaled
    from thrifty.known import KnownOutcomes
    from thrifty.logs import Columns, Log, examine, frontier, replay
    from thrifty.policies import DEFAULT_POLICY, Policy, list_policies, policy
    from thrifty.problem import Instance, Terms
    from thrifty.questions import compare_arms, power, readout, value_of, with_prices
    from thrifty.router import Router
    from thrifty.simulation import Runs, simulate

# Each public name is imported when first used: numba takes half a second to load, and reading an instance needs none of it.
_HOMES = {
    "thrifty.problem": ("Instance", "Terms"),
    "thrifty.advice": ("Criteria", "Effort", "recommend"),
    "thrifty.client": ("AsyncClient", "Client"),
    "thrifty.known": ("KnownOutcomes",),
    "thrifty.logs": ("Columns", "Log", "examine", "frontier", "replay"),
    "thrifty.environments": ("Bernoulli", "Beta", "ClippedGaussian", "Deterministic", "Fees", "Resampled", "World", "scaled"),
    "thrifty.policies": ("DEFAULT_POLICY", "Policy", "list_policies", "policy"),
    "thrifty.questions": ("compare_arms", "power", "readout", "value_of", "with_prices"),
    "thrifty.router": ("Router",),
    "thrifty.simulation": ("Runs", "simulate"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "DEFAULT_POLICY",
    "AsyncClient",
    "Bernoulli",
    "Beta",
    "Client",
    "ClippedGaussian",
    "Columns",
    "Criteria",
    "Deterministic",
    "Effort",
    "Fees",
    "Instance",
    "KnownOutcomes",
    "Log",
    "Policy",
    "Resampled",
    "Router",
    "Runs",
    "Terms",
    "World",
    "compare_arms",
    "examine",
    "frontier",
    "list_policies",
    "policy",
    "power",
    "readout",
    "recommend",
    "replay",
    "scaled",
    "simulate",
    "value_of",
    "with_prices",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'thrifty' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
