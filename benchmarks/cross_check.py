"""obp beside thrifty: the same generated logs, estimator by estimator.

obp is installed from PyPI into an environment of its own, which this module makes when it is first asked for. Its newer releases
need torch, or poetry to be built; 0.4.0 has the same estimators and needs neither.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars

from thrifty.examples import EXAMPLES
from thrifty.examples.generator import generate
from thrifty.logs import Columns, Log, examine
from thrifty.logs.estimators import intervals, strata_of

HERE = Path(__file__).parent
BUILD = HERE / "build" / "obp"
OBP = "obp==0.4.0"
NEEDS = ("numpy<2", "pandas", "scikit-learn<1.6", "scipy", "tqdm", "pyyaml", "matplotlib", "seaborn")
COLUMNS = Columns(
    arm="model", reward="quality", cost="cost", segment="task", time="sent_at", propensity="propensity", outcome_time="received_at"
)


def obp_python() -> Path:
    """The interpreter of obp's environment, installed if need be."""
    python = BUILD / "bin" / "python"
    if not python.exists():
        print(f"installing {OBP}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(BUILD)], check=True)
        install = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*install, *NEEDS], check=True)
        subprocess.run([*install, "--no-deps", OBP], check=True)
    return python


def cross_check(logs: int, rows: int, first_seed: int) -> list[dict[str, Any]]:
    """By estimator: the largest difference over all logs, segments and arms, and the mean ratio of the widths of the intervals."""
    python = obp_python()
    apart: dict[str, list[float]] = {}
    wider: dict[str, list[float]] = {}
    for seed in range(first_seed, first_seed + logs):
        frame = polars.concat(list(generate(EXAMPLES["llm"], rows, seed=seed)))
        evidence = examine(Log(frame, COLUMNS, now=2e9), seed=seed)
        for each in evidence.estimates:
            theirs = _ask(python, *_rows(frame, evidence.aggregates, each))
            for name, values in theirs.items():
                ours, (low, high) = each.reward(name), intervals(each, name)[0]
                apart.setdefault(name, []).extend(abs(ours[arm] - value[0]) for arm, value in enumerate(values))
                wider.setdefault(name, []).extend(
                    (high[arm] - low[arm]) / (value[2] - value[1]) for arm, value in enumerate(values)
                )
    return [
        {
            "estimator": name,
            "arms": len(apart[name]),
            "largest difference to obp": f"{max(apart[name]):.1e}",
            "interval, ours / obp's": f"{np.mean(wider[name]):.2f}",
        }
        for name in apart
    ]


def _rows(frame: polars.DataFrame, aggregates: Any, each: Any) -> tuple[Any, Any, Any, Any]:
    """Actions, rewards, propensities, and (n, K) means of every arm in the stratum of each row: obp's regression model."""
    here = frame.filter(polars.col("task") == each.sums.name)
    at = here["sent_at"].cast(polars.String).str.to_datetime(time_unit="us", time_zone="UTC").dt.timestamp("us").to_numpy() / 1e6
    block = np.searchsorted(aggregates.starts, at, side="right") - 1
    stratum_of = np.zeros(aggregates.starts.size, np.int64)
    means = []
    for number, blocks in enumerate(strata_of(each.sums, aggregates.starts.size)):
        stratum_of[blocks] = number
        cells = each.sums.sums[:, blocks].sum(axis=1)
        totals = each.sums.totals
        usual = totals[:, 1] / totals[:, 0]
        means.append(np.where(cells[:, 0] > 0, cells[:, 1] / np.maximum(cells[:, 0], 1.0), usual))
    action = np.array([each.sums.arms.index(arm) for arm in here["model"]])
    reward = here["quality"].cast(polars.Float64).fill_null(0.0).to_numpy()
    return action, reward, here["propensity"].cast(polars.Float64).to_numpy(), np.array(means)[stratum_of[block]]


def _ask(python: Path, action: Any, reward: Any, pscore: Any, means: Any) -> dict[str, list[list[float]]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.npz"
        np.savez(path, action=action, reward=reward, pscore=pscore, means=means)
        command = [str(python), "-W", "ignore", str(HERE / "peers" / "obp_estimates.py"), str(path)]
        shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    estimates: dict[str, list[list[float]]] = json.loads(shown.splitlines()[-1])["estimates"]
    return estimates
