"""The configuration of the decision service that a recommendation amounts to."""

import re
from typing import Any

from thrifty.advice.recommendation import Recommendation


def router_bodies(found: Recommendation) -> dict[str, dict[str, Any]]:
    """The body to PUT at /v1/routers/NAME for every segment, by a name that a router may have."""
    columns = found.evidence.log.columns
    bodies: dict[str, dict[str, Any]] = {}
    for choice in found.choices:
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", choice.fit.name).strip("-")[:60] or "segment"
        while name in bodies:
            name += "_"
        prices = [float(f"{price:.6g}") if choice.fit.listed else None for price in choice.fit.latest]
        bodies[name] = {
            "arms": dict(zip(choice.fit.arms, prices, strict=True)),
            "alpha": choice.alpha,
            "policy": choice.policy,
            "default_outcome": "ignore" if columns.missing == "ignore" else "failure",
        }
        if columns.missing == "censored":
            bodies[name]["deadline_s"] = columns.deadline_s
    return bodies
