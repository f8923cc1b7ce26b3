"""Decision rules: one family a file, each reading like the paper; `registry` is the only list."""

from thrifty.compiled import builder, kernel, rare
from thrifty.policies.contract import KernelParameter, Number, Policy, Rule
from thrifty.policies.exploration import next_due, start_exploration
from thrifty.policies.registry import DEFAULT_POLICY, distinct_policies, list_policies, policy
from thrifty.policies.selection import cheapest_feasible, highest

__all__ = [
    "DEFAULT_POLICY",
    "KernelParameter",
    "Number",
    "Policy",
    "Rule",
    "builder",
    "cheapest_feasible",
    "distinct_policies",
    "highest",
    "kernel",
    "list_policies",
    "next_due",
    "policy",
    "rare",
    "start_exploration",
]
