"""Worlds to simulate in: reward and cost laws, change, late feedback, instance families. Nothing that decides may import this."""

from thrifty.environments.changing import Changing, abrupt, checked_world, drifting, gradual, outage, periodic, repriced
from thrifty.environments.families import HardFamily
from thrifty.environments.feedback import Exponential, Feedback, Fixed, HeavyTailed, checked_feedback, read_delay
from thrifty.environments.fees import Fees
from thrifty.environments.laws import Bernoulli, Beta, ClippedGaussian, Deterministic, Law, Resampled, scaled
from thrifty.environments.world import World

__all__ = [
    "Bernoulli",
    "Beta",
    "Changing",
    "ClippedGaussian",
    "Deterministic",
    "Exponential",
    "Feedback",
    "Fees",
    "Fixed",
    "HardFamily",
    "HeavyTailed",
    "Law",
    "Resampled",
    "World",
    "abrupt",
    "checked_feedback",
    "checked_world",
    "drifting",
    "gradual",
    "outage",
    "periodic",
    "read_delay",
    "repriced",
    "scaled",
]
