"""What is of the wrong type at the top level is one line that says what belongs there."""

from collections.abc import Callable
from typing import Any

import pytest

from thrifty import (
    Bernoulli,
    Beta,
    ClippedGaussian,
    Deterministic,
    Instance,
    Resampled,
    Runs,
    Terms,
    World,
    policy,
    scaled,
    simulate,
)
from thrifty.environments import Changing, Feedback, HeavyTailed
from thrifty.sweep import Setting, sweep

FIGURE_1 = Instance([0.5, 0.46], [1.0, 0.0], 0.1)
SHORT: dict[str, Any] = {"horizon": 50, "runs": 2}
any_: Any = None
"""Lets a test pass what a type checker would refuse."""


def runs() -> Runs:
    return simulate(FIGURE_1, "cheapest", **SHORT)


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "no world": (
        lambda: simulate(any_, "cs-etc", **SHORT),
        "a world must be an Instance, a World or a Changing world, got a NoneType",
    ),
    "a dict as world": (lambda: simulate({"means": []}, "cs-etc", **SHORT), "got a dict: World.from_dict reads one"),  # type: ignore[arg-type]
    "a list as world": (lambda: simulate([0.5], "cs-etc", **SHORT), "got a list: write Instance"),  # type: ignore[arg-type]
    "no policies": (
        lambda: simulate(FIGURE_1, any_, **SHORT),
        "policies must be a list of names, files or Policy objects, got None",
    ),
    "a number as policies": (lambda: simulate(FIGURE_1, 3, **SHORT), "policies must be a list .*, got 3"),  # type: ignore[arg-type]
    "a dict of policies": (lambda: simulate(FIGURE_1, {"cs-etc": 1}, **SHORT), "policies must be a list"),  # type: ignore[arg-type]
    "a number as policy": (lambda: simulate(FIGURE_1, [3], **SHORT), "a policy is a name such as cs-etc, .* got 3"),  # type: ignore[list-item]
    "None as policy": (lambda: policy(any_), "a policy is a name such as cs-etc, a path ending in .py or a Policy, got None"),
    "a rule as policy": (lambda: policy(policy("cs-etc").rule), "a policy is a name such as cs-etc"),  # type: ignore[arg-type]
    "a number as feedback": (lambda: simulate(FIGURE_1, "cs-etc", feedback=100, **SHORT), r"got 100: write Feedback\(100\)"),  # type: ignore[arg-type]
    "a name as feedback": (lambda: simulate(FIGURE_1, "cs-etc", feedback="fixed:5", **SHORT), "must be a Feedback or None"),  # type: ignore[arg-type]
    "a text as horizon": (lambda: simulate(FIGURE_1, "cs-etc", horizon="100"), "horizon must be a whole number .*, got '100'"),  # type: ignore[arg-type]
    "a text as rounds": (lambda: simulate(FIGURE_1, "cs-etc", rounds="100"), "rounds must be a whole number .*, got '100'"),  # type: ignore[arg-type]
    "no length at all": (lambda: simulate(FIGURE_1, "cs-etc"), "say how long to play"),
    "more rounds than the horizon": (
        lambda: simulate(FIGURE_1, "cs-etc", horizon=100, rounds=200),
        "rounds must be at most the horizon, got 200 rounds for a horizon of 100",
    ),
    "a text as horizon beside rounds": (
        lambda: simulate(FIGURE_1, "cs-etc", horizon="100", rounds=50),  # type: ignore[arg-type]
        "horizon must be a whole number",
    ),
    "None as runs": (lambda: simulate(FIGURE_1, "cs-etc", horizon=50, runs=any_), "runs must be a whole number .*, got None"),
    "a text as seed": (lambda: simulate(FIGURE_1, "cs-etc", seed="1", **SHORT), "seed must be a whole number .*, got '1'"),  # type: ignore[arg-type]
    "a text as threads": (lambda: simulate(FIGURE_1, "cs-etc", threads="2", **SHORT), "threads must be a whole number"),  # type: ignore[arg-type]
    "None as checkpoints": (lambda: simulate(FIGURE_1, "cs-etc", checkpoints=any_, **SHORT), "a list of rounds; got None"),
    "half a checkpoint": (lambda: simulate(FIGURE_1, "cs-etc", checkpoints=2.5, **SHORT), "a list of rounds; got 2.5"),  # type: ignore[arg-type]
    "a text as a checkpoint": (lambda: simulate(FIGURE_1, "cs-etc", checkpoints=["9"], **SHORT), "a checkpoint must be"),  # type: ignore[list-item]
    "None as means": (lambda: Instance(any_, [1.0], 0.1), "means must be a list"),
    "a dict as means": (lambda: Instance({"a": 0.5}, [1.0], 0.1), "means must be a list of numbers, got"),  # type: ignore[arg-type]
    "a number as means": (lambda: Instance(0.5, 1.0, 0.1), "means must be a list of one number per arm, got 0.5"),
    "None as alpha": (lambda: Instance([0.5], [1.0], any_), r"alpha must be in \[0, 1\], got None"),
    "a text as the number of arms": (lambda: Terms("2", None, 0.1, 100), "n_arms must be a whole number of at least 1, got '2'"),  # type: ignore[arg-type]
    "half an arm": (lambda: Terms(2.5, None, 0.1, 100), "n_arms must be a whole number"),  # type: ignore[arg-type]
    "a number as rewards": (lambda: World(0.5, [1.0], 0.1), "rewards must be a list of one number or law per arm, got 0.5"),  # type: ignore[arg-type]
    "None as a reward": (lambda: World([any_], [1.0], 0.1), "rewards must be a list of one number or law per arm"),
    "None as costs": (lambda: World([0.5], any_, 0.1), "costs must be a list of one number or law per arm, got None"),
    "a text as a cost": (lambda: World([0.5], ["1"], 0.1), "costs must be a list of one number or law per arm"),  # type: ignore[list-item]
    "a list as a described world": (lambda: World.from_dict([0.5]), "an instance is read from a dict"),  # type: ignore[arg-type]
    "a number to resample": (lambda: Resampled(3), "a resampled law needs a list of numbers, got 3"),  # type: ignore[arg-type]
    "a text to resample": (lambda: Resampled("0.5"), "a resampled law needs a list of numbers, got '0.5'"),  # type: ignore[arg-type]
    "None to resample": (lambda: Resampled((any_,)), "a resampled law needs a list of numbers"),
    "a text as probability": (lambda: Bernoulli("0.3"), "p of a bernoulli law must be a number, got '0.3'"),  # type: ignore[arg-type]
    "None in a Beta law": (lambda: Beta(any_, 1.0), "a of a beta law must be a number, got None"),
    "a text as centre": (lambda: ClippedGaussian("a", 1.0), "centre of a clipped-gaussian law must be a number"),  # type: ignore[arg-type]
    "a list as value": (lambda: Deterministic([1]), "value of a deterministic law must be a number"),  # type: ignore[arg-type]
    "a number to scale": (lambda: scaled(0.5, 2.0), "scaled needs a law, got 0.5"),  # type: ignore[arg-type]
    "a text as factor": (lambda: scaled(Bernoulli(0.5), "2"), "factor of a scaled law must be a number, got '2'"),  # type: ignore[arg-type]
    "None as pieces": (lambda: Changing(any_), r"a changing world is a list of \(first round, world\), got a NoneType"),
    "a world as pieces": (lambda: Changing(World([0.5], [1.0], 0.1)), "a changing world is a list"),  # type: ignore[arg-type]
    "worlds without rounds": (lambda: Changing([FIGURE_1]), r"a piece of a changing world is \(first round, world\)"),  # type: ignore[list-item]
    "a number as a piece": (lambda: Changing([(0, 3)]), "a world must be an Instance"),  # type: ignore[list-item]
    "a text as first round": (lambda: Changing([("0", FIGURE_1)]), "the first round of a piece must be a whole number"),  # type: ignore[list-item]
    "a changing piece": (lambda: Changing([(0, Changing([(0, FIGURE_1)]))]), "must not change itself"),  # type: ignore[list-item]
    "a text as delay": (lambda: Feedback("fixed:5"), "a fixed delay must be a number of decisions, 0 or more, got fixed:5"),  # type: ignore[arg-type]
    "a text as share": (lambda: Feedback(5, lost="0.1"), r"lost must be in \[0, 1\], got 0.1"),  # type: ignore[arg-type]
    "None as tail": (lambda: HeavyTailed(5.0, any_), "the tail of a heavy-tailed delay must be above 1"),
    "None to sweep": (lambda: sweep(any_, "x"), "a sweep takes a list of Setting, got None"),
    "one setting to sweep": (lambda: sweep(Setting(FIGURE_1, "cs-etc", 50, 2), "x"), "a sweep takes a list of Setting"),  # type: ignore[arg-type]
    "worlds to sweep": (lambda: sweep([FIGURE_1], "x"), "a sweep takes a list of Setting"),  # type: ignore[list-item]
    "no folder": (lambda: sweep([], any_), "folder must be the path of a folder, got None"),
    "a number as backend": (lambda: sweep([Setting(FIGURE_1, "cs-etc", 50, 2)], "x", backend=3), "backend must be"),  # type: ignore[arg-type]
    "a number as the policy of a setting": (lambda: Setting(FIGURE_1, 3, 50, 2), "a policy is a name such as cs-etc"),  # type: ignore[arg-type]
    "a dict as the world of a setting": (lambda: Setting({}, "cs-etc", 50, 2), "a world must be an Instance"),  # type: ignore[arg-type]
    "a setting without length": (lambda: Setting(FIGURE_1, "cs-etc"), "say how long to play"),
    "a number as the feedback of a setting": (lambda: Setting(FIGURE_1, "cs-etc", 50, feedback=5), r"write Feedback\(5\)"),  # type: ignore[arg-type]
    "nothing to load": (lambda: Runs.load(any_), "runs are read from a file: give its path, got None"),
    "nowhere to save": (lambda: runs().save(any_), "runs are saved in a file: give its path, got None"),
    "nothing to draw into": (lambda: runs().plot(), "give a path or ax="),
    "a number to draw into": (lambda: runs().plot(3), "a picture needs the path of a file"),  # type: ignore[arg-type]
    "an unknown metric": (lambda: runs().plot("x.png", metric="money"), "metric must be one of quality, cost, total, got 'money'"),
    "an unknown band": (lambda: runs().plot("x.png", band="sd"), "band must be one of interval, quantiles, got 'sd'"),
    "an unknown table": (lambda: runs().table("word"), "form must be one of text, markdown, latex, html, csv, got 'word'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_type_is_named_with_its_remedy(case: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call, message = WRONG[case]
    with pytest.raises(ValueError, match=message) as raised:
        call()
    assert "\n" not in str(raised.value)
