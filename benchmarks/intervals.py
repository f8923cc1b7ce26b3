"""How often intervals of a mean regret cover the truth, and how much tapes sharpen a comparison.

    python benchmarks/intervals.py [--runs 10000]

The truth is the mean of one long sample. Samples of 10, 20, 50 and 100 runs are drawn from it, and the interval of each is compared
with the truth. On two cores it takes five minutes.
"""

import argparse

import numpy as np

from thrifty import Runs, simulate
from thrifty.arrays import Floats
from thrifty.environments.families import figure_1
from thrifty.simulation import mean_interval

HORIZON = 10_000
LEARNERS = ("cs-ids", "cs-ts", "cs-ucb")
PAIR = ("cs-ucb", "cs-ucb:interval=kl")
SIZES = (10, 20, 50, 100)
SAMPLES = 2000


def main() -> None:
    """Measure, and print two tables in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000, help="of the long sample")
    runs = parser.parse_args().runs
    print("| policy | runs of a sample | `mean_interval` covers | mean +- 2 standard errors | width relative to the latter |")
    print("|---|--:|--:|--:|--:|")
    for name in LEARNERS:
        played = simulate(figure_1(HORIZON), name, horizon=HORIZON, runs=runs, seed=7, checkpoints=1)
        for size in SIZES:
            ours, theirs, width = coverage(played.samples(name)["total"][:, -1], size)
            print(f"| `{name}` | {size} | {ours:.1%} | {theirs:.1%} | {width:.1f} |", flush=True)
    print("\n| paired by | correlation | difference in total regret [95% interval] |\n|---|--:|--:|")
    for tapes in (False, True):
        print(compared(simulate(figure_1(HORIZON), PAIR, horizon=HORIZON, runs=400, seed=7, checkpoints=1, tapes=tapes)))


def coverage(population: Floats, size: int) -> tuple[float, float, float]:
    """The shares of samples whose interval has the mean of the population: ours and the usual one; the ratio of mean widths."""
    rng, mean, hits, widths = np.random.default_rng(size), population.mean(), np.zeros(2), np.zeros(2)
    for _ in range(SAMPLES):
        sample = rng.choice(population, size)
        half = 2 * sample.std(ddof=1) / np.sqrt(size)
        for number, (low, high) in enumerate(
            [mean_interval(sample, lowest=0.0, highest=HORIZON), (sample.mean() - half, sample.mean() + half)]
        ):
            hits[number] += low <= mean <= high
            widths[number] += high - low
    return hits[0] / SAMPLES, hits[1] / SAMPLES, widths[0] / widths[1]


def compared(runs: Runs) -> str:
    """The row of a comparison."""
    found = runs.compare(*PAIR)["total"]
    pairing = "tapes" if runs.tapes else "seed"
    return f"| {pairing} | {found.correlation:.2f} | {found.mean:,.0f} [{found.low:,.0f}, {found.high:,.0f}] |"


if __name__ == "__main__":
    main()
