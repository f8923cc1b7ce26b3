"""The four scenarios: one realistic world each. Segments change over time, and outcomes come late. Every number is made up.

SMS, language models and payments derive from `thrifty.examples`, the source of the example logs too.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from thrifty.environments import Beta, Changing, Exponential, Feedback, Law, Resampled, World, scaled
from thrifty.environments.families import ad_audiences
from thrifty.examples import LLM, PAYMENTS, SMS, ExampleSegment, Route, Specification
from thrifty.problem import Instance, checked_count

_STEPS = 28
_QUANTILES = 64


@dataclass(frozen=True)
class ScenarioSegment:
    """One segment of a scenario: its arms and world, how many decisions it gets, and when their outcomes come back."""

    name: str
    arms: tuple[str, ...]
    world: World | Changing
    rounds: int
    feedback: Feedback


@dataclass(frozen=True)
class Scenario:
    """A world to compare policies in, with its assumptions in words.

    Parameters
    ----------
    name : as on the command line
    title : one line
    assumptions : what was assumed, one sentence each
    rounds : decisions in all, over all segments
    weight : lambda of the scalarised objective that is compared with, in reward per dollar
    costs_known : whether prices are listed; otherwise a bill is seen only with its outcome
    make : (rounds) -> the segments

    """

    name: str
    title: str
    assumptions: tuple[str, ...]
    rounds: int
    weight: float
    costs_known: bool
    make: Callable[[int], list[ScenarioSegment]]

    def segments(self, rounds: int | None = None) -> list[ScenarioSegment]:
        """Every segment, for this number of decisions in all."""
        return self.make(checked_count("rounds", self.rounds if rounds is None else rounds))


def _derived(specification: Specification, *, alpha: float, delay: float, deadline: int) -> Callable[[int], list[ScenarioSegment]]:
    """Segments from an example world: outcomes come after `delay` decisions on average, and count as failures at the deadline."""

    def make(rounds: int) -> list[ScenarioSegment]:
        traffic = sum(segment.share for segment in specification.segments)
        return [
            _segment(specification, segment, alpha, max(round(rounds * segment.share / traffic), 100), delay, deadline)
            for segment in specification.segments
        ]

    return make


def _segment(
    specification: Specification, segment: ExampleSegment, alpha: float, rounds: int, delay: float, deadline: int
) -> ScenarioSegment:
    lost = float(np.mean([route.loss for route in segment.routes]))
    return ScenarioSegment(
        segment.name,
        tuple(route.arm for route in segment.routes),
        _changing(specification, segment, alpha, rounds),
        rounds,
        Feedback(Exponential(delay), lost=lost, deadline=deadline),
    )


def _changing(specification: Specification, segment: ExampleSegment, alpha: float, rounds: int) -> Changing:
    """The rates and prices of a segment in equal steps of time; outages and changes of price begin and end steps of their own."""
    changes = [time for outage in specification.outages for time in (outage.start, outage.end)]
    changes += [repricing.start for repricing in specification.repricings]
    edges = np.unique(np.r_[np.linspace(0.0, 1.0, _STEPS + 1)[:-1], changes])
    middles = (edges + np.r_[edges[1:], 1.0]) / 2.0
    rates, prices = specification.rates(segment, middles), specification.prices(segment, middles)
    random_costs = any(route.cost_cv > 0.0 for route in segment.routes)
    pieces: list[tuple[int, World]] = []
    for edge, means, costs in zip(edges, rates, prices, strict=True):
        start = int(edge * rounds)
        laws = [_reward(route, float(mean)) for route, mean in zip(segment.routes, means, strict=True)]
        bills: list[Law | float] = [
            _cost(route, float(cost)) if random_costs else float(cost) for route, cost in zip(segment.routes, costs, strict=True)
        ]
        world = World(laws, bills, alpha)
        if pieces and (pieces[-1][0] == start or pieces[-1][1] == world):
            pieces[-1] = (pieces[-1][0], world)
        else:
            pieces.append((start, world))
    return Changing(pieces)


def _reward(route: Route, mean: float) -> Law | float:
    if route.concentration == 0.0:
        return mean
    return Beta(mean * route.concentration, (1.0 - mean) * route.concentration)


def _cost(route: Route, mean: float) -> Law:
    """A random cost: quantiles of a Gamma law, each as likely as any other."""
    rng = np.random.default_rng(7)
    shape = 1.0 / max(route.cost_cv, 0.01) ** 2
    draws = np.sort(rng.gamma(shape, 1.0 / shape, 64 * _QUANTILES)).reshape(_QUANTILES, 64).mean(axis=1)
    draws *= mean / draws.mean()
    return scaled(Resampled(tuple(draws / draws.max())), float(draws.max()))


def _audiences(rounds: int) -> list[ScenarioSegment]:
    audiences: Instance = ad_audiences(200, alpha=0.2, seed=1)
    names = tuple(f"audience {number:03d}" for number in range(audiences.n_arms))
    return [ScenarioSegment("all", names, World.of(audiences), rounds, Feedback(Exponential(200.0)))]


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            "sms",
            "SMS routing: 12 countries, 3 to 8 aggregators each",
            (
                "Delivery rates of .56 to .98 and prices of $.005 to $.22 a message, close to each other within a country.",
                "Over the time played, rates drift by up to four points; Elm delivers a quarter of its usual share for a "
                "twentieth of the time, Birch four fifths in one country; Cedar lowers its prices by a tenth.",
                "Receipts come after 50 decisions of the same country on average (exponential); 1 to 3% never come, and count as "
                "failures after 2,000 decisions.",
                "alpha = 0.1: up to a tenth of the best delivery rate may be given up for a lower price.",
            ),
            120_000,
            2.0,
            True,
            _derived(SMS, alpha=0.1, delay=50.0, deadline=2000),
        ),
        Scenario(
            "llm",
            "Language models: 6 models, 3 kinds of task, scores and random bills",
            (
                "A call's quality is a score in [0, 1], Beta distributed; its bill depends on the tokens, Gamma distributed, and "
                "is seen only with the outcome: costs are unknown and learnt.",
                "Judging takes 20 decisions on average; nothing is lost.",
                "alpha = 0.05.",
            ),
            30_000,
            5.0,
            False,
            _derived(LLM, alpha=0.05, delay=20.0, deadline=2000),
        ),
        Scenario(
            "ads",
            "Advertising: 200 audiences with click rates near .01",
            (
                "Click rates are log-normal around .012, bids follow them loosely; clicks come after 200 decisions on average.",
                "alpha = 0.2.",
            ),
            100_000,
            0.02,
            True,
            _audiences,
        ),
        Scenario(
            "payments",
            "Card payments: 6 processors, two regions",
            (
                "Success rates of .85 to .97, fees of $.15 to $.92 a payment; Spruce breaks down for a twentieth of the time, "
                "Maple lowers its fees by 30% after a third of it.",
                "Results come after 5 decisions on average; 1% never come, and count as failures after 500 decisions.",
                "alpha = 0.02: a percent or two of the payments is what a lower fee is worth.",
            ),
            60_000,
            0.2,
            True,
            _derived(PAYMENTS, alpha=0.02, delay=5.0, deadline=500),
        ),
    )
}
"""Every scenario by its name."""


def checked_scenario(name: str) -> Scenario:
    """The scenario of this name.

    >>> checked_scenario("sms").segments(2400)[0].name
    'BR'
    """
    if name not in SCENARIOS:
        raise ValueError(f"unknown scenario {name!r}: there are {', '.join(SCENARIOS)}")
    return SCENARIOS[name]
