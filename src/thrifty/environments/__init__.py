"""Worlds to simulate in: reward and cost laws. Nothing that decides may import this."""

from thrifty.environments.laws import Bernoulli, Beta, ClippedGaussian, Deterministic, Law, Resampled, scaled
from thrifty.environments.world import World

__all__ = ["Bernoulli", "Beta", "ClippedGaussian", "Deterministic", "Law", "Resampled", "World", "scaled"]
