"""Example logs look like their specification, and the truth beside them is what they converge to."""

import json
from pathlib import Path

import numpy as np
import polars
import pytest

from thrifty.examples import EXAMPLES, LLM, PAYMENTS, SMS, checked_example
from thrifty.examples.generator import CHUNK, generate, truth, write_example


def test_the_sms_world_has_the_promised_size() -> None:
    assert len(SMS.segments) == 12
    assert {len(segment.routes) for segment in SMS.segments} <= set(range(3, 9))
    assert SMS.rows == 1_000_000
    assert SMS.outages
    assert any(route.drift for segment in SMS.segments for route in segment.routes)


def test_the_language_model_world_has_six_models_with_random_costs() -> None:
    models = {"giant", "large", "large-mini", "medium", "small", "tiny"}
    assert {route.arm for segment in LLM.segments for route in segment.routes} == models
    assert all(route.cost_cv > 0 for segment in LLM.segments for route in segment.routes)
    assert LLM.rows == 200_000


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_same_seed_writes_the_same_bytes(name: str, tmp_path: Path) -> None:
    first, _ = write_example(EXAMPLES[name], tmp_path / "a", rows=2000, seed=3)
    second, _ = write_example(EXAMPLES[name], tmp_path / "b", rows=2000, seed=3)
    other, _ = write_example(EXAMPLES[name], tmp_path / "c", rows=2000, seed=4)
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes() != other.read_bytes()


def test_weighted_rewards_converge_to_the_truth() -> None:
    """Inverse propensity weighting with the logged propensities; 250,000 rows, 55 arms: fails by chance once in 10,000 seeds."""
    frame = next(generate(SMS, CHUNK, seed=1)).with_columns((polars.col("status") == "delivered").cast(polars.Float64).alias("won"))
    facts = truth(SMS)["segments"]
    for (country,), rows in frame.group_by("country"):
        for (arm,), mine in rows.drop_nulls("status").group_by("aggregator"):
            weights = 1.0 / mine["propensity"].to_numpy()
            won = mine["won"].to_numpy()
            rate = float((weights * won).sum() / weights.sum())
            error = float(np.sqrt((weights**2 * (won - rate) ** 2).sum()) / weights.sum())
            expected = facts[country]["arms"][arm]["rate"]
            assert abs(rate - expected) < 5.0 * error + 1e-3


def test_costs_average_to_the_price() -> None:
    """Gamma costs of 20,000 calls and more: within five standard errors, fails by chance once in 100,000 seeds."""
    frame = next(generate(LLM, CHUNK, seed=1))
    for (task, model), rows in frame.group_by("task", "model"):
        price = truth(LLM)["segments"][task]["arms"][model]["price"]
        costs = rows["cost"].to_numpy()
        assert abs(costs.mean() - price) < 5.0 * costs.std() / np.sqrt(costs.size)


def test_a_long_log_is_written_in_chunks_and_in_order(tmp_path: Path) -> None:
    path, beside = write_example(SMS, tmp_path, rows=CHUNK + 10, kind="parquet")
    frame = polars.read_parquet(path)
    assert frame.height == CHUNK + 10
    assert frame["sent_at"].is_sorted()
    assert frame["id"].n_unique() == frame.height
    assert json.loads(beside.read_text())["rows"] == frame.height


def test_rates_change_during_an_outage_only_for_the_arm_and_segment_it_names() -> None:
    during, before = np.array([0.78]), np.array([0.74])
    germany, france = SMS.segment("DE"), SMS.segment("FR")
    place = [route.arm for route in germany.routes].index("Birch")
    assert SMS.rates(germany, during)[0, place] < 0.85 * SMS.rates(germany, before)[0, place]
    place = [route.arm for route in france.routes].index("Birch")
    assert SMS.rates(france, during)[0, place] > 0.95


def test_the_payments_log_has_its_own_words() -> None:
    frame = next(generate(PAYMENTS, 1000, seed=1))
    assert {"region", "processor", "fee", "status"} <= set(frame.columns)
    assert set(frame["status"].drop_nulls()) == {"paid", "failed"}


def test_an_unknown_example_is_named() -> None:
    with pytest.raises(ValueError, match="unknown example 'smss': there are sms, llm, payments"):
        checked_example("smss")


def test_an_unknown_segment_is_named() -> None:
    with pytest.raises(ValueError, match="no segment 'XX' in sms: there are BR, DE"):
        SMS.segment("XX")
