"""Costs as they are: fees by outcome, and retries that count as one request."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

from thrifty.cli.main import main
from thrifty.logs import Columns, Fees, Log, aggregate, context_sums, examine, frontier, replay
from thrifty.logs.aggregates import C, N, R
from thrifty.logs.rows import BATCH

START = 1_700_000_000.0


def costs(log: Log) -> dict[str, float]:
    (segment,) = aggregate(log).segments
    return dict(zip(segment.arms, segment.totals[:, C].round(6).tolist(), strict=True))


def statuses(**settings: Any) -> Log:
    rows = {"arm": ["a"] * 4 + ["b"] * 4, "status": ["ok", "ok", "declined", "error"] * 2, "cost": [1.0] * 8}
    return Log(polars.DataFrame(rows), Columns(reward="status", success=("ok",), **settings))


def test_fees_are_added_by_outcome_arm_and_status(tmp_path: Path) -> None:
    assert costs(statuses(fees=Fees.load("success=0.3,failure=0.1"))) == {"a": 4.8, "b": 4.8}
    assert costs(statuses(fees=Fees.load("success=0.3,failure=0.1,a:failure=0,error=0.5"))) == {"a": 4.6, "b": 5.2}
    (tmp_path / "fees.csv").write_text("arm,outcome,fee\n,success,0.3\nb,declined,0.2\n,failure,0\n")
    assert costs(statuses(fees=Fees.load("fees.csv", beside=tmp_path))) == {"a": 4.6, "b": 4.8}


def test_with_fees_no_cost_column_is_needed() -> None:
    rows = {"arm": ["a", "b"] * 50, "reward": [1, 0] * 50}
    assert costs(Log(polars.DataFrame(rows), Columns(fees=Fees.load({"success": 2, "failure": 1})))) == {"a": 100.0, "b": 50.0}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("success=0.3", "--fees has no fee for outcome 'declined' of arm 'a': add one, 0 if it costs nothing"),
        ("success=x", "a fee must be finite and not negative, got 'x' for 'success'"),
        ("success=-1", "a fee must be finite and not negative, got '-1' for 'success'"),
        ("success=1,success=2", "two fees for outcome 'success'"),
        ("", "--fees has no fee: write success=0.30,failure=0.05"),
        ("nowhere.csv", "cannot read the fees in nowhere.csv"),
    ],
)
def test_wrong_fees_are_refused_with_the_value(given: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        costs(statuses(fees=Fees.load(given)))


def chained(n: int, *, seed: int = 1) -> tuple[polars.DataFrame, dict[str, np.ndarray]]:
    """A log in which every request is tried up to three times, by slow and obvious code beside it: sums per first arm."""
    rng = np.random.default_rng(seed)
    rows, sums, clock = [], {arm: np.zeros(3) for arm in "ab"}, START
    for request in range(n):
        clock += 40.0
        first, cost = "ab"[rng.integers(2)], 0.0
        for attempt in range(3):
            reward = int(rng.random() < (0.7, 0.3, 0.3)[attempt])
            arm, price = (first, "ab"[rng.integers(2)])[attempt > 0], float(rng.integers(1, 4))
            rows.append((arm, reward, price, clock + 25.0 * attempt, f"c{request % 7}", request % 3))
            cost += price
            if reward:
                break
        sums[first] += (1, reward, cost)
    frame = polars.DataFrame(rows, schema=["arm", "reward", "cost", "at", "customer", "amount"], orient="row")
    return frame.sort("at", maintain_order=True), sums


def test_retries_count_as_one_request_of_the_first_arm() -> None:
    frame, expected = chained(2000)
    log = Log(frame, Columns(time="at", chain="customer,amount", within="30s"))
    (segment,) = aggregate(log).segments
    for place, arm in enumerate(segment.arms):
        np.testing.assert_allclose(segment.totals[place, [N, R, C]], expected[arm])
    lines = log.tally.lines()
    assert any(f"{frame.height:,} attempts are 2,000 requests" in line and "the longest chain has 3" in line for line in lines)
    assert any(line.startswith("attempts affect each other: by the same arm a first attempt succeeds in") for line in lines)


def test_retries_that_go_to_a_better_arm_are_no_sign_that_attempts_affect_each_other() -> None:
    """Each attempt succeeds with the rate of its arm alone; retries go to the other arm, so more often to the better one."""
    rng = np.random.default_rng(6)
    rows, clock = [], START
    for request in range(3000):
        clock += 100.0
        arm = int(rng.random() < 0.8)
        for attempt in range(2):
            reward = int(rng.random() < (0.9, 0.5)[arm])
            rows.append(("ab"[arm], reward, 1.0, clock + 10.0 * attempt, f"c{request}"))
            if reward:
                break
            arm = 1 - arm
    frame = polars.DataFrame(rows, schema=["arm", "reward", "cost", "at", "customer"], orient="row")
    log = Log(frame, Columns(time="at", chain="customer", within="30s"))
    aggregate(log)
    assert any(line.startswith("no sign that attempts affect each other: by the same arm") for line in log.tally.lines())


def test_chains_go_on_from_batch_to_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    frame, expected = chained(300)
    monkeypatch.setattr("thrifty.logs.rows.BATCH", 17)
    (segment,) = aggregate(Log(frame, Columns(time="at", chain=("customer", "amount"), within=30))).segments
    for place, arm in enumerate(segment.arms):
        np.testing.assert_allclose(segment.totals[place, [N, R, C]], expected[arm])
    (found,) = context_sums(Log(frame, Columns(time="at", chain="customer", within="1s")), [["amount"]])
    assert found.segments["all"].sums[:, :, 0].sum() == frame.height
    assert BATCH > 17


def test_rows_without_a_key_are_requests_of_their_own() -> None:
    rows = {"arm": ["a", "b"] * 50, "reward": [1] * 100, "cost": [1] * 100, "at": [START] * 100, "who": [None, ""] * 50}
    log = Log(polars.DataFrame(rows), Columns(time="at", chain="who"))
    assert aggregate(log).rows == 100
    assert "100 rows have an empty column of --chain: each is a request of its own" in log.tally.lines()


def test_chains_and_fees_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chained(200)[0].write_csv(tmp_path / "a.csv")
    flags = ["replay", str(tmp_path / "a.csv"), "--policies", "none", "--time", "at", "--json"]
    assert main([*flags, "--chain", "customer,amount", "--within", "0.5m", "--fees", "success=1,failure=0"]) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert any("attempts are 200 requests" in note for note in notes)
    for wrong, words in (
        (["--chain", "custmer"], "no column 'custmer' for --chain: did you mean 'customer'?"),
        (["--chain", ","], "--chain must name the columns that attempts of one request share"),
        (["--within", "a while", "--chain", "customer"], "--within must be a time such as 60s, 5m or 1h, got 'a while'"),
        (["--fees", "success=1"], "--fees has no fee for outcome"),
    ):
        assert main([*flags, *wrong]) == 2
        assert words in capsys.readouterr().err


def test_cost_per_success_stands_beside_cost_per_request() -> None:
    rng = np.random.default_rng(2)
    arms = rng.integers(0, 2, 4000)
    reward = (rng.random(4000) < np.array([0.9, 0.5])[arms]).astype(float)
    log = Log(polars.DataFrame({"arm": np.array(["a", "b"])[arms], "reward": reward, "cost": np.array([0.2, 0.12])[arms]}))
    evidence = examine(log)
    by_arm = dict(evidence.profile.arms.select("arm", "cost_per_success").iter_rows())
    assert by_arm["a"] == pytest.approx(0.2 / reward[arms == 0].mean())
    points = frontier(evidence, [0.0, 1.0]).points.filter(segment="all").to_dicts()
    for point, truth in zip(points, (0.2 / 0.9, 0.12 / 0.5), strict=True):  # 95% intervals with a fixed seed
        assert point["cost_per_success_low"] < truth < point["cost_per_success_high"]
        assert point["cost_per_success"] == pytest.approx(point["cost"] / point["quality"])
    today = replay(log, [0.1], policies=[]).policies.to_dicts()[0]
    assert today["cost_per_success"] == pytest.approx(today["cost"] / today["reward"])


def test_an_arm_that_never_succeeds_has_no_cost_per_success() -> None:
    rows = {"arm": ["never", "often"] * 200, "reward": [0, 1] * 200, "cost": [1.0] * 400}
    evidence = examine(Log(polars.DataFrame(rows)))
    assert dict(evidence.profile.arms.select("arm", "cost_per_success").iter_rows()) == {"never": None, "often": 1.0}
    free = examine(Log(polars.DataFrame({**rows, "cost": [0.0] * 400})))
    (point,) = frontier(free, [0.0]).points.filter(segment="all").to_dicts()
    assert (point["cost_per_success_low"], point["cost_per_success_high"]) == (0.0, 0.0)
