"""Worlds to simulate in: reward and cost laws, instance families. Nothing that decides may import this."""

from thrifty.environments.families import HardFamily
from thrifty.environments.laws import Bernoulli, Beta, ClippedGaussian, Deterministic, Law, Resampled, scaled
from thrifty.environments.world import World

__all__ = ["Bernoulli", "Beta", "ClippedGaussian", "Deterministic", "HardFamily", "Law", "Resampled", "World", "scaled"]
