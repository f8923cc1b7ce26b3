"""Golden arm sequences: what every policy chose when it was last looked at. A change here is a line in the CHANGELOG.

`python -m tests.golden.test_golden` writes them anew.
"""

import json
from pathlib import Path

import pytest

from tests import oracles
from thrifty import Bernoulli, Instance, World, list_policies, simulate

FILE = Path(__file__).parent / "arms.json"
INSTANCE = Instance([0.5, 0.46, 0.2, 0.47], [1.0, 0.0, 0.1, 0.0], 0.1)
UNKNOWN = World([0.5, 0.46, 0.2, 0.47], [Bernoulli(cost) for cost in (0.9, 0.3, 0.1, 0.3)], 0.1)
LABELS = [
    "cs-ucb", "cs-ts", "cs-ts:prior=gaussian", "cs-ts:prior=shrunk", "cs-etc", "one-shot-etc",
    "cs-ids", "cs-direct", "cof", "pe", "pe-cs", "pe-cs:limit=1",
    "cs-ucb:interval=kl", "cs-etc:interval=mixture", "cs-etc:interval=hoeffding",
    "ucb1", "ts", "scalarised", "cheapest", "uniform", "oracle",
    "cs-exp3", "best-known", "round-robin",
]  # fmt: skip
CASES: dict[str, tuple[Instance | World, str]] = {
    **{label: (INSTANCE, label) for label in LABELS},
    **{label: (INSTANCE, label) for label in oracles.SET_TWINS},
    **{f"{name} at alpha = 0": (Instance(INSTANCE.means, INSTANCE.costs, 0.0), name) for name in list_policies()},
    **{f"{name} at alpha = 1": (Instance(INSTANCE.means, INSTANCE.costs, 1.0), name) for name in list_policies()},
    **{
        f"{name}, unknown costs": (UNKNOWN, f"{name}:cost_scale=1" if "cost_scale" in each.parameters else name)
        for name, each in list_policies().items()
        if each.rule_for_unknown_costs
    },
    **{
        f"{name}, costs without a scale": (UNKNOWN, name)
        for name, each in list_policies().items()
        if each.rule_for_unknown_costs and "cost_scale" in each.parameters
    },
}


def arms(case: str) -> str:
    world, label = CASES[case]
    trace = simulate(world, label, horizon=400, runs=1, seed=2021, trace=True)[label].trace
    assert trace is not None
    return "".join(str(arm) for arm in trace[0])


@pytest.mark.parametrize("case", CASES)
def test_the_arms_are_those_last_looked_at(case: str) -> None:
    assert arms(case) == json.loads(FILE.read_text())[case]


def test_every_policy_is_looked_at() -> None:
    assert set(list_policies()) <= {case.partition(":")[0] for case in json.loads(FILE.read_text())}


if __name__ == "__main__":
    FILE.write_text(json.dumps({case: arms(case) for case in CASES}, indent=1) + "\n")
