"""Section 1.1: a linear objective mu - lambda c needs another lambda in every region, the subsidy alpha does not [Sinha2021]."""

import numpy as np

from thrifty.environments.families import sms_regions
from thrifty.experiments.experiment import Experiment, Finding, Scale
from thrifty.experiments.measures import Row, columns_of
from thrifty.experiments.verdict import Claim, Judge, Means, exact
from thrifty.figures import RangeFigure
from thrifty.simulation import Runs
from thrifty.sweep import Setting
from thrifty.theory import weight_range

_ALPHA = 0.05
_OBJECTIVES = ("alpha", "lambda")


def _tuned() -> float:
    """The lambda in the middle of what the first region needs."""
    low, high = weight_range(next(iter(sms_regions(_ALPHA).values())))
    return round((low + high) / 2, 3)


def _policies() -> tuple[str, str]:
    return "cs-ts", f"scalarised:weight={_tuned():g}"


def settings(scale: Scale) -> list[Setting]:
    """One alpha and one lambda, tuned for the first region, in all regions."""
    horizon, runs = scale.pick(100_000, 1_000_000), scale.number_of_runs(20)
    return [Setting(region, policy, horizon, runs, scale.seed) for region in sms_regions(_ALPHA).values() for policy in _policies()]


def conclude(_scale: Scale, results: list[Runs]) -> Finding:
    """The range of lambda that each region needs, and how often each objective plays the optimal arm."""
    regions = sms_regions(_ALPHA)
    ranges = {name: weight_range(region) for name, region in regions.items()}
    shares = [runs.results[0].pulls[:, -1, runs.instance.optimal_arm] / runs.rounds for runs in results]
    rows: list[Row] = [
        {
            "region": name,
            "optimal_arm": region.optimal_arm,
            "lambda_low": ranges[name][0],
            "lambda_high": ranges[name][1],
            "share_of_optimal_arm_alpha": float(shares[2 * number].mean()),
            "share_of_optimal_arm_lambda": float(shares[2 * number + 1].mean()),
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
    judge = Judge({(name, by): shares[2 * number + at] for number, name in enumerate(regions) for at, by in enumerate(_OBJECTIVES)})
    return Finding(
        columns_of(rows), figure, (_no_common_lambda(ranges), _one_lambda_fails(judge, list(regions), results[0].rounds))
    )


def _no_common_lambda(ranges: dict[str, tuple[float, float]]) -> Claim:
    possible = [(low, high) for low, high in ranges.values() if low <= high]
    is_common = max(low for low, _ in possible) <= min(high for _, high in possible)
    impossible = [name for name, (low, high) in ranges.items() if low > high]
    return exact(
        "section 1.1",
        "the lambda for which the optimal arm maximises mu - lambda c depends on the instance: "
        "one lambda does not serve all regions",
        not is_common,
        "; ".join(f"{name}: {_shown(each)}" for name, each in ranges.items())
        + (f". In {', '.join(impossible)} no lambda at all does it" if impossible else ""),
    )


def _one_lambda_fails(judge: Judge, regions: list[str], horizon: int) -> Claim:
    def condition(means: Means) -> bool:
        by_alpha, by_lambda = ([means[region, by] for region in regions] for by in _OBJECTIVES)
        return min(by_lambda) < 0.1 and float(np.mean(by_alpha)) > float(np.mean(by_lambda))

    return judge.claim(
        "section 1.1",
        "using a single lambda and relying on standard bandit algorithms would not lead to the desired outcome",
        condition,
        f"share of rounds on the optimal arm at T = {horizon:,}, CS-TS with alpha = {_ALPHA} "
        f"and UCB on mu - {_tuned():g} c: "
        + "; ".join(f"{region} {judge.shown((region, 'alpha'))} and {judge.shown((region, 'lambda'))}" for region in regions)
        + ". Not the desired outcome means below a tenth in some region, and less than with one alpha on average",
    )


def _shown(ends: tuple[float, float]) -> str:
    low, high = ends
    if low > high:
        return "none"
    return f"{low:.3g} and more" if np.isinf(high) else f"{low:.3g} to {high:.3g}"


EXPERIMENT = Experiment("lambda", "Section 1.1: lambda must move, alpha need not", "Four SMS regions.", settings, conclude)
