import json
import math

import numpy as np
import pytest

from thrifty import Bernoulli, Beta, ClippedGaussian, Deterministic, Instance, Resampled, World, scaled
from thrifty.arrays import Floats
from thrifty.compiled import builder
from thrifty.environments.law_reading import law_from_dict
from thrifty.environments.laws import Law
from thrifty.environments.sampling import LawTable, draw_cost, tabulate
from thrifty.streams import Stream, make_streams

LAWS: list[Law] = [
    Bernoulli(0.3),
    Bernoulli(0.0),
    Bernoulli(1.0),
    Beta(2.0, 5.0),
    ClippedGaussian(0.1, 0.3),
    ClippedGaussian(0.9, 0.05),
    Deterministic(0.7),
    Resampled((0.1, 0.5, 0.9, 0.9)),
    scaled(Beta(2.0, 2.0), 0.02),
    scaled(scaled(Bernoulli(0.5), 10.0), 3.0),
]


@builder
def _draws(table: LawTable, arm: int, stream: Stream, n: int) -> Floats:
    return np.array([draw_cost(table, arm, 1.0, stream) for _ in range(n)])


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_draws_have_the_mean_the_law_claims(law: Law) -> None:
    n = 100_000
    # Drawn through a table with a resampling neighbour, so that the offsets into the data are exercised.
    values = _draws(tabulate([Resampled((0.2, 0.4)), law]), 1, make_streams(1, np.array([[0]]))[0], n)
    assert values.min() >= 0.0
    assert values.max() <= law.scale
    # 5 standard errors: 6e-7.
    assert abs(values.mean() - law.mean) <= 5 * values.std() / math.sqrt(n) + 1e-12


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_law_survives_json(law: Law) -> None:
    assert law_from_dict(json.loads(json.dumps(law.to_dict()))).to_dict() == law.to_dict()


def test_resampling_takes_every_value() -> None:
    values = _draws(tabulate([Resampled((0.1, 0.5, 0.9))]), 0, make_streams(2, np.array([[0]]))[0], 1000)
    assert set(values.tolist()) == {0.1, 0.5, 0.9}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bernoulli(1.2), r"must be in \[0, 1\], got 1.2"),
        (lambda: Bernoulli(float("nan")), r"must be in \[0, 1\], got nan"),
        (lambda: Beta(0.0, 1.0), "must be positive, got a=0.0"),
        (lambda: ClippedGaussian(0.5, 0.0), "positive sd, got 0.5 and 0.0"),
        (lambda: Deterministic(2.0), "got 2.0: use scaled"),
        (lambda: Resampled(()), "at least one value"),
        (lambda: Resampled((0.5, 1.5)), "got 1.5: use scaled"),
        (lambda: scaled(Bernoulli(0.5), -1.0), "positive number only, got -1.0"),
        (lambda: law_from_dict({"law": "cauchy"}), "`law` is one of bernoulli, beta"),
        (lambda: law_from_dict({"law": "beta", "c": 1}), "cannot read the law"),
    ],
)
def test_wrong_laws_are_refused(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]


class TestWorld:
    def test_an_instance_becomes_bernoulli_rewards_and_known_costs(self) -> None:
        instance = Instance([0.5, 0.46], [1.0, 0.0], 0.1)
        world = World.of(instance)
        assert world.instance == instance
        assert world.costs_known
        assert world.terms(10).costs is not None

    def test_random_costs_are_hidden_from_the_terms(self) -> None:
        world = World([0.5, 0.4], [Beta(1, 1), Beta(1, 3)], 0.1)
        assert world.instance.costs.tolist() == [0.5, 0.25]
        assert world.terms(10).costs is None

    def test_a_world_survives_json(self) -> None:
        world = World([Beta(1, 2), 0.4], [scaled(Beta(1, 1), 0.1), Deterministic(0.3)], 0.1)
        assert World.from_dict(json.loads(json.dumps(world.to_dict()))) == world

    @pytest.mark.parametrize(
        ("described", "message"),
        [
            ({"means": [0.5], "costs": [1]}, "alpha is missing"),
            ({"costs": [1], "alpha": 0.1}, "means is missing"),
            ({"means": [0.5], "costs": [1], "alpha": 0.1, "colour": 3}, "does not know colour"),
            ({"means": 0.5, "costs": [1], "alpha": 0.1}, "rewards must be a list"),
            ({"means": ["a"], "costs": [1], "alpha": 0.1}, "rewards must be a list of numbers or laws"),
            ({"means": [0.5], "costs": [1, 2], "alpha": 0.1}, "same length"),
            ({"means": [], "costs": [], "alpha": 0.1}, "no arms"),
        ],
    )
    def test_wrong_descriptions_are_refused(self, described: dict[str, object], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            World.from_dict(described)

    def test_rewards_must_stay_within_one(self) -> None:
        with pytest.raises(ValueError, match="divide them by their largest value"):
            World([scaled(Bernoulli(0.5), 2.0)], [1.0], 0.1)

    def test_known_and_unknown_costs_do_not_mix(self) -> None:
        with pytest.raises(ValueError, match=r"write 1\.0 as a Deterministic law"):
            World([0.5, 0.5], [1.0, Beta(1, 1)], 0.1)
