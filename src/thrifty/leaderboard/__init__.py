"""The leaderboard: many instances, all policies, one ranking. It decides which policy is the default."""

from thrifty.leaderboard.board import Board, play
from thrifty.leaderboard.instances import Entry, entries

__all__ = ["Board", "Entry", "entries", "play"]
