"""The leaderboard: many instances, all policies, one ranking. It decides which policy is the default."""

from thrifty.leaderboard.board import Board, play
from thrifty.leaderboard.entry import Entry
from thrifty.leaderboard.instances import entries

__all__ = ["Board", "Entry", "entries", "play"]
