"""Appendix B: the Bernoulli factory's flips and the derived algorithm pi_0 against the proof's constants [Sinha2021]."""

import numpy as np

from thrifty.environments.families import HardFamily
from thrifty.experiments.experiment import Claim, Experiment, Finding, Scale, columns_of, line, verdict
from thrifty.pictures import Panel, draw_panels
from thrifty.simulation import Runs
from thrifty.sweep import Setting
from thrifty.theory import derive, flip_bound, flip_linear

_ALPHAS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)
_DEAR = 3


def settings(_scale: Scale) -> list[Setting]:
    """None: pi_0 is not a policy of the simulator; `derive` runs it here."""
    return []


def conclude(scale: Scale, _results: list[Runs]) -> Finding:
    """Flips per call and both regrets, for every alpha on Phi^0 and Phi^1."""
    rounds, runs = scale.pick(2_000, 20_000), scale.number_of_runs(10)
    rows, bias = [], 0.0
    for alpha in _ALPHAS:
        p = (1 - alpha) / 3
        family = HardFamily(alpha, p, p / 2 * (_DEAR / rounds) ** (1 / 3), _DEAR)
        heads, flips = flip_linear(p, 1 / (1 - alpha), slack=0.5, count=scale.pick(20_000, 200_000), seed=scale.seed)
        bias = max(bias, abs(float(heads.mean()) - 1 / 3) / float(heads.std() / np.sqrt(heads.size)))
        for member in (0, 1):
            derived = derive("cs-etc", family, member=member, rounds=rounds, runs=runs, seed=scale.seed)
            rows.append(
                {
                    "alpha": alpha, "member": member, "factory_flips": float(flips.mean()), "pulls_per_call":
                    derived.pulls_per_call,
                    "bound_per_call": derived.bound_per_call, "outer_regret": float(derived.outer_regret.mean()),
                    "inner_regret": float(derived.inner_regret.mean()),
                    "outer_over_bound": float(derived.outer_regret.mean() / (derived.bound_per_call * derived.inner_regret.mean())),
                }
            )  # fmt: skip
    flips_of = [max(row["pulls_per_call"] for row in rows if row["alpha"] == alpha) for alpha in _ALPHAS]
    curves = {
        "measured pulls per call of a dear arm, E[S_l]": line(_ALPHAS, flips_of),
        "bound of the proof, 19 / (1 - alpha)": line(_ALPHAS, [flip_bound(1 / (1 - alpha), 0.5) for alpha in _ALPHAS]),
    }
    figure = draw_panels(
        [Panel("", "alpha", "pulls per call", curves, y_scale="log", marked=list(curves)[:1])],
        title="Appendix B: what the reduction costs",
        caption=f"CS-ETC inside pi_0, {runs} runs of L = {rounds:,} calls, K = {_DEAR}, p = (1-alpha)/3",
    )
    claims = (
        Claim(
            "appendix B",
            "the Bernoulli factory is unbiased and takes at most 9.5 C / delta flips on average",
            verdict(bias < 5 and all(row["factory_flips"] <= row["bound_per_call"] for row in rows)),
            f"largest deviation from C p {bias:.1f} standard errors; flips at most "
            f"{max(row['factory_flips'] / row['bound_per_call'] for row in rows):.2f} of the bound",
        ),
        Claim(
            "appendix B",
            "E[S_l] is at most 19 / (1 - alpha)",
            verdict(all(row["pulls_per_call"] <= row["bound_per_call"] for row in rows)),
            "; ".join(
                f"alpha {alpha:g}: {value:.1f} of {flip_bound(1 / (1 - alpha), 0.5):.0f}"
                for alpha, value in zip(_ALPHAS, flips_of, strict=True)
            ),
        ),
        Claim(
            "appendix B",
            "pi_0's modified quality plus cost regret is at most 19 / (1 - alpha) times the inner policy's regret",
            verdict(all(row["outer_over_bound"] <= 1 for row in rows)),
            f"measured over the bound, at most {max(row['outer_over_bound'] for row in rows):.2f}",
        ),
    )
    return Finding(columns_of(rows), figure, claims)


EXPERIMENT = Experiment(
    "reduction", "Appendix B: the factory and pi_0", "Any alpha-policy on alpha = 0 instances.", settings, conclude
)
