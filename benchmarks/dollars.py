"""Costs in dollars, known against unknown: what every policy spends on real language-model calls.

    python benchmarks/dollars.py PATH/llm-prompts.jsonl --runs 60

Each line of the file is a prompt that several models answered: {"arms": {name: {"reward": 0.9, "cost": 0.0006}, ...}}. Prompts are
resampled with replacement; a round draws one, and the chosen model's reward and dollars come back. The known costs are the means.
A policy learns unknown costs from what it pays, without a `cost_scale`. Arms come in the order of the file and in the opposite one
("renamed"): the order should change nothing beyond noise. Spend is in dollars per 1,000 calls, with its standard error over runs;
the floor is held if the mean quality is above (1 - alpha) times the best mean reward, less two standard errors.
"""

import argparse
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from thrifty.compiled import driver, kernel
from thrifty.policies import policy
from thrifty.policies.binding import bind_rule, given_terms
from thrifty.policies.step import decide, rule_terms, start_state, take_outcome
from thrifty.problem import Terms
from thrifty.statistics import Outcome, counted
from thrifty.streams import below, make_streams

POLICIES = ("cs-ids", "cs-balance", "cs-direct", "cs-ts", "cs-ucb", "cs-etc", "one-shot-etc")


class Prompts(NamedTuple):
    """(prompts, K) what every model's answer was worth, and what it cost."""

    rewards: Any
    costs: Any


class Streams(NamedTuple):
    """(runs, 4) the prompts, and the policy's own random numbers."""

    world: Any
    own: Any


@driver
def play(rule, given, prompts, streams, pulls):
    """Whole runs on resampled prompts; writes the pulls of every arm."""
    terms = rule_terms(rule, given)
    for run in range(pulls.shape[0]):
        play_run(rule, terms, start_state(rule, terms), prompts, streams.world[run], streams.own[run], pulls[run])


@kernel
def play_run(rule, terms, state, prompts, world, own, pulls):
    """One run; the outcome of every call comes back at once."""
    for t in range(terms.horizon):
        arm, propensity = decide(rule, terms, state, None, own, t)
        prompt = below(world, prompts.rewards.shape[0])
        outcome = Outcome(arm, prompts.rewards[prompt, arm], prompts.costs[prompt, arm], propensity)
        take_outcome(rule, terms, state, None, outcome, counted(outcome), terms.costs)
        pulls[arm] += 1


def read(path: Path) -> tuple[list[str], Prompts]:
    """The names of the models, and their answers."""
    lines = [json.loads(line)["arms"] for line in path.read_text().splitlines()]
    names = list(lines[0])
    table = np.array([[[line[name][what] for name in names] for line in lines] for what in ("reward", "cost")])
    return names, Prompts(table[0], table[1])


def measure(
    label: str, prompts: Prompts, alpha: float, *, known: bool, horizon: int, runs: int
) -> tuple[float, float, float, float]:
    """Spend per 1,000 calls and quality, each with its standard error."""
    means, costs = prompts.rewards.mean(axis=0), prompts.costs.mean(axis=0)
    terms = Terms(n_arms=costs.size, costs=costs if known else None, alpha=alpha, horizon=horizon)
    chosen = policy(label)
    numbers = chosen.numbers(terms)
    streams = Streams(*(make_streams(7, np.array([(run, use) for run in range(runs)])) for use in (0, 1)))
    pulls = np.zeros((runs, costs.size), np.int64)
    bind_rule(play, chosen, terms, numbers)(given_terms(terms, numbers), prompts, streams, pulls)
    spend, quality = pulls @ costs / horizon * 1000, pulls @ means / horizon
    error = 1 / math.sqrt(runs)
    return spend.mean(), spend.std(ddof=1) * error, quality.mean(), quality.std(ddof=1) * error


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, help="prompts with the reward and the cost of every model, one JSON object a line")
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--horizon", type=int, default=10_000)
    parser.add_argument("--policies", nargs="+", default=POLICIES)
    parser.add_argument("--alphas", nargs="+", type=float, default=[0.02, 0.05, 0.1])
    arguments = parser.parse_args()
    names, prompts = read(arguments.path)
    backwards = Prompts(prompts.rewards[:, ::-1].copy(), prompts.costs[:, ::-1].copy())
    best = prompts.rewards.mean(axis=0).max()
    print(f"{len(prompts.rewards)} prompts; {', '.join(names)}")
    rows = []
    for alpha in arguments.alphas:
        for label in arguments.policies:
            options = {"horizon": arguments.horizon, "runs": arguments.runs}
            known = measure(label, prompts, alpha, known=True, **options)
            unknown = measure(label, prompts, alpha, known=False, **options)
            renamed = measure(label, backwards, alpha, known=False, **options)
            held = "yes" if all(q > (1 - alpha) * best - 2 * e for *_, q, e in (unknown, renamed)) else "no"
            spent = [f"{spend:.3f} +- {error:.3f}" for spend, error, *_ in (known, unknown, renamed)]
            ratios = [f"{each[0] / known[0]:.2f}" for each in (unknown, renamed)]
            rows.append((f"{alpha:g}", label, *spent, *ratios, f"{known[2]:.4f}", f"{unknown[2]:.4f}", held))
    header = (
        "alpha",
        "policy",
        "known",
        "unknown",
        "renamed",
        "ratio",
        "renamed",
        "quality, known",
        "quality, unknown",
        "floor held",
    )
    print(_table(header, rows))


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
