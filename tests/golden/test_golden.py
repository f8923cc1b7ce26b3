"""Golden arm sequences: what every policy chose when it was last looked at. A change here is a line in the CHANGELOG.

`python -m tests.golden.test_golden` writes them anew.
"""

import json
from pathlib import Path

import pytest

from thrifty import Instance, simulate

FILE = Path(__file__).parent / "arms.json"
INSTANCE = Instance([0.5, 0.46, 0.2, 0.47], [1.0, 0.0, 0.1, 0.0], 0.1)
LABELS = [
    "cs-ucb", "cs-ts", "cs-ts:prior=gaussian", "cs-ts:prior=shrunk", "cs-etc", "one-shot-etc",
    "cs-ids", "cs-direct", "pe", "pe-cs", "pe-cs:limit=1",
    "cs-ucb:interval=kl", "cs-etc:interval=mixture", "cs-etc:interval=hoeffding",
    "ucb1", "ts", "scalarised", "cheapest", "uniform", "oracle",
]  # fmt: skip


def arms(label: str) -> str:
    trace = simulate(INSTANCE, label, horizon=400, runs=1, seed=2021, trace=True)[label].trace
    assert trace is not None
    return "".join(str(arm) for arm in trace[0])


@pytest.mark.parametrize("label", LABELS)
def test_the_arms_are_those_last_looked_at(label: str) -> None:
    assert arms(label) == json.loads(FILE.read_text())[label]


if __name__ == "__main__":
    FILE.write_text(json.dumps({label: arms(label) for label in LABELS}, indent=1) + "\n")
