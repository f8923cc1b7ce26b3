"""Settings of a router: alpha, and everything else with a default. Checks of arms, prices, names and segments."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from thrifty.described import described, setting
from thrifty.policies import DEFAULT_POLICY, policy
from thrifty.problem import MOST_COST, checked_alpha

NEWCOMER_OUTCOMES = 30
"""An arm added while running is a newcomer at least until so many of its outcomes have come back."""

LEAST_SHARE = 0.001
"""The smallest group of a rollout that a guardrail compares: one decision in a thousand."""

MOST_KEPT = 1_000_000
"""The longest window of a router: it keeps so many outcomes of every segment one by one."""

_RETIRED = {"cs-ids": ("leniency",)}
"""Parameters that policies had once. Rows of a log that name them are read without; nobody can ask for them."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

ROUTER_POLICY = f"{DEFAULT_POLICY}+restart"
"""The policy of a router for which none is named. Routes break and recover: `+restart` notices that, and costs 3% more regret."""


@dataclass(frozen=True)
class Settings:
    """Everything about a router but its arms; `described(Settings)` has the range and the meaning of every field.

    >>> Settings(alpha=0.05).mode
    'live'
    >>> Settings(alpha=0.05, holdout=1.5)
    Traceback (most recent call last):
    ValueError: holdout must be a number from 0 to 0.99, got 1.5

    """

    alpha: float = setting(meaning="the share of the best reward that one is willing to give up", high=1.0)
    policy: str = setting(
        ROUTER_POLICY,
        'a policy by name, with parameters if need be: "cs-ts:prior=gaussian"; the default forgets what was before an arm broke',
    )
    seed: int = setting(
        0, "with the number of a decision it fixes the randomness of the decision", high=2**63 - 1, high_over_http=2**53
    )
    deadline_s: float = setting(
        3600.0, "seconds after which a decision without an outcome gets the default outcome", above_low=True, high_over_http=1e9
    )
    default_outcome: str = setting(
        "failure", '"failure" counts a reward of 0, "ignore" counts nothing', words=("failure", "ignore")
    )
    mode: str = setting(
        "live",
        'with "shadow" the router decides and logs, while the caller keeps its own choice and reports it with the outcome; with '
        '"canary" a share of the traffic is routed and the rest takes the baseline',
        words=("live", "canary", "shadow"),
    )
    canary_share: float = setting(
        0.05, "the share of keys (customers, cards, requests) that is routed in a canary", low=LEAST_SHARE, high=0.99
    )
    baseline: str = setting(
        "", "the arm that traffic outside the canary takes, and all traffic after a fallback; empty for the best arm known"
    )
    guardrail: str = setting(
        "canary",
        'when routed traffic is below the floor beyond doubt, the router falls back to the baseline: "canary" watches a canary, '
        '"on" also live traffic with a holdout, "off" nothing',
        words=("canary", "on", "off"),
    )
    holdout: float = setting(
        0.0, "the share of decisions that take the best arm whatever it costs, so that the saving is measured", high=0.99
    )
    daily_budget: float = setting(
        0.0,
        "what decisions may cost from midnight to midnight (UTC), in the unit of the prices; 0 for no budget. When it is in danger "
        "no arm is taken that costs more than the cheapest feasible one; quality stays above the floor, so it may not be kept",
        high_over_http=MOST_COST,
    )
    newcomer_share: float = setting(
        0.1,
        "the share of decisions in which an arm added while running is offered to the rule at first",
        above_low=True,
        high=1.0,
    )
    leaning: bool = setting(True, "whether segments borrow from each other as far as they are alike, or each learns alone")
    max_segments: int = setting(
        10_000, "further segments are counted in the nearest one above; existing ones stay", low=1, high=1_000_000
    )
    propensity_draws: int = setting(
        20,
        "choices n that are drawn besides to estimate the probability of a random choice, a quarter of that where the rule "
        "states it given its draws; 0 for none. Otherwise no probability below 1 / (n + 1) is given",
        high=10_000,
        high_over_http=1000,
    )
    memory_bytes: int = setting(
        67_108_864,
        "of recent decisions in memory, about; older ones are read from the log when their outcome comes. Without a store there "
        "is no log: an older decision then gets the default outcome before its deadline",
        low=65_536,
        high=2**40,
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", checked_alpha(self.alpha))
        _check_policy(self.policy)
        for each in described(Settings):
            object.__setattr__(self, each.name, each.checked(getattr(self, each.name)))

    def check_arms(self, n_arms: int) -> None:
        """A ValueError where the policy cannot work with so many arms."""
        policy(self.policy).forgetting.check(n_arms)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, by name."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Settings":
        """The settings among `values`, which may come from another version of this class.

        >>> Settings.from_dict({"alpha": 0.1, "policy": "cs-ids:leniency=0.7,power=3+restart"}).policy
        'cs-ids:power=3+restart'
        """
        known = {name: values[name] for name in cls.names() if name in values}
        if isinstance(known.get("policy"), str):
            known["policy"] = _without_retired(known["policy"])
        return cls(**known)

    @classmethod
    def names(cls) -> list[str]:
        """What can be set."""
        return [field.name for field in fields(cls)]


def _without_retired(spec: str) -> str:
    """The policy without parameters that it had when the row of the log was written, and has no more."""
    rule, plus, forgetting = spec.partition("+")
    name, _, parameters = rule.partition(":")
    if name not in _RETIRED:
        return spec
    kept = ",".join(each for each in parameters.split(",") if each.partition("=")[0] not in _RETIRED[name])
    return (f"{name}:{kept}" if kept else name) + plus + forgetting


def _check_policy(spec: str) -> None:
    """Raise a ValueError unless a router can use the policy."""
    if not isinstance(spec, str):
        raise ValueError(f"policy must be a name such as cs-ids, got {spec!r:.80}")
    chosen = policy(spec)
    if chosen.known_truths:
        raise ValueError(
            f"policy {chosen.name} is given the truth ({', '.join(chosen.known_truths)}), which no router knows: take another"
        )
    if chosen.forgetting.kept > MOST_KEPT:
        raise ValueError(f"a router's window can hold at most {MOST_KEPT} outcomes, got {chosen.forgetting.label}")


def checked_name(what: str, name: object) -> str:
    """`name`, or a ValueError when it could not stand in a decision's id."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"{what} must be 1 to 64 letters, digits, - or _, got {name!r:.80}")
    return name


def checked_text(what: str, text: object, *, longest: int = 200) -> str:
    """`text`, or a ValueError when it is empty, too long or has control characters."""
    if not isinstance(text, str) or not 0 < len(text) <= longest or not text.isprintable():
        raise ValueError(f"{what} must be 1 to {longest} printable characters, got {text!r:.80}")
    return text


def checked_segment(path: object) -> str:
    """`path`, or a ValueError when it is not one: "DE/vodafone", parts that are not empty.

    >>> checked_segment("DE//vodafone")
    Traceback (most recent call last):
    ValueError: segment must be a path of parts that are not empty, such as DE/vodafone, got 'DE//vodafone'
    """
    text = checked_text("segment", path)
    if not all(part.strip() for part in text.split("/")):
        raise ValueError(f"segment must be a path of parts that are not empty, such as DE/vodafone, got {text!r:.80}")
    return text


def path_of(name: str) -> list[str]:
    """The name of a segment and of those above it, up to the root.

    >>> path_of("DE/vodafone")
    ['DE/vodafone', 'DE', '']
    """
    parts = name.split("/") if name else []
    return ["/".join(parts[:depth]) for depth in range(len(parts), -1, -1)]


def checked_arms(arms: object) -> dict[str, float | None]:
    """Prices by name, or a ValueError: at least one arm, each with a price from 0 to `MOST_COST`, or None for unknown."""
    if not isinstance(arms, Mapping) or not arms:
        raise ValueError(f'arms must be prices by name such as {{"a": 0.0079, "b": 0.0041}}, got {arms!r:.80}')
    return {checked_text("an arm's name", name): checked_price(name, price) for name, price in arms.items()}


def checked_price(name: str, price: object) -> float | None:
    """`price` as a number from 0 to `MOST_COST`, or None for unknown."""
    if price is None:
        return None
    if isinstance(price, bool) or not isinstance(price, (int, float)) or not 0.0 <= price <= MOST_COST:
        raise ValueError(
            f"the price of {name!r:.80} must be a number from 0 to {MOST_COST:g}, or None where unknown, got {price!r:.80}"
        )
    return float(price)
