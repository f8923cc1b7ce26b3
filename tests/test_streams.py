"""Statistical tests of the variates. Seeds are fixed, so a test that passes once passes always; the stated rates are how often
a correct generator with another seed would fail."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest

from thrifty import streams
from thrifty.arrays import Floats
from thrifty.compiled import builder
from thrifty.streams import make_streams

N = 400_000


@builder
def _normals(stream: streams.Stream, n: int) -> Floats:
    return np.array([streams.normal(stream) for _ in range(n)])


@builder
def _exponentials(stream: streams.Stream, n: int) -> Floats:
    return np.array([streams.exponential(stream) for _ in range(n)])


@builder
def _betas(stream: streams.Stream, a: float, b: float, n: int) -> Floats:
    return np.array([streams.beta(stream, a, b) for _ in range(n)])


@builder
def _uniforms(stream: streams.Stream, n: int) -> Floats:
    return np.array([streams.uniform(stream) for _ in range(n)])


@builder
def _below(stream: streams.Stream, k: int, n: int) -> Floats:
    return np.array([streams.below(stream, k) for _ in range(n)])


def one_stream(seed: int) -> streams.Stream:
    stream: streams.Stream = make_streams(seed, np.array([[0]]))[0]
    return stream


def kolmogorov_smirnov(sorted_cdf: Floats) -> float:
    """sqrt(n) times the largest distance between the empirical distribution and the uniform one."""
    n = sorted_cdf.size
    steps = np.arange(1, n + 1) / n
    return math.sqrt(n) * float(np.maximum(steps - sorted_cdf, sorted_cdf - steps + 1 / n).max())


# P(sqrt(n) D > 2.45) = 2 exp(-2 * 2.45^2) = 1.2e-5 under the hypothesis.
LIMIT = 2.45


def test_xoshiro_matches_the_reference_sequence() -> None:
    # The first outputs of the authors' C program for the state 1, 2, 3, 4.
    stream = np.array([1, 2, 3, 4], dtype=np.uint64)
    words = [int(streams.next_word(stream)) for _ in range(5)]
    assert words == [41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205]


def test_uniforms_are_uniform() -> None:
    values = np.sort(_uniforms(one_stream(1), N))
    assert values[0] >= 0.0
    assert values[-1] < 1.0
    assert kolmogorov_smirnov(values) < LIMIT


def test_normals_are_normal_and_have_tails() -> None:
    values = np.sort(_normals(one_stream(2), N))
    cdf = np.array([0.5 * math.erfc(-x / math.sqrt(2)) for x in values])
    assert kolmogorov_smirnov(cdf) < LIMIT
    # Beyond the ziggurat's last edge lies 5.8e-4 of the mass: 230 +- 15 of 400,000; 5 standard deviations, 6e-7.
    beyond = int((np.abs(values) > 3.442619855899).sum())
    expected = N * math.erfc(3.442619855899 / math.sqrt(2))
    assert abs(beyond - expected) < 5 * math.sqrt(expected)


def test_exponentials_are_exponential_and_have_tails() -> None:
    values = np.sort(_exponentials(one_stream(10), N))
    assert values[0] >= 0.0
    assert kolmogorov_smirnov(-np.expm1(-values)) < LIMIT
    # 5 standard errors: 6e-7.
    assert abs(values.mean() - 1.0) < 5 / math.sqrt(N)
    # Beyond the ziggurat's last edge lies 4.5e-4 of the mass, which has the same law again; 5 standard deviations each.
    beyond = values[values > 7.69711747013105] - 7.69711747013105
    expected = N * math.exp(-7.69711747013105)
    assert abs(beyond.size - expected) < 5 * math.sqrt(expected)
    assert abs(beyond.mean() - 1.0) < 5 / math.sqrt(beyond.size)


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (2.0, 5.0), (0.5, 0.5), (30.0, 2.0), (0.05, 3.0), (400.0, 600.0)])
def test_betas_have_the_moments_of_the_beta_law(a: float, b: float) -> None:
    values = _betas(one_stream(3), a, b, N)
    mean = a / (a + b)
    variance = mean * (1 - mean) / (a + b + 1)
    # 5 standard errors each: 6e-7 per comparison.
    assert abs(values.mean() - mean) < 5 * math.sqrt(variance / N)
    fourth = ((values - mean) ** 4).mean()
    assert abs(((values - mean) ** 2).mean() - variance) < 5 * math.sqrt((fourth - variance**2) / N)
    assert values.min() >= 0.0
    assert values.max() <= 1.0


def test_beta_1_1_is_uniform() -> None:
    assert kolmogorov_smirnov(np.sort(_betas(one_stream(4), 1.0, 1.0, N))) < LIMIT


def test_beta_2_1_follows_its_distribution_function() -> None:
    assert kolmogorov_smirnov(np.sort(_betas(one_stream(5), 2.0, 1.0, N)) ** 2) < LIMIT


def test_tiny_parameters_do_not_give_nan() -> None:
    values = _betas(one_stream(6), 1e-4, 1e-4, 20_000)
    assert np.isfinite(values).all()
    # Nearly a fair coin: 5 standard errors, 6e-7.
    assert abs(values.mean() - 0.5) < 5 * 0.5 / math.sqrt(20_000)


def test_below_covers_all_values_evenly() -> None:
    counts = np.bincount(_below(one_stream(7), 7, N), minlength=7)
    assert counts.size == 7
    # Chi-square with 6 degrees of freedom: P(> 35) = 4e-6.
    assert float(((counts - N / 7) ** 2 / (N / 7)).sum()) < 35


def test_streams_of_different_keys_are_uncorrelated() -> None:
    rows = make_streams(8, np.array([[0, 0], [0, 1], [1, 0]]))
    samples = np.array([_uniforms(row.copy(), 100_000) for row in rows])
    correlations = np.corrcoef(samples)[np.triu_indices(3, 1)]
    # 5 / sqrt(n): 2e-6 for three pairs.
    assert np.abs(correlations).max() < 5 / math.sqrt(100_000)


def test_plain_python_draws_the_same_variates() -> None:
    script = (
        "import numpy as np\n"
        "from thrifty import streams\n"
        "with np.errstate(over='ignore'):\n"
        "    s = streams.make_streams(9, np.array([[0]]))[0]\n"
        "    print([float(streams.normal(s)).hex() for _ in range(2000)])\n"
        "    print([float(streams.beta(s, 0.3, 2.0)).hex() for _ in range(500)])\n"
        "    print([float(streams.exponential(s)).hex() for _ in range(2000)])\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script], check=True, capture_output=True, text=True, env={**os.environ, "NUMBA_DISABLE_JIT": off}
        ).stdout
        for off in ("0", "1")
    }
    assert len(outputs) == 1
