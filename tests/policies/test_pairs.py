"""Two arms compared, by hand."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.policies.by_hand import plain, statistics, terms_of
from thrifty.policies import pairs


def asked(means: list[float], looks: list[float], *, alpha: float = 0.1, dispersion: float = 1.0) -> tuple[Any, Any]:
    """Terms, and a memory with these estimates."""
    arms = np.zeros(len(means), pairs.ArmView)
    arms["estimate"], arms["looks"] = means, looks
    terms = terms_of("cs-balance", costs=[0.0] * len(means), alpha=alpha, horizon=100)
    return terms, SimpleNamespace(arms=arms, dispersion=np.array([dispersion]))


def estimated(stats: Any, *, rewards_vary: bool = True) -> tuple[Any, float]:
    """The arms as `estimate` writes them, and the dispersion."""
    if rewards_vary:
        stats["reward_squares"] = stats["reward_sum"]
    arms = np.zeros(stats.size, pairs.ArmView)
    terms = terms_of("cs-balance", costs=[0.0] * stats.size, alpha=0.1, horizon=100)
    return arms, plain(pairs.estimate)(terms, stats, arms)


class TestNormal:
    def test_chances(self) -> None:
        # Phi(-1) = 0.158655, phi(1) = 0.241971: E[max(Z + 1, 0)] = 0.241971 + 0.841345 and E[max(Z - 1, 0)] = 0.241971 - 0.158655.
        assert plain(pairs.clear_chance)(1.0) == pytest.approx(0.158655, rel=1e-5)
        assert plain(pairs.density)(1.0) == pytest.approx(0.241971, rel=1e-5)
        assert plain(pairs.excess)(1.0) == pytest.approx(1.083316, rel=1e-5)
        assert plain(pairs.excess)(-1.0) == pytest.approx(0.083316, rel=1e-4)


class TestDifference:
    def test_the_variance_is_that_of_an_arm_on_the_floor(self) -> None:
        # Floor 0.5 * 0.8 = 0.4: 0.24 / 10 outcomes of arm 0. The rival that sets the floor at 0.2 has 0.4: 0.25 * 0.24 / 20.
        terms, memory = asked([0.2, 0.8], [10.0, 20.0], alpha=0.5)
        assert plain(pairs.own_part)(terms, memory, 0, 1) == pytest.approx(0.024)
        assert plain(pairs.rival_part)(terms, memory, 0, 1) == pytest.approx(0.003)
        z, s = plain(pairs.difference)(terms, memory, 0, 1)
        assert s == pytest.approx(math.sqrt(0.027))
        assert z == pytest.approx(0.2 / math.sqrt(0.027))

    def test_a_floor_out_of_reach_leaves_a_little_variance(self) -> None:
        # No rival can set the floor at 0.9 if half of its mean is enough: 0.01 stands in for 1 (1 - 1). A floor of 0 likewise.
        terms, memory = asked([0.9, 0.0], [2.0, 5.0], alpha=0.5)
        assert plain(pairs.rival_part)(terms, memory, 0, 1) == pytest.approx(0.25 * 0.01 / 5)
        assert plain(pairs.own_part)(terms, memory, 0, 1) == pytest.approx(0.01 / 2)
        memory.arms["looks"] = 0.0  # forgotten: as if there were half an outcome
        assert plain(pairs.own_part)(terms, memory, 0, 1) == pytest.approx(0.02)
        assert plain(pairs.rival_part)(terms, memory, 0, 1) == pytest.approx(0.005)

    def test_rewards_that_vary_less_leave_less_doubt(self) -> None:
        terms, memory = asked([0.2, 0.8], [10.0, 20.0], alpha=0.5, dispersion=0.25)
        assert plain(pairs.own_part)(terms, memory, 0, 1) == pytest.approx(0.006)
        assert plain(pairs.rival_part)(terms, memory, 0, 1) == pytest.approx(0.00075)

    def test_the_shortfall_is_cut_off_where_the_rival_has_mean_one(self) -> None:
        # z = 1, s = 0.1: 0.1 (E(1) - E(1 - 0.4 / 0.1)) = 0.1 (1.083316 - 0.000382).
        terms, memory = asked([0.5, 0.6], [10.0, 10.0], alpha=0.1)
        assert plain(pairs.shortfall_beside)(terms, memory, 0, 1.0, 0.1) == pytest.approx(0.1082934, rel=1e-5)


class TestEstimate:
    def test_estimates_are_shrunk_to_their_centre(self) -> None:
        # Means 30.5 / 101 and 70.5 / 101, average 0.5. Beyond chance: 2 * (0.198020^2 - 0.210788 / 101 * 0.5) = 0.0763365.
        # Between arms: (1/12 + 0.0763365) / 2 = 0.0798349. Centre 1/2, so the strength is 0.25 / 0.0798349 = 3.131463.
        arms, dispersion = estimated(statistics([(100, 30.0), (100, 70.0)]))
        assert arms["estimate"].tolist() == pytest.approx([31.565731 / 103.131463, 71.565731 / 103.131463], rel=1e-6)
        assert arms["looks"].tolist() == [100.0, 100.0]
        assert dispersion == 1.0  # successes and failures, exactly

    def test_arms_that_look_alike_are_shrunk_more(self) -> None:
        # Nothing beyond chance: between arms 1/12 / 4, so the strength is 0.25 * 48 = 12, and all means are the centre.
        assert estimated(statistics([(10, 5.0)] * 4))[0]["estimate"].tolist() == pytest.approx([0.5] * 4)
        arms, _ = estimated(statistics([(10, 5.0)] * 3 + [(10, 6.0)]))
        assert arms[3].estimate - arms[0].estimate == pytest.approx(1.0 / 22.0, rel=1e-2)

    def test_a_decision_that_is_pending_is_a_look(self) -> None:
        stats = statistics([(10, 5.0), (10, 5.0)])
        stats[1].pending = 7
        assert estimated(stats)[0]["looks"].tolist() == [10.0, 17.0]

    def test_an_arm_whose_outcomes_are_all_forgotten_is_at_the_centre(self) -> None:
        # Means 0.5 / 1 and 50.5 / 101: all at 1/2.
        arms, _ = estimated(statistics([(100, 0.0), (100, 50.0)], seen=[0.0, 100.0]))
        assert arms["estimate"].tolist() == [0.5, 0.5]
        # A quarter of an outcome, not won. Means 0.5 / 1.25 = 0.4 and 0.5, average 0.45. Beyond chance there is less than nothing:
        # 2 * 0.05^2 - (0.24 / 1.25 + 0.25 / 101) / 2. So the variance between arms is 1/24. The centre is
        # (0.45 * 100.25 + 50) / 200.25 = 0.474969, the strength 0.249373 * 24 = 5.984963, the mean 5.984963 * centre / 6.234963.
        arms, _ = estimated(statistics([(100, 0.0), (100, 50.0)], seen=[0.25, 100.0]))
        assert arms[0].estimate == pytest.approx(5.984963 * 0.474969 / 6.234963, rel=1e-5)
        assert arms["looks"].tolist() == [0.25, 100.0]

    def test_what_chance_makes_of_the_distance_between_arms_depends_on_their_outcomes(self) -> None:
        # A quarter of an outcome, won, and none of a hundred: means 0.6 and 0.004950, average 0.302475. Beyond chance:
        # 2 * 0.297525^2 - (0.24 / 1.25 + 0.004926 / 101) / 2 = 0.081018. Between arms: (1/12 + 0.081018) / 2 = 0.082175.
        # Centre 0.401114, strength 2.923278: (0.25 + 2.923278 * 0.401114) / 3.173278 = 0.448296.
        arms, _ = estimated(statistics([(100, 0.25), (100, 0.0)], seen=[0.25, 100.0]))
        assert arms[0].estimate == pytest.approx(0.448296, rel=1e-5)

    def test_rewards_of_low_variance_are_shrunk_less(self) -> None:
        # Two arms of 100 outcomes, means 0.6 and 0.5, squares 0.37 and 0.26 a piece: within 100 (0.01 + 0.01) = 2, as successes and
        # failures 100 (0.24 + 0.25) = 49. Dispersion 3 / 50.
        stats = statistics([(100, 60.0), (100, 50.0)])
        stats["reward_squares"] = [37.0, 26.0]
        arms, dispersion = estimated(stats, rewards_vary=False)
        assert dispersion == pytest.approx(0.06)
        # Means 60.5 / 101 and 0.5, average 0.549505; chance 0.06 * (0.240172 + 0.25) / 101 * 0.5 = 0.0001456; beyond
        # 2 * 0.049505^2 - 0.0001456 = 0.0047559; between 0.0440446; centre 0.533003; strength 0.06 * 5.651274 = 0.339076.
        assert arms[0].estimate == pytest.approx((60.0 + 0.339076 * 0.533003) / 100.339076, rel=1e-6)
