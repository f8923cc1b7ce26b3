"""The four scenarios: one realistic world each, built from segments that change and are heard late. Every number is made up."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from thrifty.environments import Beta, Changing, Exponential, Feedback, Law, Resampled, World, scaled
from thrifty.environments.families import ad_audiences
from thrifty.examples import LLM, SMS, Outage, Repricing, Route, Segment, Specification
from thrifty.problem import Instance, checked_count

_STEPS = 28
_QUANTILES = 64


@dataclass(frozen=True)
class Course:
    """One segment of a scenario: its world, how many decisions fall into it, and when their outcomes come back."""

    segment: str
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
    cost_scale : the largest bill a call can have, where costs are unknown
    make : (rounds) -> the courses

    """

    name: str
    title: str
    assumptions: tuple[str, ...]
    rounds: int
    weight: float
    cost_scale: float | None
    make: Callable[[int], list[Course]]

    def courses(self, rounds: int | None = None) -> list[Course]:
        """Every segment, for this number of decisions in all."""
        return self.make(checked_count("rounds", self.rounds if rounds is None else rounds))


def _courses(specification: Specification, alpha: float, delay: float, deadline: int) -> Callable[[int], list[Course]]:
    def make(rounds: int) -> list[Course]:
        traffic = sum(segment.share for segment in specification.segments)
        return [
            _course(specification, segment, alpha, delay, deadline, rounds=max(round(rounds * segment.share / traffic), 100))
            for segment in specification.segments
        ]

    return make


def _course(specification: Specification, segment: Segment, alpha: float, delay: float, deadline: int, *, rounds: int) -> Course:
    """The segment's rates and prices in even steps, with one more at every beginning and end of an outage or a change of price."""
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
    lost = float(np.mean([route.loss for route in segment.routes]))
    feedback = Feedback(Exponential(delay), lost=lost, deadline=deadline)
    return Course(segment.name, tuple(route.arm for route in segment.routes), Changing(pieces), rounds, feedback)


def _reward(route: Route, mean: float) -> Law | float:
    if route.concentration == 0.0:
        return mean
    return Beta(mean * route.concentration, (1.0 - mean) * route.concentration)


def _cost(route: Route, mean: float) -> Law:
    """A random bill: the quantiles of a Gamma law, of which each is as likely as any other."""
    rng = np.random.default_rng(7)
    shape = 1.0 / max(route.cost_cv, 0.01) ** 2
    draws = np.sort(rng.gamma(shape, 1.0 / shape, 64 * _QUANTILES)).reshape(_QUANTILES, 64).mean(axis=1)
    draws *= mean / draws.mean()
    return scaled(Resampled(tuple(draws / draws.max())), float(draws.max()))


_PAYMENTS = Specification(
    name="payments",
    about="Card payments: two regions, six processors, two weeks",
    days=14.0,
    rows=100_000,
    segments=(
        Segment("domestic", 7, (
            Route("Oak", 0.34, 0.968), Route("Maple", 0.31, 0.966), Route("Pine", 0.27, 0.961, 0.004),
            Route("Spruce", 0.24, 0.952, -0.006), Route("Willow", 0.19, 0.928), Route("Yew", 0.15, 0.882),
        )),
        Segment("abroad", 3, (
            Route("Oak", 0.92, 0.938), Route("Maple", 0.88, 0.925), Route("Pine", 0.71, 0.931, -0.004),
            Route("Spruce", 0.66, 0.902), Route("Willow", 0.58, 0.851),
        )),
    ),
    outages=(Outage("Spruce", 0.55, 0.60, 0.10),),
    repricings=(Repricing("Maple", 0.35, 0.70),),
)  # fmt: skip


def _audiences(rounds: int) -> list[Course]:
    audiences: Instance = ad_audiences(200, alpha=0.2, seed=1)
    names = tuple(f"audience {number:03d}" for number in range(audiences.n_arms))
    return [Course("all", names, World.of(audiences), rounds, Feedback(Exponential(200.0)))]


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
            None,
            _courses(SMS, 0.1, 50.0, 2000),
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
            0.3,
            _courses(LLM, 0.05, 20.0, 2000),
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
            None,
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
            None,
            _courses(_PAYMENTS, 0.02, 5.0, 500),
        ),
    )
}
"""Every scenario by its name."""


def checked_scenario(name: str) -> Scenario:
    """The scenario of this name.

    >>> checked_scenario("sms").courses(2400)[0].segment
    'BR'
    """
    if name not in SCENARIOS:
        raise ValueError(f"unknown scenario {name!r}: there are {', '.join(SCENARIOS)}")
    return SCENARIOS[name]
