"""Rewards that arrived, counted by arm and bucket; for metrics, and for nothing that decides."""

from bisect import bisect_left

REWARDS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Upper ends of the buckets: the first has rewards of 0 alone."""


class RewardHistogram:
    """First outcomes that this process took for a router. Corrections, void and default outcomes are not counted.

    It is no part of the state: it begins empty in each process, and never falls.

    >>> histogram = RewardHistogram()
    >>> histogram.add("a", 1.0)
    >>> histogram.add("a", 0.25)
    >>> histogram.read()
    {'a': [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1.25]}
    """

    def __init__(self) -> None:
        self._arms: dict[str, list[float]] = {}

    def add(self, arm: str, reward: float) -> None:
        """Count a reward in [0, 1]. Called under the router's lock."""
        counts = self._arms.get(arm)
        if counts is None:
            counts = self._arms[arm] = [0] * len(REWARDS) + [0.0]
        counts[bisect_left(REWARDS, reward)] += 1
        counts[-1] += reward

    def read(self) -> dict[str, list[float]]:
        """By arm, the count of every bucket, and the sum of rewards last."""
        return {arm: list(counts) for arm, counts in list(self._arms.items())}
