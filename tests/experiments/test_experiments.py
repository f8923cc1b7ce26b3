import numpy as np
import pytest

from thrifty.experiments import EXPERIMENTS, Claim, Scale, experiment, run_experiments
from thrifty.experiments.experiment import FAILS, HOLDS, IMPRECISE
from thrifty.experiments.measures import fit_slope


def test_every_item_of_the_issue_is_in_the_catalogue() -> None:
    simulated = "fig1 fig2 table1 lambda theorem1 scaling-t scaling-k reduction one-shot rejection theorem4 unknown-costs"
    assert list(EXPERIMENTS) == [*simulated.split(), "scenarios", "regimes"]


def test_an_unknown_item_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"did you mean fig2.*there are fig1, fig2"):
        experiment("figg2")


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_settings_are_listed_without_playing_and_without_doubles(name: str, quick: bool) -> None:
    settings = EXPERIMENTS[name].settings(Scale(quick=quick, runs=2))
    assert len({setting.key for setting in settings}) == len(settings)
    assert all(setting.runs == 2 for setting in settings)


def test_the_full_size_goes_beyond_the_paper() -> None:
    horizons = {setting.rounds_of_a_run for setting in EXPERIMENTS["scaling-t"].settings(Scale(quick=False))}
    arms = {setting.instance.n_arms - 1 for setting in EXPERIMENTS["scaling-k"].settings(Scale(quick=False))}
    assert (min(horizons), max(horizons)) == (10**3, 10**7)
    assert sorted(arms) == [2, 4, 8, 16, 32, 64]


def test_a_slope_and_its_interval_are_those_of_least_squares() -> None:
    rng = np.random.default_rng(1)
    x = np.geomspace(10, 10**5, 9)
    inside = 0
    for _ in range(400):
        slope = fit_slope(x.tolist(), (3.0 * x**0.66 * np.exp(0.1 * rng.standard_normal(9))).tolist())
        inside += slope.low <= 0.66 <= slope.high
    assert 360 <= inside <= 398  # binomial(400, 0.95): outside for about one seed in 10^4


@pytest.fixture(scope="module")
def paper_size(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Claim]]:
    """The claims of three cheap items at the size of the paper."""
    scale = Scale(quick=True)
    simulated = run_experiments(["fig2", "one-shot", "theorem4"], scale, tmp_path_factory.mktemp("results"))
    return {each.name: list(each.conclude(scale, results).claims) for each, results in simulated}


def test_section_6_is_judged_as_the_errata_say(paper_size: dict[str, list[Claim]]) -> None:
    assert [claim.verdict for claim in paper_size["fig2"]] == [FAILS, HOLDS, FAILS, FAILS, IMPRECISE]
    assert "below 0.45 the largest cost regret of any policy is 0;" in paper_size["fig2"][3].measured


def test_committing_once_never_differs_in_the_published_experiments(paper_size: dict[str, list[Claim]]) -> None:
    assert "0 of 1,600 runs differ" in paper_size["one-shot"][0].measured


def test_theorem_4_holds_at_alpha_0_and_fails_above(paper_size: dict[str, list[Claim]]) -> None:
    assert [claim.verdict for claim in paper_size["theorem4"]] == [HOLDS, FAILS, HOLDS]
