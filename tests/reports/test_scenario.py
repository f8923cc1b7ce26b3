"""The pages of the four scenarios, played small and uncompiled, since the numbers do not matter."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.reports.hostile import NAMES, assert_escaped
from thrifty.reports.scenario import scenario_csv, scenario_page, scenario_text, write_scenario
from thrifty.scenarios import SCENARIOS, ScenarioResult, play
from thrifty.scenarios.play import BEST_KNOWN, usual_policies


def strange() -> ScenarioResult:
    """A scenario in which three policies and an assumption have hostile names."""
    names = (*NAMES, BEST_KNOWN)
    values = {name: np.array([0.5 + 0.1 * number, 0.6]) for number, name in enumerate(names)}
    scenario = replace(SCENARIOS["payments"], assumptions=(NAMES[0],), title=NAMES[1])
    return ScenarioResult(scenario, 2, 100, names, values, values, values, values)


def play_all(folder: str) -> None:
    """Every scenario under every policy, and its page."""
    for name, scenario in SCENARIOS.items():
        policies = usual_policies(scenario) if name != "ads" else ["cs-ts", "cheapest"]
        played = play(scenario, policies, rounds=220, runs=1)  # 200 arms at most
        assert set(played.policies) == {*policies, BEST_KNOWN}
        for path in write_scenario(played, Path(folder)):
            assert path.stat().st_size > 100, path


def test_every_policy_plays_every_scenario_and_pages_are_written(tmp_path: Path) -> None:
    script = f"from tests.reports.test_scenario import play_all; play_all({str(tmp_path)!r})"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.getcwd()}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)
    page = (tmp_path / "sms.html").read_text()
    assert "Receipts come after 50 decisions" in page
    assert "best-known" in page
    assert "Left out: oracle (knows the optimal arm" in page
    assert "cs-exp3, pe, pe-cs (needs to know the costs, and here they are unknown)" in (tmp_path / "llm.html").read_text()


def test_policies_with_hostile_names_are_escaped() -> None:
    assert_escaped(scenario_page(strange()))


def test_the_text_and_the_csv_have_a_line_per_policy() -> None:
    assert len(scenario_text(strange()).splitlines()) == 3 + len(strange().policies)
    assert len(scenario_csv(strange()).splitlines()) == 1 + len(strange().policies)


def test_the_same_scenario_gives_the_same_page() -> None:
    first, second = (scenario_page(strange()) for _ in range(2))
    assert first == second
