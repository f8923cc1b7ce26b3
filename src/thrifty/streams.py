"""Random streams: xoshiro256++ states as plain arrays, and the variates drawn from them.

A stream is an array of four unsigned 64-bit words. A stream is named by (seed, key) and depends on
nothing else, however many threads, workers or machines take part. The variates are written out here because a
compiled loop over numpy's Generator is two to three times slower, and a router could not save and restore it bit for bit.

References
----------
[Blackman2021] Blackman, Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS 47.
[Doornik2005] Doornik, "An improved ziggurat method to generate normal random samples".
[Steele2014] Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
[Marsaglia2000] Marsaglia, Tsang, "A simple method for generating gamma variables", ACM TOMS 26.

"""

import math

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Floats, Integers
from thrifty.compiled import kernel, rare, stay_apart

Stream = NDArray[np.uint64]

_U11, _U17, _U19, _U23, _U41, _U45 = (np.uint64(n) for n in (11, 17, 19, 23, 41, 45))
_TO_UNIT = 2.0**-53


def make_streams(seed: int, keys: Integers) -> NDArray[np.uint64]:
    """One stream per row of `keys`, all independent of each other.

    Parameters
    ----------
    seed : a non-negative integer
    keys : (n, d) non-negative integers; a row names a stream, for example (run, purpose)

    >>> make_streams(1, np.array([[0, 0], [0, 1]])).shape
    (2, 4)

    """
    # Each word of a stream hashes (seed, key) on its own, with the finaliser of splitmix64 [Steele2014].
    words: NDArray[np.uint64] = np.tile(np.random.SeedSequence(seed).generate_state(4, np.uint64), (keys.shape[0], 1))
    for column in keys.T.astype(np.uint64):
        words = _scramble(words + column[:, np.newaxis])
    return words


def spread_seed(seed: int, key: tuple[int, ...] = ()) -> Stream:
    """The four words from which `start_stream` makes the streams (seed, *key, n) for any n.

    >>> stream = np.empty(4, np.uint64)
    >>> start_stream(spread_seed(1, (7,)), 5, stream)
    >>> bool((stream == make_streams(1, np.array([[7, 5]]))[0]).all())
    True
    """
    return np.asarray(make_streams(seed, np.array([key], dtype=np.int64).reshape(1, len(key)))[0], dtype=np.uint64)


_GOLDEN, _MIX_1, _MIX_2 = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_U27, _U30, _U31 = (np.uint64(n) for n in (27, 30, 31))


@kernel
def start_stream(words, key, stream):
    """Make `stream` the one named by the seed behind `words` and `key`: one row of `make_streams`, without leaving the kernel."""
    for i in range(4):
        word = words[i] + np.uint64(key) + _GOLDEN
        word = (word ^ (word >> _U30)) * _MIX_1
        word = (word ^ (word >> _U27)) * _MIX_2
        stream[i] = word ^ (word >> _U31)


def _scramble(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(words ^ (words >> np.uint64(31)), dtype=np.uint64)


@kernel
def next_word(stream):
    """The next 64 random bits of xoshiro256++ [Blackman2021]."""
    total = stream[0] + stream[3]
    word = ((total << _U23) | (total >> _U41)) + stream[0]
    shifted = stream[1] << _U17
    stream[2] ^= stream[0]
    stream[3] ^= stream[1]
    stream[1] ^= stream[2]
    stream[0] ^= stream[3]
    stream[2] ^= shifted
    stream[3] = (stream[3] << _U45) | (stream[3] >> _U19)
    return word


@kernel
def uniform(stream):
    """A number in [0, 1), a multiple of 2^-53."""
    return np.int64(next_word(stream) >> _U11) * _TO_UNIT


@kernel
def below(stream, n):
    """An integer in 0..n-1, uniform up to n 2^-53."""
    return np.int64(uniform(stream) * n)


_BLOCKS = 128
_TAIL = 3.442619855899  # where the ziggurat's lowest block turns into the tail
_AREA = 9.91256303526217e-3  # of every block


def _ziggurat() -> tuple[Floats, Floats]:
    edge = np.zeros(_BLOCKS + 1)
    density = math.exp(-0.5 * _TAIL * _TAIL)
    edge[0], edge[1] = _AREA / density, _TAIL
    for block in range(2, _BLOCKS):
        edge[block] = math.sqrt(-2.0 * math.log(_AREA / edge[block - 1] + density))
        density = math.exp(-0.5 * edge[block] * edge[block])
    return edge, edge[1:] / edge[:-1]


_EDGE, _RATIO = _ziggurat()


@rare
def _normal_tail(stream, sign):
    stay_apart()
    while True:
        excess = -math.log(1.0 - uniform(stream)) / _TAIL
        if -2.0 * math.log(1.0 - uniform(stream)) >= excess * excess:
            return -_TAIL - excess if sign < 0.0 else _TAIL + excess


@rare
def _under_the_curve(stream, block, x):
    stay_apart()
    low = math.exp(-0.5 * (_EDGE[block] * _EDGE[block] - x * x))
    high = math.exp(-0.5 * (_EDGE[block + 1] * _EDGE[block + 1] - x * x))
    return high + uniform(stream) * (low - high) < 1.0


@kernel
def normal(stream):
    """A standard normal variate by the ziggurat of [Doornik2005]."""
    while True:
        word = next_word(stream)
        block = np.int64(word & np.uint64(_BLOCKS - 1))
        u = 2.0 * (np.int64(word >> _U11) * _TO_UNIT) - 1.0
        x = u * _EDGE[block]
        if abs(u) < _RATIO[block]:
            return x
        if block == 0:
            return _normal_tail(stream, u)
        if _under_the_curve(stream, block, x):
            return x


_LAYERS = 256
_EXPONENTIAL_TAIL = 7.69711747013105
_EXPONENTIAL_AREA = 3.949659822581557e-3


def _exponential_ziggurat() -> tuple[Floats, Floats]:
    edge = np.zeros(_LAYERS + 1)
    edge[0], edge[1] = _EXPONENTIAL_AREA * math.exp(_EXPONENTIAL_TAIL), _EXPONENTIAL_TAIL
    for layer in range(2, _LAYERS):
        edge[layer] = -math.log(_EXPONENTIAL_AREA / edge[layer - 1] + math.exp(-edge[layer - 1]))
    return edge, edge[1:] / edge[:-1]


_EXPONENTIAL_EDGE, _EXPONENTIAL_RATIO = _exponential_ziggurat()


@rare
def _is_below_exponential(stream, layer, x):
    stay_apart()
    low, high = math.exp(-_EXPONENTIAL_EDGE[layer]), math.exp(-_EXPONENTIAL_EDGE[layer + 1])
    return low + uniform(stream) * (high - low) < math.exp(-x)


@kernel
def exponential(stream):
    """An exponential variate of mean 1, by the ziggurat of `normal` for another density; what lies beyond the tail begins anew."""
    beyond = 0.0
    while True:
        word = next_word(stream)
        layer = np.int64(word & np.uint64(_LAYERS - 1))
        u = np.int64(word >> _U11) * _TO_UNIT
        x = u * _EXPONENTIAL_EDGE[layer]
        if u < _EXPONENTIAL_RATIO[layer]:
            return beyond + x
        if layer == 0:
            beyond += _EXPONENTIAL_TAIL  # the law has no memory
        elif _is_below_exponential(stream, layer, x):
            return beyond + x


@kernel
def gamma(stream, shape):
    """A Gamma(shape, 1) variate, shape > 0 [Marsaglia2000]; shapes below one are lifted by u^(1/shape)."""
    lifted = shape if shape >= 1.0 else shape + 1.0
    d = lifted - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(stream)
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        u = 1.0 - uniform(stream)
        x2 = x * x
        if u < 1.0 - 0.0331 * x2 * x2 or math.log(u) < 0.5 * x2 + d * (1.0 - v + math.log(v)):
            break
    if shape < 1.0:
        return d * v * (1.0 - uniform(stream)) ** (1.0 / shape)
    return d * v


@kernel
def beta(stream, a, b):
    """A Beta(a, b) variate, a and b > 0."""
    x = gamma(stream, a)
    y = gamma(stream, b)
    total = x + y
    # Both gammas can underflow when a and b are tiny; Beta(a, b) is then nearly a coin with probability a / (a + b).
    if total > 0.0:
        return x / total
    return 1.0 if uniform(stream) * (a + b) < a else 0.0
