"""Propensities that cannot be are refused; those that are right are left alone."""

import random
from pathlib import Path

import numpy as np
import polars
import pytest

from tests.logs.logs import frame
from thrifty.logs import Columns, Log, aggregate
from thrifty.logs.evidence import examine
from thrifty.router import Router
from thrifty.router.export import decisions, line_schema
from thrifty.store import open_store

COLUMNS = Columns(segment="segment", time="at", propensity="p")


def test_true_propensities_are_left_alone() -> None:
    for seed in range(20):
        log = Log(frame(n=2000, seed=seed), COLUMNS)
        aggregate(log)
        assert log.tally.lines() == []  # six sigma: the chance of a false note is below 1e-7


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (
            0.3,
            "the propensities in 'p' cannot be right: over .* the sum of 1/p is .*, and there are 3,000 requests",
        ),
        (
            1.5,
            "the propensities in 'p' are too high for every arm: .* name the column that decides this with --segment",
        ),
    ],
)
def test_propensities_that_are_off_are_refused(factor: float, words: str) -> None:
    rows = frame(n=3000).with_columns(p=polars.col("p") * factor)
    with pytest.raises(ValueError, match=words):
        aggregate(Log(rows, COLUMNS))


def test_propensities_of_one_are_refused() -> None:
    with pytest.raises(ValueError, match="are too high for every arm"):
        aggregate(Log(frame(n=3000).with_columns(p=1.0), COLUMNS))


def test_an_arm_that_was_not_always_available_gets_a_note() -> None:
    rng = np.random.default_rng(1)
    available = rng.random(4000) < 0.5
    used = available & (rng.random(4000) < 0.5)
    rows = {"arm": np.where(used, "rare", "usual"), "reward": [1] * 4000, "cost": [1] * 4000, "p": np.where(available, 0.5, 1.0)}
    log = Log(polars.DataFrame(rows), Columns(propensity="p"))
    aggregate(log)
    (note,) = log.tally.lines()
    assert note.startswith("the sum of 1/p of arm 'rare' is ")
    assert note.endswith(
        "and there are 4,000 requests: it was not available to all of them, its propensities became tiny, or those in 'p' are wrong"
    )


@pytest.mark.parametrize("policy", ["cs-etc:tau=50", "cs-ts"])
def test_the_log_of_a_router_with_a_holdout_can_be_weighed(policy: str, tmp_path: Path) -> None:
    """3,000 decisions, 600 held out: the sums of weights are within five standard errors of 3,000; the seed is fixed."""
    store, rng, means = open_store(f"sqlite:///{tmp_path}/a.db"), random.Random(2), {"dear": 1.0, "cheap": 0.95}
    router = Router({"dear": 1.0, "cheap": 0.5}, 0.1, store=store, name="r", policy=policy, holdout=0.2)
    for _ in range(3400):  # both arms are known after the first 400
        made = router.decide()
        router.record(made.id, float(rng.random() < means[made.arm]))
    journal = store.journal("r")
    lines = list(decisions(journal, "r"))[400:]
    store.close()
    log = Log(polars.DataFrame(lines, schema=line_schema(polars), orient="row"))
    (estimates,) = examine(log).estimates
    assert log.columns.propensity == "propensity"
    assert log.tally.lines() == []
    assert dict(zip(estimates.sums.arms, estimates.refusals, strict=True)) == {"dear": "", "cheap": ""}
    weights = {arm: sum(1.0 / (line.propensity or 0.0) for line in lines if line.arm == arm) for arm in means}
    assert weights == {"dear": pytest.approx(3000, rel=0.2), "cheap": pytest.approx(3000, rel=0.1)}
