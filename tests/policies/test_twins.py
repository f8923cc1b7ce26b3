"""Every policy and its obvious twin where costs are unknown, and with parameters away from their defaults."""

import pytest

from tests import oracles
from thrifty import Bernoulli, Instance, World, policy, simulate
from thrifty.environments import scaled

pytestmark = pytest.mark.usefixtures("compiled_streams_only")  # the golden sequences hold the compiled rules to the same choices

HORIZON = 100
INSTANCES = {
    "close to the floor": Instance([0.5, 0.46, 0.2, 0.47], [1.0, 0.1, 0.0, 0.1], 0.1),
    "far apart": Instance([0.2, 0.9, 0.8], [0.0, 0.8, 0.4], 0.3),
    "alpha 0": Instance([0.6, 0.7, 0.4], [0.5, 0.9, 0.1], 0.0),
    "alpha 1": Instance([0.6, 0.1, 0.4], [0.5, 0.2, 0.9], 1.0),
    "tied costs": Instance([0.1, 0.9, 0.95], [0.5, 0.5, 0.5], 0.2),
    "many arms": Instance([0.5, 0.46, 0.2, 0.47, 0.6, 0.6, 0.35, 0.58], [0.7, 0.1, 0.0, 0.1, 1.0, 0.9, 0.3, 0.2], 0.1),
    "one good arm": Instance([0.95, 0.1, 0.5], [1.0, 0.0, 0.5], 0.5),
}
LEARNS_COSTS = [label for label in (*oracles.TWINS, *oracles.SET_TWINS) if policy(label).rule_for_unknown_costs]


def arms(world: Instance | World, label: str, horizon: int = HORIZON) -> list[int]:
    trace = simulate(world, label, horizon=horizon, runs=1, seed=5, trace=True)[label].trace
    assert trace is not None
    return [int(arm) for arm in trace[0]]


@pytest.mark.parametrize("name", INSTANCES)
@pytest.mark.parametrize("label", oracles.SET_TWINS)
def test_a_policy_with_other_parameters_chooses_as_its_obvious_twin(label: str, name: str) -> None:
    assert arms(INSTANCES[name], label) == oracles.play(oracles.SET_TWINS[label], INSTANCES[name], HORIZON, seed=5)


@pytest.mark.parametrize("label", oracles.SET_TWINS)
def test_other_parameters_make_other_choices(label: str) -> None:
    # Without this, a parameter that nobody reads would pass the test above.
    plain = label.rpartition("," if "," in label else ":")[0]
    assert any(arms(instance, label, 400) != arms(instance, plain, 400) for instance in INSTANCES.values())


@pytest.mark.parametrize("scale", [1.0, 4.0])
@pytest.mark.parametrize("name", INSTANCES)
@pytest.mark.parametrize("label", LEARNS_COSTS)
def test_a_policy_that_learns_costs_chooses_as_its_obvious_twin(label: str, name: str, scale: float) -> None:
    instance = INSTANCES[name]
    world = World(
        instance.means.tolist(), [scaled(Bernoulli(cost / scale), scale) for cost in instance.costs.tolist()], instance.alpha
    )
    spec = label
    if "cost_scale" in policy(label).parameters:
        spec = f"{label}{',' if ':' in label else ':'}cost_scale={scale:g}"
    twin = {**oracles.TWINS, **oracles.SET_TWINS}[label]
    assert arms(world, spec) == oracles.play(twin, instance, HORIZON, seed=5, cost_scale=scale)


@pytest.mark.parametrize("scale", [1.0, 4.0])
@pytest.mark.parametrize("name", INSTANCES)
@pytest.mark.parametrize("label", [label for label in LEARNS_COSTS if "cost_scale" in policy(label).parameters])
def test_a_policy_that_learns_scale_and_spread_chooses_as_its_obvious_twin(label: str, name: str, scale: float) -> None:
    instance = INSTANCES[name]
    world = World(
        instance.means.tolist(), [scaled(Bernoulli(cost / scale), scale) for cost in instance.costs.tolist()], instance.alpha
    )
    twin = {**oracles.TWINS, **oracles.SET_TWINS}[label]
    assert arms(world, label) == oracles.play(twin, instance, HORIZON, seed=5, cost_scale=scale, scale_is_known=False)
