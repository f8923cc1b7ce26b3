"""Section 1.1: a linear objective mu - lambda c needs another lambda in every region, the subsidy alpha does not [Sinha2021]."""

import numpy as np

from thrifty.environments.families import sms_regions
from thrifty.experiments.experiment import Claim, Experiment, Finding, Scale, verdict
from thrifty.experiments.measures import Row, columns_of
from thrifty.figures import RangeFigure
from thrifty.simulation import Runs
from thrifty.sweep import Setting
from thrifty.theory import weight_range

_ALPHA = 0.05


def _tuned() -> float:
    """The lambda in the middle of what the first region needs."""
    low, high = weight_range(next(iter(sms_regions(_ALPHA).values())))
    return round((low + high) / 2, 3)


def _policies() -> tuple[str, str]:
    return "cs-ts", f"scalarised:weight={_tuned():g}"


def settings(scale: Scale) -> list[Setting]:
    """One alpha and one lambda, tuned for the first region, in all regions."""
    horizon, runs = scale.pick(100_000, 1_000_000), scale.number_of_runs(10)
    return [Setting(region, policy, horizon, runs, scale.seed) for region in sms_regions(_ALPHA).values() for policy in _policies()]


def conclude(_scale: Scale, results: list[Runs]) -> Finding:
    """The range of lambda that each region needs, and how often each objective plays the optimal arm."""
    regions = sms_regions(_ALPHA)
    ranges = {name: weight_range(region) for name, region in regions.items()}
    shares = [float(np.mean(runs.results[0].pulls[:, -1, runs.instance.optimal_arm]) / runs.rounds) for runs in results]
    rows: list[Row] = [
        {
            "region": name,
            "optimal_arm": region.optimal_arm,
            "lambda_low": ranges[name][0],
            "lambda_high": ranges[name][1],
            "share_of_optimal_arm_alpha": shares[2 * number],
            "share_of_optimal_arm_lambda": shares[2 * number + 1],
        }
        for number, (name, region) in enumerate(regions.items())
    ]
    figure = RangeFigure(
        ranges,
        x_label="lambda (deliveries per dollar)",
        title="Section 1.1: lambda must move from region to region",
        caption=f"the lambdas for which the optimal arm maximises mu - lambda c; alpha = {_ALPHA} in all "
        "regions; exact, from the made-up delivery rates and prices of the four SMS regions",
    )
    return Finding(columns_of(rows), figure, (_no_common_lambda(ranges), _one_alpha_suffices(rows, results[0].rounds)))


def _no_common_lambda(ranges: dict[str, tuple[float, float]]) -> Claim:
    possible = [(low, high) for low, high in ranges.values() if low <= high]
    is_common = max(low for low, _ in possible) <= min(high for _, high in possible)
    impossible = [name for name, (low, high) in ranges.items() if low > high]
    return Claim(
        "section 1.1",
        "the lambda for which the optimal arm maximises mu - lambda c depends on the instance: "
        "one lambda does not serve all regions",
        verdict(not is_common),
        "; ".join(f"{name}: {_shown(each)}" for name, each in ranges.items())
        + (f". In {', '.join(impossible)} no lambda at all does it" if impossible else ""),
    )


def _one_alpha_suffices(rows: list[Row], horizon: int) -> Claim:
    shares = {row["region"]: (row["share_of_optimal_arm_alpha"], row["share_of_optimal_arm_lambda"]) for row in rows}
    return Claim(
        "section 1.1",
        "relying on a single lambda with a standard bandit algorithm does not lead to the desired outcome, one alpha does",
        verdict(min(share for _, share in shares.values()) < 0.05 and min(share for share, _ in shares.values()) > 0.5),
        f"share of rounds on the optimal arm at T = {horizon:,}, CS-TS with alpha = {_ALPHA} "
        f"and UCB on mu - {_tuned():g} c: "
        + "; ".join(f"{region} {by_alpha:.2f} and {by_lambda:.2f}" for region, (by_alpha, by_lambda) in shares.items()),
    )


def _shown(ends: tuple[float, float]) -> str:
    low, high = ends
    if low > high:
        return "none"
    return f"{low:.3g} and more" if np.isinf(high) else f"{low:.3g} to {high:.3g}"


EXPERIMENT = Experiment("lambda", "Section 1.1: lambda must move, alpha need not", "Four SMS regions.", settings, conclude)
