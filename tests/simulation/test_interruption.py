"""Ctrl-C ends a simulation within about a second, whatever it is doing, and completed runs are kept."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from thrifty import Instance, Runs, simulate
from thrifty.interruption import run_interruptibly, start_jobs
from thrifty.simulation import SimulationInterrupted

TWO = Instance([0.5, 0.46], [1.0, 0.0], 0.1)
COMPARE = [sys.executable, "-m", "thrifty.cli", "compare", "--means", "0.5,0.46", "--costs", "1,0", "--alpha", "0.1"]
SOON_S = 8.0
"""It takes 0.6 s for a command and 1.5 s for a script; a busy machine may take longer. It was 15 s, or for ever."""

ENDLESS = """
from thrifty.policies import Policy, Rule, kernel

@kernel
def choose(terms, stats, memory, stream):
    turns = 0
    while stats[0].sent >= 900:
        turns = 0 if turns == 7 else turns + 1
    return 0

POLICY = Policy("endless", "never returns from its 901st round", Rule(choose))
"""


def interrupted(command: list[str], folder: Path, *, once: str = "", after_s: float = 0.0) -> tuple[float, int, str, str]:
    """Seconds from Ctrl-C to the end, exit code, output. Ctrl-C comes after so many seconds, once standard error shows a text."""
    environment = {**os.environ, "THRIFTY_CACHE": str(folder), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stderr is not None
        for line in process.stderr if once else ():
            if once in line:
                break
        time.sleep(after_s)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        return time.monotonic() - began, process.returncode, out, err
    finally:
        process.kill()


def script(*lines: str) -> list[str]:
    """A program in which a simulation shows on standard error that it is under way."""
    shown = "def shown(done, total):\n    print('under way', done, file=sys.stderr)\n"
    return [sys.executable, "-c", "import sys, thrifty\n" + shown + "\n".join(lines)]


PLAY = "thrifty.simulate(thrifty.Instance([0.5, 0.4], [1, 0], 0.1), {policy!r}, horizon=1000, runs=2, progress=shown)"


def test_a_command_that_compiles_ends_within_a_second(tmp_path: Path) -> None:
    took, code, out, err = interrupted([*COMPARE, "--policies", "cs-ids"], tmp_path, after_s=3.0)
    assert took < SOON_S
    assert code == 130
    assert out == ""
    assert "whole runs completed: cs-ids 0/50" in err or "stopped" in err
    assert "Traceback" not in err


def test_a_script_that_compiles_ends_soon(tmp_path: Path) -> None:
    took, code, _, err = interrupted(script(PLAY.format(policy="cs-ids")), tmp_path, once="under way", after_s=0.5)
    assert took < SOON_S
    assert code != 0
    assert "stopped; whole runs completed: cs-ids 0/2" in err


def test_a_policy_that_never_returns_can_be_left(tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text(ENDLESS)
    play = PLAY.format(policy=str(tmp_path / "endless.py"))
    quick = play.replace("horizon=1000", "horizon=100")  # compiled, and played
    lines = [quick, "print('compiled', file=sys.stderr)", play]
    took, code, _, err = interrupted(script(*lines), tmp_path, once="compiled", after_s=1.0)
    assert took < SOON_S
    assert code != 0
    assert "stopped; whole runs completed: endless 0/2" in err


def test_completed_runs_are_kept() -> None:
    def stop_after_the_first_run(done: int, _total: int) -> None:
        if done > 3_000_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        simulate(
            TWO, ["cheapest", "uniform"], horizon=3_000_000, runs=2000, checkpoints=1, threads=1, progress=stop_after_the_first_run
        )
    assert isinstance(caught.value, SimulationInterrupted)
    assert str(caught.value).startswith("stopped; whole runs completed: cheapest ")
    (kept,) = caught.value.runs
    assert 0 < kept.pulls.shape[0] < 2000
    assert (kept.pulls[:, -1] == [0, 3_000_000]).all()


def test_the_command_shows_and_saves_the_runs_that_were_completed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from thrifty import simulation
    from thrifty.cli.main import main

    def stopped(*arguments: object, **options: object) -> Runs:
        options["progress"] = None
        runs = simulate(*arguments, **{**options, "runs": 2})  # type: ignore[arg-type]
        raise SimulationInterrupted("stopped; whole runs completed: cheapest 2/5", runs)

    monkeypatch.setattr(simulation, "simulate", stopped)
    kept = tmp_path / "some.npz"
    assert main([*COMPARE[3:], "--policies", "cheapest", "--horizon", "100", "--runs", "5", "--save", str(kept)]) == 130
    captured = capsys.readouterr()
    assert "2 runs" in captured.out
    assert captured.err == "thrifty compare: stopped; whole runs completed: cheapest 2/5\n"
    assert Runs.load(kept)["cheapest"].pulls.shape[0] == 2


def test_an_error_of_one_policy_does_not_wait_for_the_others() -> None:
    from tests.policies.test_range import late

    simulate(TWO, "uniform", horizon=100, runs=1)
    with pytest.raises(ValueError, match="late chose arm 9"):
        simulate(TWO, [late(9, 1000), "uniform"], horizon=10**12, runs=2, checkpoints=1)  # hours of uniform


def test_jobs_run_side_by_side_and_keep_their_order() -> None:
    meet = threading.Barrier(2, timeout=20)
    futures = start_jobs([lambda: meet.wait() * 0 + 1, lambda: meet.wait() * 0 + 2, lambda: 3], threads=2)
    assert [future.result(20) for future in futures] == [1, 2, 3]


def test_an_exception_comes_through() -> None:
    def fail() -> None:
        raise TimeoutError("of its own")

    with pytest.raises(TimeoutError, match="of its own"):
        run_interruptibly(fail)
