"""A Bernoulli factory: flips of a coin with unknown probability p become one flip of a coin with probability C p.

References
----------
[Huber2013] Huber, "Nearly optimal Bernoulli factories for linear functions", arXiv:1308.1562.

"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Integers
from thrifty.compiled import driver, kernel, rare, stay_apart
from thrifty.environments.laws import Bernoulli
from thrifty.environments.sampling import draw_reward, tabulate
from thrifty.problem import checked_count
from thrifty.streams import make_streams, uniform

_GAMMA = 0.5
_WIDEST = 0.644  # the largest slack for which the flip bound is proved


@kernel
def flip_scaled(coins, arm, factor, slack, coin_stream, own_stream):
    """One flip of Ber(C p) from flips of the coin of `arm`, and how many flips it took [Huber2013].

    Needs C p <= 1 - slack. C = 1 is one flip; C < 1 flips the coin only if a coin of our own with probability C shows heads.
    """
    if factor > 1.0:
        return _walk(coins, arm, factor, slack, coin_stream, own_stream)
    if factor < 1.0 and uniform(own_stream) >= factor:
        return 0.0, 0
    return draw_reward(coins, arm, coin_stream), 1


@rare
def _walk(coins, arm, factor, slack, coin_stream, own_stream):
    """Walk on the number i of flips with probability C p that must all show heads.

    It falls by one at heads, and rises by a geometric number less one at tails. At 0 the answer is heads. At k heads have become
    unlikely: a coin with probability (1 + gamma eps)^(-i) either answers tails or raises C a little, which makes up for it.
    """
    stay_apart()
    slack = min(slack, _WIDEST)
    high = 2.3 / (_GAMMA * slack)
    level, flips = 1, 0
    while True:
        while 0 < level < high:
            flips += 1
            level -= 1
            if draw_reward(coins, arm, coin_stream) < 0.5:
                # Geometric on 1, 2, ... with success probability (C-1)/C, by inversion.
                level += 1 + int(-math.log(1.0 - uniform(own_stream)) / math.log(factor))
        if level == 0:
            return 1.0, flips
        if uniform(own_stream) >= (1.0 + _GAMMA * slack) ** (-level):
            return 0.0, flips
        factor *= 1.0 + _GAMMA * slack
        slack *= 1.0 - _GAMMA
        high /= 1.0 - _GAMMA


@driver
def flip_many(coins, factor, slack, coin_stream, own_stream, heads, flips):
    """Fill `heads` and `flips` with independent results of the factory."""
    for number in range(heads.size):
        heads[number], flips[number] = flip_scaled(coins, 0, factor, slack, coin_stream, own_stream)


def flip_linear(p: float, factor: float, *, slack: float, count: int, seed: int = 0) -> tuple[NDArray[Any], Integers]:
    """`count` flips of Ber(factor * p), made from flips of Ber(p), and the number of flips each took.

    Parameters
    ----------
    p : in [0, (1 - slack) / factor]; the factory itself only flips the coin
    factor : C, positive
    slack : epsilon in (0, 1): how far C p stays below 1 at least
    count, seed : how many, and of which streams

    >>> heads, flips = flip_linear(0.3, 2.0, slack=0.4, count=20_000, seed=1)
    >>> bool(abs(heads.mean() - 0.6) < 0.02), bool(flips.mean() < 9.5 * 2.0 / 0.4)
    (True, True)

    """
    if not 0.0 < slack < 1.0:
        raise ValueError(f"slack must be in (0, 1), got {slack}")
    if not 0.0 < factor < math.inf:
        raise ValueError(f"factor must be positive, got {factor}")
    if factor > 1.0 and not factor * p <= 1.0 - slack:
        raise ValueError(f"factor * p must be at most 1 - slack = {1 - slack:g}, got {factor} * {p}: take a smaller slack")
    heads = np.empty(checked_count("count", count))
    flips = np.empty(count, np.int64)
    coin_stream, own_stream = make_streams(seed, np.array([[0, 0], [0, 1]]))
    with np.errstate(over="ignore"):
        flip_many(tabulate([Bernoulli(p)]), float(factor), float(slack), coin_stream, own_stream, heads, flips)
    return heads, flips
