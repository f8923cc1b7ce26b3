import csv
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from thrifty import Beta, ClippedGaussian, Deterministic, Instance, Resampled, Runs, World, simulate

FIGURE_1 = Instance([0.5, 0.46], [1.0, 0.0], 0.1)
POLICIES = ["cs-ucb", "cs-ts", "cs-etc"]
MIXED = World(
    [Beta(2, 3), 0.5, Resampled((0.1, 0.9)), ClippedGaussian(0.5, 0.2), Deterministic(0.4)], [1.0, 0.5, 0.2, 0.2, 0.0], 0.1
)


def sweep(cheap_mean: float) -> Instance:
    """Table 1 of the paper: mu_1 = .5 at cost 1, mu_2 in .3...6 at cost 0, alpha = .1."""
    return Instance([0.5, cheap_mean], [1.0, 0.0], 0.1)


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_the_number_of_threads_does_not_matter(threads: int) -> None:
    alone = simulate(FIGURE_1, POLICIES, horizon=2000, runs=9, seed=5, threads=1)
    together = simulate(FIGURE_1, POLICIES, horizon=2000, runs=9, seed=5, threads=threads)
    for one, other in zip(alone, together, strict=True):
        assert (one.pulls == other.pulls).all()


def test_the_company_of_other_policies_does_not_matter() -> None:
    alone = simulate(FIGURE_1, "cs-ts", horizon=500, runs=3, seed=5)
    together = simulate(FIGURE_1, POLICIES, horizon=500, runs=3, seed=5)
    assert (alone["cs-ts"].pulls == together["cs-ts"].pulls).all()


def test_more_runs_begin_with_the_same_runs() -> None:
    few, many = (simulate(FIGURE_1, "cs-ts", horizon=500, runs=runs, seed=5)["cs-ts"].pulls for runs in (2, 6))
    assert (many[:2] == few).all()


def test_another_seed_gives_other_runs() -> None:
    pulls = [simulate(FIGURE_1, "cs-ts", horizon=500, runs=3, seed=seed)["cs-ts"].pulls for seed in (1, 2)]
    assert (pulls[0] != pulls[1]).any()


def test_checkpoints_are_moments_of_the_trace() -> None:
    runs = simulate(MIXED, "cs-ts", horizon=400, runs=2, seed=1, checkpoints=[1, 7, 200], trace=True)
    assert runs.checkpoints.tolist() == [1, 7, 200, 400]
    result = runs["cs-ts"]
    assert result.trace is not None
    for run in range(2):
        for number, checkpoint in enumerate(runs.checkpoints):
            assert np.bincount(result.trace[run, :checkpoint], minlength=5).tolist() == result.pulls[run, number].tolist()


def test_a_slice_boundary_changes_nothing() -> None:
    # 250,000 rounds cross the loop's slices of 100,000; the counts at the horizon do not depend on checkpoints.
    fine = simulate(FIGURE_1, "cs-ucb", horizon=250_000, runs=1, seed=3, checkpoints=1000)["cs-ucb"].pulls[0, -1]
    coarse = simulate(FIGURE_1, "cs-ucb", horizon=250_000, runs=1, seed=3, checkpoints=1)["cs-ucb"].pulls[0, -1]
    assert (fine == coarse).all()


def test_plain_python_chooses_the_same_arms() -> None:
    script = (
        "import thrifty\n"
        "from tests.simulation.test_simulate import MIXED\n"
        "labels = [*thrifty.list_policies(), 'cs-ts:prior=gaussian', 'cs-ts:prior=shrunk', 'cs-ts:a=0.5,b=0.5']\n"
        "print([run.trace.tolist() for run in thrifty.simulate(MIXED, labels, horizon=250, runs=2, seed=3, trace=True)])\n"
        "costs = [thrifty.Beta(1, 2), thrifty.scaled(thrifty.Bernoulli(0.3), 2.0)] * 2 + [thrifty.Beta(2, 2)]\n"
        "hidden = thrifty.World(MIXED.rewards, costs, 0.1)\n"
        "learners = ['cs-ids', 'cs-etc', 'cs-ts', 'cheapest']\n"
        "print([run.trace.tolist() for run in thrifty.simulate(hidden, learners, horizon=250, runs=2, seed=3, trace=True)])\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-W", "error", "-c", script],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "NUMBA_DISABLE_JIT": off, "PYTHONPATH": os.getcwd()},
        ).stdout
        for off in ("0", "1")
    }
    assert len(outputs) == 1


def test_progress_ends_with_every_round_played() -> None:
    seen: list[tuple[int, int]] = []
    simulate(FIGURE_1, POLICIES, horizon=1000, runs=4, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (12_000, 12_000)
    assert all(done <= total for done, total in seen)


class TestCrossCheck:
    """Regrets against values measured independently of this package (200 to 600 runs): agreement within 5 standard errors of both.

    With 11 comparisons, a correct simulator with another seed would fail one time in 150,000.
    """

    @pytest.mark.parametrize(
        ("instance", "horizon", "policy", "metric", "expected", "error"),
        [
            (FIGURE_1, 10_000, "cs-etc", "cost", 293, 0.0),
            (FIGURE_1, 10_000, "cs-ucb", "cost", 3662, 730 / 600**0.5),
            (FIGURE_1, 10_000, "cs-ts", "cost", 3259, 2541 / 600**0.5),
            (sweep(0.30), 5000, "cs-etc", "quality", 722.25, 0.1),
            (sweep(0.30), 5000, "cs-ucb", "quality", 61, 0.5),
            (sweep(0.30), 5000, "cs-ts", "quality", 12.5, 0.5),
            (sweep(0.40), 5000, "cs-etc", "quality", 241, 0.2),
            (sweep(0.40), 5000, "cs-ts", "quality", 23.5, 1.0),
            (sweep(0.46), 5000, "cs-ucb", "cost", 1964, 30),
            (sweep(0.50), 5000, "cs-ts", "cost", 480, 40),
            (sweep(0.60), 5000, "cs-ucb", "cost", 311, 3),
        ],
    )
    def test_regret(self, instance: Instance, horizon: int, policy: str, metric: str, expected: float, error: float) -> None:
        found = simulate(instance, policy, horizon=horizon, runs=400, seed=20, checkpoints=1).final()[policy][metric]
        assert abs(found["mean"] - expected) < 5 * (found["se"] ** 2 + error**2) ** 0.5 + 1e-9


class TestWhatThePaperSays:
    def test_cs_etc_plays_each_arm_tau_times_first(self) -> None:
        runs = simulate(FIGURE_1, "cs-etc", horizon=5000, runs=1, trace=True)
        trace = runs["cs-etc"].trace
        assert trace is not None
        assert runs["cs-etc"].parameters["tau"] == 185  # ceil((5000 / 2)^(2/3))
        assert trace[0, :370].tolist() == [0, 1] * 185

    def test_one_shot_commit_never_moves_again(self) -> None:
        trace = simulate(MIXED, "one-shot-etc", horizon=5000, runs=3, trace=True)["one-shot-etc"].trace
        assert trace is not None
        tau = 100  # (5000 / 5)^(2/3)
        assert all(len(set(row[5 * tau :].tolist())) == 1 for row in trace)

    def test_gaussian_cs_ts_pays_linear_cost_on_the_deterministic_instance(self) -> None:
        # Theorem 1: the cheap arm sits exactly on the floor, so half the draws reject it for ever.
        world = World([Deterministic(0.5), Deterministic(0.45)], [1.0, 0.0], 0.1)
        label = "cs-ts:prior=gaussian"
        shares = [
            simulate(world, label, horizon=horizon, runs=20, seed=1, checkpoints=1).final()[label]["cost"]["mean"] / horizon
            for horizon in (2000, 20_000)
        ]
        assert min(shares) > 0.25

    def test_ucb_and_ts_without_subsidy_go_to_the_best_arm(self) -> None:
        runs = simulate(Instance([0.8, 0.4], [1.0, 0.0], 0.1), ["ucb1", "ts"], horizon=3000, runs=5)
        assert all((result.pulls[:, -1, 0] > 2500).all() for result in runs)

    def test_the_scalarised_optimum_moves_with_lambda(self) -> None:
        instance = Instance([0.9, 0.5], [1.0, 0.0], 0.1)
        light, heavy = "scalarised:weight=0.1", "scalarised:weight=2"
        runs = simulate(instance, [light, heavy], horizon=3000, runs=3)
        assert (runs[light].pulls[:, -1, 0] > 2000).all()
        assert (runs[heavy].pulls[:, -1, 1] > 2000).all()


class TestResults:
    runs = simulate(FIGURE_1, ["cs-ts", "oracle"], horizon=300, runs=5, seed=2, trace=True)

    def test_saved_runs_come_back_whole(self, tmp_path: Path) -> None:
        self.runs.save(tmp_path / "runs.npz")
        again = Runs.load(tmp_path / "runs.npz")
        assert again.instance == self.runs.instance
        assert again.regret().rows() == self.runs.regret().rows()
        for one, other in zip(self.runs, again, strict=True):
            assert one.provenance == other.provenance
            assert one.trace is not None
            assert other.trace is not None
            assert (one.trace == other.trace).all()

    def test_half_a_file_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "runs.npz"
        self.runs.save(path)
        path.write_bytes(path.read_bytes()[:-200])
        with pytest.raises(ValueError, match="not a whole file of runs"):
            Runs.load(path)
        with pytest.raises(ValueError, match="not a whole file of runs"):
            Runs.load(tmp_path / "nowhere.npz")

    def test_an_unwritable_place_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="cannot write"):
            self.runs.save(tmp_path / "no" / "runs.npz")

    def test_provenance_says_where_numbers_come_from(self) -> None:
        provenance = self.runs["cs-ts"].provenance
        assert provenance["seed"] == 2
        assert provenance["parameters"]["a"] == 1.0
        assert len(provenance["digest"]) == 16

    def test_regret_has_mean_deviation_and_error(self) -> None:
        table = self.runs.regret()
        cost = self.runs.samples("cs-ts")["cost"][:, -1]
        row = dict(zip(table.columns, table.rows()[self.runs.checkpoints.size - 1], strict=True))
        assert row["policy"] == "cs-ts"
        assert row["t"] == 300
        assert row["cost_mean"] == pytest.approx(cost.mean())
        assert row["cost_sd"] == pytest.approx(cost.std(ddof=1))
        assert row["cost_se"] == pytest.approx(cost.std(ddof=1) / 5**0.5)

    def test_one_run_has_no_deviation(self) -> None:
        final = simulate(FIGURE_1, "cs-ts", horizon=50, runs=1).final()["cs-ts"]["cost"]
        assert (final["sd"], final["se"]) == (0.0, 0.0)

    def test_frames_hold_the_same_numbers(self) -> None:
        rows = self.runs.regret().rows()
        assert self.runs.to_pandas().values.tolist() == [list(row) for row in rows]
        assert self.runs.to_polars().rows() == rows

    def test_a_policy_that_did_not_run_is_named(self) -> None:
        with pytest.raises(KeyError, match="there are cs-ts, oracle"):
            self.runs["cs-etc"]

    def test_the_summary_has_a_line_per_policy(self) -> None:
        final = self.runs.final()["cs-ts"]["total"]
        lines = str(self.runs).splitlines()
        assert len(lines) == 2 + len(self.runs.results)
        assert repr(self.runs) == str(self.runs)
        assert "300 rounds, 5 runs" in lines[0]
        assert lines[2].split("  ")[0] == "cs-ts"
        assert f"{final['mean']:,.1f} [{final['low']:,.1f}, {final['high']:,.1f}]" in lines[2]
        assert lines[2].endswith(f"{final['q05']:,.1f} to {final['q95']:,.1f}")

    def test_a_notebook_shows_the_summary_with_names_escaped(self) -> None:
        strange = replace(self.runs, results=tuple(replace(each, policy="<script>&amp;") for each in self.runs.results[:1]))
        shown = strange._repr_html_()
        assert shown.count("<tr>") == 2
        assert "<script>" not in shown
        assert "&lt;script&gt;&amp;amp;" in shown

    def test_a_table_comes_in_five_forms(self) -> None:
        summary = self.runs.summary()
        assert self.runs.table() == str(summary)
        assert self.runs.table("markdown") == summary.to_markdown()
        assert self.runs.table("latex").splitlines()[2].startswith("policy & quality regret & cost regret & total regret & median")
        assert self.runs.table("html") == self.runs._repr_html_()
        rows = list(csv.DictReader(io.StringIO(self.runs.table("csv"))))
        final = self.runs.final()["cs-ts"]["total"]
        assert [row["policy"] for row in rows] == ["cs-ts", "oracle"]
        assert {name: float(rows[0][f"total_{name}"]) for name in final} == final
        assert json.loads(rows[0]["world"]) == self.runs.world

    def test_quantiles_are_those_of_the_runs(self) -> None:
        total = self.runs.samples("cs-ts")["total"][:, -1]
        final = self.runs.final()["cs-ts"]["total"]
        assert final["median"] == np.median(total)
        assert (final["q05"], final["q95"]) == tuple(np.quantile(total, [0.05, 0.95]))
        assert final["low"] <= final["mean"] <= final["high"]

    def test_the_largest_regret_is_that_of_the_worst_arm(self) -> None:
        always = simulate(Instance([0.1, 0.5, 0.48], [0.0, 0.9, 0.2], 0.1), ["cheapest"], horizon=100, runs=1)
        assert always.samples("cheapest")["quality"][0] == pytest.approx(always.largest()["quality"])
        assert always.largest()["cost"][-1] == pytest.approx(70.0)
        assert always.largest()["total"][-1] == pytest.approx(100 * max(0.35, 0.7))

    def test_two_results_with_one_label_are_refused(self) -> None:
        with pytest.raises(ValueError, match="two policies are called cs-ts"):
            replace(self.runs, results=(self.runs["cs-ts"], self.runs["cs-ts"]))
        with pytest.raises(ValueError, match="two policies are called cs-ts"):
            simulate(FIGURE_1, ["cs-ts", "cs-ucb", "cs-ts"], horizon=50)

    def test_axes_of_your_own_are_drawn_into(self) -> None:
        from matplotlib.figure import Figure

        axes = Figure().subplots(1, 2)
        assert self.runs.plot(ax=axes[0]) is axes[0]
        self.runs.plot(ax=axes[1], metric="cost", band="quantiles", title="mine")
        assert [axis.get_title() for axis in axes] == ["Total regret", "mine"]
        assert [text.get_text() for text in axes[0].get_legend().get_texts()] == ["cs-ts", "oracle"]
        middles = [axis.get_lines()[0].get_ydata()[-1] for axis in axes]
        final = self.runs.final()["cs-ts"]
        assert middles == [final["total"]["mean"], final["cost"]["median"]]

    def test_rounds_are_what_was_played_and_the_horizon_is_what_policies_know(self) -> None:
        assert (self.runs.rounds, self.runs.horizon) == (300, 300)
        unknown = simulate(FIGURE_1, "cs-ts", rounds=50, runs=1)
        assert (unknown.rounds, unknown.horizon) == (50, None)
        assert "50 rounds, horizon unknown" in str(unknown)
        longer = simulate(FIGURE_1, "cs-ts", horizon=200, rounds=50, runs=1)
        assert (longer.rounds, longer.horizon) == (50, 200)

    def test_a_file_of_format_2_is_still_read(self, tmp_path: Path) -> None:
        runs = simulate(FIGURE_1, "cs-ts", rounds=50, runs=2)
        runs.save(tmp_path / "new.npz")
        with np.load(tmp_path / "new.npz") as archive:
            arrays = dict(archive)
        header = json.loads(str(arrays["header"]))
        old = {"format": 2, "horizon": header.pop("rounds"), "told_horizon": header.pop("horizon")}
        np.savez(tmp_path / "old.npz", **{**arrays, "header": np.array(json.dumps({**header, **old}))})
        read = Runs.load(tmp_path / "old.npz")
        assert (read.rounds, read.horizon) == (50, None)
        assert (read["cs-ts"].pulls == runs["cs-ts"].pulls).all()

    @pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
    def test_the_same_runs_give_the_same_picture(self, tmp_path: Path, ending: str) -> None:
        first, second = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
        self.runs.plot(first)
        self.runs.plot(second)
        assert first.read_bytes() == second.read_bytes()
        assert first.stat().st_size > 5000

    def test_a_picture_of_an_unknown_kind_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match=r"must end in \.png, \.svg, \.pdf"):
            self.runs.plot(tmp_path / "fig.bmp")
        with pytest.raises(ValueError, match="cannot write"):
            self.runs.plot(tmp_path / "no" / "fig.png")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"horizon": 1}, "horizon must be at least the number of arms"),
        ({"runs": 0}, "runs must be a whole number of at least 1, got 0"),
        ({"runs": 2.5}, "runs must be a whole number"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"threads": 0}, "threads must be a whole number of at least 1"),
        ({"checkpoints": "dense"}, "checkpoints must be linear, log"),
        ({"checkpoints": []}, "checkpoints must be rounds from 1"),
        ({"checkpoints": [2000]}, "from 1 to the horizon 100, got 2000"),
        ({"policies": []}, "at least one policy"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    good: dict[str, object] = {"policies": ["cs-etc"], "horizon": 100, "runs": 2}
    with pytest.raises(ValueError, match=message):
        simulate(FIGURE_1, **{**good, **arguments})  # type: ignore[arg-type]
