"""The instance-dependent lower bound against brute force: the formula on a fine grid, and its alternatives one by one."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

from thrifty import Instance
from thrifty.arrays import Booleans, Floats
from thrifty.environments.families import figure_1
from thrifty.theory import instance_lower_bound, kl
from thrifty.theory.linear import CuttingPlanes

GOLDEN = (math.sqrt(5) - 1) / 2


def divergence(mean: float, other: Floats) -> Floats:
    """kl(mean, other) from its definition, for 0 < mean < 1."""
    return np.asarray(mean * np.log(mean / other) + (1 - mean) * np.log((1 - mean) / (1 - other)))


class Formula:
    """The program of the docs, evaluated on a grid of x: given the pulls of the high arms, what all others need."""

    def __init__(self, instance: Instance) -> None:
        self.instance, self.means, self.share = instance, instance.means, 1 - instance.alpha
        self.gaps = instance.quality_gaps + instance.cost_gaps
        top = self.means[instance.optimal_arm]
        threat = top / self.share
        others = [j for j in range(instance.n_arms) if self.gaps[j] > 0]
        self.least = {j: float(1 / divergence(self.means[j], threat)) if threat < 1 else 0.0 for j in others}
        self.high = [j for j in others if self.means[j] > top]
        self.cheap = [j for j in others if instance.costs[j] < instance.costs[instance.optimal_arm]]
        self.fixed = sum(self.gaps[j] * self.least[j] for j in others if j not in self.high + self.cheap)
        self.start = [max(float(self.means[k]), self.share * float(top)) for k in self.cheap]
        self.from_cheap = list(zip(self.cheap, self.start, strict=True))

    def needed(self, k: int, start: float, pulls: Floats) -> float:
        """The pulls of the cheap arm k: the largest (1 - S(x)) / kl(mu_k, x), on a grid and then on a finer one around it."""
        low, high = start, self.instance.floor
        for _ in range(3):
            x = np.linspace(low, high, 401)
            seen = np.zeros_like(x)
            for h, n in zip(self.high, pulls, strict=True):
                seen += n * np.where(self.means[h] > x / self.share, divergence(self.means[h], x / self.share), 0.0)
            own = divergence(self.means[k], x)
            if x[0] == self.means[k]:
                if seen[0] < 1 - 1e-12:
                    return math.inf
                own[0] = math.inf
            ratio = (1 - seen) / own
            at = int(np.argmax(ratio))
            low, high = x[max(at - 1, 0)], x[min(at + 1, 400)]
        return float(max(ratio.max(), 0.0))

    def value(self, pulls: Floats) -> float:
        spent = sum(self.gaps[h] * n for h, n in zip(self.high, pulls, strict=True))
        return float(self.fixed + spent + sum(self.gaps[k] * self.needed(k, s, pulls) for k, s in self.from_cheap))

    def least_value(self) -> float:
        """The least value over the pulls of at most two high arms, by golden sections inside golden sections."""
        lower = [self.least[h] for h in self.high]
        if not self.cheap or not self.high:
            return self.value(np.array(lower))
        best = max(self.high, key=lambda h: self.means[h])
        enough = 1.001 / divergence(self.means[best], np.array(max(self.start) / self.share))
        known = self.value(np.array([max(enough if h == best else 0.0, self.least[h]) for h in self.high]))
        upper = [known / self.gaps[h] for h in self.high]

        def over(at: int, chosen: list[float]) -> float:
            if at == len(self.high):
                return self.value(np.array(chosen))
            return smallest(lambda n: over(at + 1, [*chosen, n]), lower[at], upper[at])

        return over(0, [])


def smallest(function: Callable[[float], float], low: float, high: float) -> float:
    """The least value of a convex function that is infinite below some point: golden section."""
    first, second = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_first, at_second = function(first), function(second)
    best = min(function(low), function(high))
    for _ in range(44):
        best = min(best, at_first, at_second)
        if math.isinf(at_first) or at_first > at_second:
            low, first, at_first = first, second, at_second
            second = low + GOLDEN * (high - low)
            at_second = function(second)
        else:
            high, second, at_second = second, first, at_first
            first = high - GOLDEN * (high - low)
            at_first = function(first)
    return best


def drawn(rng: np.random.Generator) -> Instance:
    """Two to five arms of which dear ones tend to be better, so that many have a cheaper infeasible arm and a better dear one."""
    n_arms = int(rng.integers(2, 6))
    means = np.sort(rng.uniform(0.05, 0.95, n_arms))
    if rng.random() < 0.5:
        means = np.sort(rng.uniform(0.4, 0.6, n_arms))
    costs = np.sort(rng.uniform(0, 1, n_arms)) if rng.random() < 0.8 else rng.uniform(0, 1, n_arms)
    return Instance(means, costs, float(rng.choice([0.02, 0.1, 0.2, 0.4, 0.6])))


def hundred() -> list[Instance]:
    """A hundred instances with at most two high arms, which brute force can search."""
    rng, found = np.random.default_rng(1), list[Instance]()
    while len(found) < 100:
        instance = drawn(rng)
        if len(Formula(instance).high) <= 2:
            found.append(instance)
    return found


def test_the_constant_is_that_of_brute_force_on_a_hundred_instances() -> None:
    shapes = set()
    for instance in hundred():
        formula = Formula(instance)
        shapes.add((len(formula.high), len(formula.cheap) > 0))
        assert instance_lower_bound(instance).constant == pytest.approx(formula.least_value(), rel=1e-6), instance
    assert shapes == set(itertools.product((0, 1, 2), (False, True)))  # every kind of instance is among them


def test_no_other_pulls_of_many_high_arms_cost_less() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        instance = Instance(np.sort(rng.uniform(0.4, 0.6, 10)), np.sort(rng.uniform(0, 1, 10)), 0.15)
        formula, bound = Formula(instance), instance_lower_bound(instance)
        chosen = bound.pulls[formula.high]
        assert formula.value(chosen) == pytest.approx(bound.constant, rel=1e-6)
        for _ in range(20):  # the value is convex in them, so a least value nearby is the least of all
            other = np.maximum(chosen * rng.uniform(0.9, 1.1, chosen.size), [formula.least[h] for h in formula.high])
            assert formula.value(other) >= bound.constant * (1 - 1e-9)


def changes_the_optimum(instance: Instance, means: Floats) -> Booleans:
    """(n,) whether in the alternatives (n, K) every arm that had no regret now has some: from the definition of regret."""
    settled = np.flatnonzero(instance.quality_gaps + instance.cost_gaps == 0)
    feasible = means >= (1 - instance.alpha) * means.max(axis=1, keepdims=True)
    cheapest = np.where(feasible, instance.costs, np.inf).min(axis=1)
    return np.asarray(~(feasible[:, settled] & (instance.costs[settled] == cheapest[:, None])).any(axis=1))


@pytest.mark.parametrize("seed", range(30))
def test_the_pulls_tell_every_alternative_apart_and_no_arm_could_have_fewer(seed: int) -> None:
    rng = np.random.default_rng(seed)
    instance = Instance(rng.uniform(0.1, 0.9, 3), rng.permutation([0.0, 0.4, 1.0]), float(rng.choice([0.1, 0.3, 0.5])))
    free = np.flatnonzero(instance.quality_gaps + instance.cost_gaps > 0)
    near = np.linspace(-0.02, 0.02, 401)  # so that alternatives close to the truth are on the grid as well
    axes = [np.r_[np.linspace(1e-6, 1 - 1e-6, 500), np.clip(instance.means[arm] + near, 1e-6, 1 - 1e-6)] for arm in free]
    means = np.tile(instance.means, (math.prod(axis.size for axis in axes), 1))
    means[:, free] = np.stack([axis.ravel() for axis in np.meshgrid(*axes)], axis=1)
    means = means[changes_the_optimum(instance, means)]
    told = np.stack([divergence(instance.means[arm], means[:, arm]) for arm in range(3)], axis=1)
    pulls = instance_lower_bound(instance).pulls
    if not means.size:
        assert (pulls == 0).all()
        return
    assert (told @ pulls).min() >= 1 - 1e-9
    for arm in np.flatnonzero(pulls > 0):  # with a tenth fewer pulls of one arm some alternative of the grid is not told apart
        assert (told @ np.where(np.arange(3) == arm, 0.9 * pulls, pulls)).min() < 1


@pytest.mark.parametrize(
    ("means", "alpha"), [([0.21, 0.29, 0.48], 0.4), ([0.16, 0.39, 0.58], 0.4), ([0.45, 0.59, 0.63], 0.1), ([0.32, 0.71, 0.82], 0.2)]
)
def test_the_constant_is_exact_to_a_relative_error_of_1e_10(
    means: list[float], alpha: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The next to last round of each of these falls short by more than 1e-10 and less than 2e-10, so one round more is needed.
    instance = Instance(means, [0.0, 0.5, 1.0], alpha)
    constant = instance_lower_bound(instance).constant
    monkeypatch.setattr("thrifty.theory.instance_bound._PRECISION", 1e-13)
    assert constant == pytest.approx(instance_lower_bound(instance).constant, rel=1e-10, abs=0.0)


def test_two_arms_have_the_closed_form() -> None:
    below = instance_lower_bound(Instance([0.5, 0.4], [1.0, 0.0], 0.1))  # the cheap arm could be on the floor, 0.45
    assert below.pulls.tolist() == [0.0, pytest.approx(1 / kl(0.4, 0.45))]
    assert [below.quality, below.cost] == pytest.approx([0.05 / kl(0.4, 0.45), 0.0])
    above = instance_lower_bound(Instance([0.5, 0.48], [1.0, 0.0], 0.1))  # the dear arm could be above 0.48 / 0.9
    assert above.pulls.tolist() == [pytest.approx(1 / kl(0.5, 0.48 / 0.9)), 0.0]
    assert [above.quality, above.cost] == pytest.approx([0.0, 1 / kl(0.5, 0.48 / 0.9)])


def test_at_alpha_0_it_is_the_bound_of_lai_and_robbins() -> None:
    instance = Instance([0.7, 0.5, 0.3], [0.5, 0.0, 1.0], 0.0)
    bound = instance_lower_bound(instance)
    assert bound.pulls.tolist() == [0.0, pytest.approx(1 / kl(0.5, 0.7)), pytest.approx(1 / kl(0.3, 0.7))]
    assert bound.constant == pytest.approx(0.2 / kl(0.5, 0.7) + (0.4 + 0.5) / kl(0.3, 0.7))


@pytest.mark.parametrize(
    ("means", "costs", "alpha"),
    [
        ([0.95, 0.5], [0.0, 1.0], 0.1),  # a mean of 1 would not make the optimal arm miss the floor
        ([0.9, 0.5], [0.0, 1.0], 0.1),  # nor if it just reaches it
        ([0.0, 0.5], [0.0, 1.0], 1.0),  # every arm is feasible
        ([1.0, 0.5], [1.0, 0.0], 0.0),  # one failure shows that the cheap arm is not perfect
        ([0.5, 0.5], [1.0, 1.0], 0.1),  # no arm has regret
        ([0.5], [1.0], 0.1),
    ],
)
def test_void_constraints_leave_nothing(means: list[float], costs: list[float], alpha: float) -> None:
    bound = instance_lower_bound(Instance(means, costs, alpha))
    assert bound.constant == 0.0
    assert (bound.pulls == 0.0).all()


@pytest.mark.parametrize(
    ("means", "costs", "alpha", "arm"),
    [
        ([0.5, 0.45], [1.0, 0.0], 0.1, 0),  # the optimal arm is on the floor
        ([0.1, 0.09], [1.0, 0.0], 0.1, 0),  # also where decimals round
        ([0.5, 0.5], [1.0, 0.0], 0.0, 0),  # equal arms at alpha = 0
        ([0.0, 0.0], [1.0, 0.0], 0.1, 0),
        ([0.5, 0.45, 0.2], [1.0, 0.5, 1.5], 0.1, 0),
    ],
)
def test_no_multiple_of_ln_t_is_enough_for_an_arm_on_the_floor(
    means: list[float], costs: list[float], alpha: float, arm: int
) -> None:
    bound = instance_lower_bound(Instance(means, costs, alpha))
    assert bound.pulls[arm] == bound.constant == math.inf
    assert np.isfinite(np.delete(bound.pulls, arm)).all()


def test_every_round_decimal_on_the_floor_needs_pulls_without_limit() -> None:
    for best, twentieths in itertools.product(range(1, 10), range(1, 17)):
        cheap = best * (20 - twentieths) / 200  # exact up to its own rounding; (1 - alpha) best is not
        bound = instance_lower_bound(Instance([best / 10, cheap], [1.0, 0.0], twentieths / 20))
        assert bound.pulls.tolist() == [math.inf, 0.0]


def test_an_infeasible_arm_that_costs_as_much_as_the_optimal_one_is_no_rival_on_the_floor() -> None:
    # It would share the optimum if it reached the floor 0.45; only above 0.5 / 0.9 would it make the first arm miss the floor.
    bound = instance_lower_bound(Instance([0.5, 0.3], [1.0, 1.0], 0.1))
    assert bound.pulls.tolist() == [0.0, pytest.approx(1 / kl(0.3, 0.5 / 0.9))]


def test_an_arm_that_is_pulled_without_limit_is_known() -> None:
    # The second arm is on the floor of the first. So the first is known, cannot fall, and the third needs 1 / kl(0.3, 0.45).
    bound = instance_lower_bound(Instance([0.5, 0.45, 0.3], [1.0, 0.5, 0.0], 0.1))
    assert bound.pulls.tolist() == [math.inf, 0.0, pytest.approx(1 / kl(0.3, 0.45))]
    assert bound.quality == pytest.approx(0.15 / kl(0.3, 0.45))
    assert bound.cost == math.inf


def test_equally_cheap_feasible_arms_all_count_as_known() -> None:
    # Arms 1 and 2 have no regret, so both are known; the better of them, 0.48, limits what arm 0 must not exceed.
    tied = instance_lower_bound(Instance([0.5, 0.48, 0.46], [1.0, 0.0, 0.0], 0.1))
    assert tied.pulls.tolist() == [pytest.approx(1 / kl(0.5, 0.48 / 0.9)), 0.0, 0.0]
    same = instance_lower_bound(Instance([0.5, 0.5, 0.3], [0.0, 0.0, 1.0], 0.0))  # kl(0.5, 0.5) = 0 would be impossible to reach
    assert same.pulls.tolist() == [0.0, 0.0, pytest.approx(1 / kl(0.3, 0.5))]


def test_the_best_known_arm_limits_how_low_the_top_may_be() -> None:
    # Arms 1 and 2 have no regret. The top is at least 0.55 whatever arm 0 is, so arm 3 must be told from 0.55 / 2, no less.
    bound = instance_lower_bound(Instance([0.6, 0.55, 0.45, 0.2], [1.0, 0.1, 0.1, 0.0], 0.5))
    assert bound.pulls.tolist() == [0.0, 0.0, 0.0, pytest.approx(1 / kl(0.2, 0.275))]


def test_better_dear_arms_share_the_work_with_the_cheap_one() -> None:
    # The cheap arm 0 could be feasible at x = 0.40 if arm 2 fell to 0.40 / 0.8 = 0.5: both arms must tell against it.
    instance = Instance([0.35, 0.48, 0.55], [0.0, 0.5, 1.0], 0.2)
    pulls = instance_lower_bound(instance).pulls
    at = [pulls[0] * kl(0.35, x) + pulls[2] * kl(0.55, min(x / 0.8, 0.55)) for x in np.linspace(0.8 * 0.48, 0.44, 2001)]
    assert 1 - 1e-9 <= min(at) <= 1 + 1e-6  # the grid has 2,001 points
    assert pulls[0] > 1 / kl(0.35, 0.44) * (1 + 1e-3) or pulls[2] > 1 / kl(0.55, 0.6) * (1 + 1e-3)


def test_the_constant_of_figure_1_says_nothing_before_43_220_rounds() -> None:
    constant = instance_lower_bound(figure_1()).constant
    assert constant == pytest.approx(1 / kl(0.5, 0.46 / 0.9))
    assert round(constant) == 4049
    horizons = np.arange(2, 50_000)
    assert horizons[constant * np.log(horizons) > horizons].max() == 43_219


def test_cutting_planes_find_the_corner() -> None:
    # minimise 2a + 3b with a + 2b >= 1, 3a + b >= 1, b >= 0.1: the corner a = 1/5, b = 2/5 costs 8/5.
    program = CuttingPlanes(np.array([2.0, 3.0]), np.array([0.0, 0.1]))
    program.add(np.array([[1.0, 2.0]]))
    assert program.solve() == pytest.approx([0.0, 0.5])  # b alone: 1.5 against 2 for a
    program.add(np.array([[3.0, 1.0]]))
    assert program.solve() == pytest.approx([0.2, 0.4])
    program.add(np.array([[-1.0, -1.0]]))
    with pytest.raises(ArithmeticError, match="no amounts satisfy"):
        program.solve()
