"""A router at a glance: quality against the floor, spend, and the saving with its interval."""

import math
from typing import TYPE_CHECKING, Any

from thrifty.router.outlook import Look, Looker, SumsCopy
from thrifty.router.saving import NOTHING, Saving, SavingModel, may_be_best, measured_saving

if TYPE_CHECKING:
    from thrifty.router.view import RouterView

_Z = 1.959964


def summary(router: "RouterView", *, max_age_s: float = 0.0) -> dict[str, Any]:
    """A router at a glance, as plain values. Takes milliseconds where there are many segments: not for the event loop.

    `counted` outcomes are in the sums: all since the last reset, default ones of deadlines included, void ones not. `quality` is
    their mean reward, with a 95% interval, and `spend` what they cost; `decisions` and `outcomes` count on through resets. `floor`
    is what the best arm known leaves of it now; `saving` is against always taking that arm, see `thrifty.router.saving`.
    """
    copied = router.outlook.copy(router, max_age_s=max_age_s)
    arms, settings, root = copied.arms, copied.settings, copied.sums[0]
    choice = arms.active_at_prices()
    look = Looker(copied, settings, choice).at(0) if choice[0] else None
    seen, reward, spend = (float(root[name].sum()) for name in ("seen", "reward_sum", "cost_sum"))
    low, high = score_interval(reward, seen)
    saving = _saving(copied, look)
    decisions, outcomes, expired, pending = copied.counts
    return {
        "name": router.name,
        "mode": settings.mode,
        "fallback": copied.fallback,
        "alpha": settings.alpha,
        "policy": settings.policy,
        "version": copied.version,
        "decisions": decisions,
        "outcomes": outcomes,
        "expired": expired,
        "pending": pending,
        "counted": int(seen),
        "quality": reward / seen if seen > 0.0 else None,
        "quality_low": low,
        "quality_high": high,
        **_chosen(copied, look),
        "spend": spend,
        "saving": saving.amount,
        "saving_low": saving.low,
        "saving_high": saving.high,
        "saving_share": saving.share,
        "saving_basis": saving.basis,
        "segments": len(copied.names),
        "arms": len(choice[0]),
        "at": copied.at,
    }


def _chosen(copied: SumsCopy, look: Look | None) -> dict[str, Any]:
    """The floor and the best arm, if anything is known, and the arm that is taken."""
    names, pinned = copied.arms.names, copied.arms.pinned
    chosen = None if pinned is None else names[pinned]
    if look is None or look.best is None or look.chosen is None:
        return {"floor": None, "best_arm": None, "chosen": chosen, "pinned": pinned is not None}
    best = names[look.arms[look.best]]
    return {"floor": look.floor, "best_arm": best, "chosen": chosen or names[look.arms[look.chosen]], "pinned": pinned is not None}


def _saving(copied: SumsCopy, look: Look | None) -> Saving:
    """Measured by the holdout if there is one with enough outcomes, else modelled."""
    measured = measured_saving(copied.groups) if copied.settings.holdout else NOTHING
    if measured.amount is not None or look is None or look.best is None:
        return measured
    return saving_in(copied, SavingModel(copied.sums, copied.parents), 0, look.arms, best=look.arms[look.best])


def saving_in(copied: SumsCopy, model: SavingModel, number: int, arms: tuple[int, ...], *, best: int) -> Saving:
    """The modelled saving of a segment and all below it against the arm `best`.

    Any of `arms` may be the best one of which the outcomes of this segment leave that open; what it borrows is no evidence here.
    """
    known = (copied.sums if copied.recent is None else copied.recent)[number]
    outcomes, rewards = known["seen"].tolist(), known["reward_sum"].tolist()
    means = tuple(rewards[arm] / outcomes[arm] if outcomes[arm] > 0.0 else -1.0 for arm in arms)
    candidates = may_be_best(arms, means, tuple(outcomes[arm] for arm in arms))
    return model.saving(number, candidates=candidates, best=best)


def score_interval(successes: float, n: float) -> tuple[float | None, float | None]:
    """The 95% interval of a mean of n rewards in [0, 1]: Wilson's, which is wide enough for rewards that are not 0 or 1 too.

    >>> low, high = score_interval(90.0, 100.0)
    >>> round(low, 3), round(high, 3)
    (0.826, 0.945)
    >>> score_interval(0.0, 0.0)
    (None, None)
    """
    if n <= 0.0:
        return None, None
    mean, z2 = min(max(successes / n, 0.0), 1.0), _Z * _Z
    middle, scale = (mean + z2 / (2.0 * n)), 1.0 + z2 / n
    half = _Z * math.sqrt(mean * (1.0 - mean) / n + z2 / (4.0 * n * n))
    return max((middle - half) / scale, 0.0), min((middle + half) / scale, 1.0)
