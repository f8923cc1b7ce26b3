"""A setting: one policy in one world, and everything that its pulls depend on."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from thrifty.environments import Changing, Feedback, World, checked_feedback, checked_world
from thrifty.policies import Policy, policy
from thrifty.policies.identity import policy_fingerprint
from thrifty.problem import Instance, checked_count
from thrifty.simulation.results import Runs
from thrifty.simulation.runner import checked_moments, checked_rounds, simulate

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Setting:
    """One policy in one world: everything its pulls depend on.

    Parameters
    ----------
    world : an Instance, a World or a Changing one
    policy : a name with its parameters, as on the command line, or a Policy. A name counts as it is written, a file with its text,
        and a Policy with its code and its settings.
    horizon, rounds, feedback, runs, seed, tapes : as in `simulate`
    checkpoints : "linear", "log", a number or a tuple of rounds

    >>> setting = Setting(Instance([0.5, 0.46], [1.0, 0.0], 0.1), "cs-etc", horizon=1000, runs=5, seed=1)
    >>> setting.key == Setting(setting.world, "cs-etc", horizon=1000, runs=5, seed=1).key
    True
    >>> Setting(setting.world, policy("cs-etc"), rounds=1000, feedback=Feedback(20), runs=5).label
    'cs-etc'

    """

    world: Instance | World | Changing
    policy: str | Policy
    horizon: int | None = None
    runs: int = 50
    seed: int = 0
    checkpoints: str | int | tuple[int, ...] = 1
    rounds: int | None = None
    feedback: Feedback | None = None
    tapes: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "world", checked_world(self.world))
        policy(self.policy)
        checked_count("runs", self.runs)
        checked_count("seed", self.seed, low=0)
        checked_rounds(self.rounds, self.horizon, self.instance.n_arms)
        checked_feedback(self.feedback)
        if isinstance(self.checkpoints, list):
            object.__setattr__(self, "checkpoints", tuple(self.checkpoints))
        self.moments  # noqa: B018  checkpoints are checked there

    @property
    def instance(self) -> Instance:
        """The expected rewards and costs; those of the beginning in a world that changes."""
        return self.world if isinstance(self.world, Instance) else self.world.instance

    @property
    def label(self) -> str:
        """The name of the policy in its result."""
        return policy(self.policy).label

    @property
    def rounds_of_a_run(self) -> int:
        """How many rounds a run has."""
        return checked_rounds(self.rounds, self.horizon, self.instance.n_arms)

    @property
    def all_rounds(self) -> int:
        """The rounds of all runs together."""
        return self.rounds_of_a_run * self.runs

    @property
    def moments(self) -> list[int]:
        """The rounds after which pulls are counted."""
        asked = list(self.checkpoints) if isinstance(self.checkpoints, tuple) else self.checkpoints
        moments: list[int] = checked_moments(checked_world(self.world), asked, self.rounds_of_a_run, self.runs).tolist()
        return moments

    @cached_property
    def key(self) -> str:
        """The digest of the setting: sixty-four hexadecimal digits."""
        chosen = policy(self.policy)
        described = {
            **self._facts,
            "policy": self.policy if isinstance(self.policy, str) else chosen.label,
            "code": policy_fingerprint(chosen) if isinstance(self.policy, Policy) else None,
            "sources": chosen.sources,  # of a policy from a file
            "checkpoints": self.checkpoints,
        }
        return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()

    @property
    def _facts(self) -> dict[str, Any]:
        return {
            "world": checked_world(self.world).to_dict(),
            "horizon": self.horizon,
            "rounds": self.rounds_of_a_run,
            "feedback": None if self.feedback is None else self.feedback.to_dict(),
            "tapes": self.tapes,
            "runs": self.runs,
            "seed": self.seed,
        }

    def fits(self, runs: Runs) -> bool:
        """Whether a result is one of this setting."""
        result = runs.results[0]
        found = {name: getattr(runs, name) for name in ("world", "horizon", "rounds", "feedback", "tapes")}
        found |= {"runs": result.pulls.shape[0], "seed": result.seed}
        same = json.dumps(found, sort_keys=True) == json.dumps(self._facts, sort_keys=True)
        return same and runs.known is None and result.policy == self.label and runs.checkpoints.tolist() == self.moments

    def play(self, progress: Progress | None = None) -> Runs:
        """Simulate it, on one thread."""
        return simulate(
            self.world,
            self.policy,
            horizon=self.horizon,
            rounds=self.rounds,
            feedback=self.feedback,
            runs=self.runs,
            seed=self.seed,
            checkpoints=self.moments,
            tapes=self.tapes,
            threads=1,
            progress=progress,
        )
