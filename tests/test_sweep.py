import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from thrifty import Instance, Policy, Runs, policy, simulate
from thrifty.environments import Exponential, Feedback, abrupt
from thrifty.environments.families import random_costs, table_1
from thrifty.policies import Rule, kernel
from thrifty.sweep import Progress, ResultFolder, Setting, sweep

SETTINGS = [
    *(Setting(table_1(mean), policy, 2000, 5, 1, 3) for mean in (0.3, 0.46, 0.6) for policy in ("cs-ucb", "cs-ts", "cs-etc")),
    Setting(random_costs(Instance([0.5, 0.46], [0.9, 0.2], 0.1)), "cs-etc", 2000, 5),
]


def pulls_of(results: list[Runs]) -> list[list[int]]:
    return [runs.results[0].pulls.ravel().tolist() for runs in results]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> list[list[int]]:
    return pulls_of(sweep(SETTINGS, tmp_path_factory.mktemp("alone"), workers=1))


def test_settings_are_named_by_everything_their_pulls_depend_on() -> None:
    base = {"world": table_1(0.3), "policy": "cs-etc", "horizon": 100, "runs": 2, "seed": 1, "checkpoints": 3}
    others = {"world": table_1(0.31), "policy": "cs-ucb", "horizon": 101, "runs": 3, "seed": 2, "checkpoints": (50, 100)}
    keys = {Setting(**{**base, name: value}).key for name, value in others.items()}  # type: ignore[arg-type]
    assert len(keys | {Setting(**base).key}) == 7  # type: ignore[arg-type]
    assert Setting(**base).key == Setting(**base).key  # type: ignore[arg-type]


def test_rounds_feedback_tapes_and_changes_of_the_world_name_a_setting_too() -> None:
    base: dict[str, Any] = {"world": table_1(0.3), "policy": "cs-etc", "rounds": 100, "runs": 2}
    others: dict[str, Any] = {
        "horizon": 100,
        "feedback": Feedback(5),
        "tapes": True,
        "rounds": 99,
        "world": abrupt(table_1(0.3), table_1(0.6), at=50),
        "policy": policy("cs-etc"),
    }
    keys = {Setting(**{**base, name: value}).key for name, value in others.items()}
    assert len(keys | {Setting(**base).key}) == 7


def odd_policy(arm: int) -> Policy:
    """Always the same arm; all of them have one name."""

    @kernel
    def choose(terms: Any, stats: Any, memory: Any, stream: Any) -> int:  # noqa: ARG001
        return arm

    return Policy("mine", "one arm", Rule(choose))


def test_a_policy_object_is_named_by_its_code_and_its_settings() -> None:
    def key(each: Policy) -> str:
        return Setting(table_1(0.3), each, 100, 2).key

    assert key(odd_policy(0)) == key(odd_policy(0))
    assert key(odd_policy(0)) != key(odd_policy(1))
    assert key(policy("cs-etc", tau=10)) != key(policy("cs-etc", tau=20))
    assert key(policy("cs-etc")) != key(policy("cs-etc+window=50"))
    assert key(policy("cs-ucb")) != key(policy("cs-ucb:interval=kl"))


def test_a_sweep_plays_policy_objects_late_feedback_and_changing_worlds_as_simulate_does(tmp_path: Path) -> None:
    world, late = abrupt(table_1(0.3), table_1(0.6), at=150), Feedback(Exponential(5), lost=0.1)
    settings = [
        Setting(table_1(0.3), odd_policy(1), rounds=300, runs=3, seed=2),
        Setting(table_1(0.3), odd_policy(0), rounds=300, runs=3, seed=2),
        Setting(world, policy("cs-ucb"), rounds=300, feedback=late, runs=3, seed=2, tapes=True),
    ]
    first = sweep(settings, tmp_path)
    assert [runs.results[0].pulls[0, -1].tolist() for runs in first[:2]] == [[0, 300], [300, 0]]
    alone = simulate(world, "cs-ucb", rounds=300, feedback=late, runs=3, seed=2, tapes=True, checkpoints=1)
    assert (first[2]["cs-ucb"].pulls == alone["cs-ucb"].pulls).all()
    assert first[2].checkpoints.tolist() == [150, 300]
    assert pulls_of(sweep(settings, tmp_path)) == pulls_of(first)  # read from files
    assert len(os.listdir(ResultFolder(tmp_path).folder)) == 3


def test_a_setting_with_a_policy_object_can_be_sent_to_a_worker() -> None:
    import cloudpickle  # type: ignore[import-untyped]

    setting = Setting(table_1(0.3), odd_policy(1), rounds=50, feedback=Feedback(3), runs=2)
    sent = cloudpickle.loads(cloudpickle.dumps(setting))
    assert sent.key == setting.key
    assert (sent.play()["mine"].pulls == setting.play()["mine"].pulls).all()


def test_a_result_with_another_feedback_is_refused(tmp_path: Path) -> None:
    one, other = (Setting(table_1(0.3), "cheapest", rounds=50, feedback=Feedback(delay), runs=2) for delay in (3, 4))
    sweep([one, other], tmp_path)
    store = ResultFolder(tmp_path)
    store.path(one).write_bytes(store.path(other).read_bytes())
    with pytest.raises(ValueError, match="holds the result of another setting"):
        sweep([one], tmp_path)


def test_two_workers_give_the_same_bits_as_one(tmp_path: Path, alone: list[list[int]]) -> None:
    assert pulls_of(sweep(SETTINGS, tmp_path, workers=2)) == alone


def test_finished_settings_are_not_simulated_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: list[list[int]]) -> None:
    played: list[str] = []
    play = Setting.play

    def counted(setting: Setting, progress: Progress | None = None) -> Runs:
        played.append(setting.key)
        return play(setting, progress)

    monkeypatch.setattr(Setting, "play", counted)
    sweep(SETTINGS[:4], tmp_path)
    assert len(played) == 4
    assert pulls_of(sweep([*SETTINGS, SETTINGS[0]], tmp_path))[:-1] == alone
    assert sorted(played) == sorted(setting.key for setting in SETTINGS)  # each once


def test_an_interrupted_sweep_keeps_what_was_finished_and_resumes(tmp_path: Path) -> None:
    def stop(done: int, _total: int) -> None:
        if done > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="1 of 10 settings are finished and kept"):
        sweep(SETTINGS, tmp_path, workers=1, progress=stop)
    store = ResultFolder(tmp_path)
    kept = [setting for setting in SETTINGS if store.path(setting).exists()]
    assert 0 < len(kept) < len(SETTINGS)
    seen: list[tuple[int, int]] = []
    sweep(SETTINGS, tmp_path, progress=lambda done, total: seen.append((done, total)))
    assert seen[0][0] >= sum(setting.all_rounds for setting in kept)
    assert seen[-1][0] == seen[-1][1]


def test_merging_two_sweeps_is_copying_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep(SETTINGS[:2], tmp_path / "a")
    sweep(SETTINGS[2:4], tmp_path / "b")
    for path in ResultFolder(tmp_path / "b").folder.iterdir():
        path.rename(ResultFolder(tmp_path / "a").folder / path.name)
    monkeypatch.setattr(Setting, "play", None)  # nothing is left to play
    assert len(sweep(SETTINGS[:4], tmp_path / "a")) == 4


def test_a_damaged_result_is_refused_or_read_as_it_was_and_never_overwritten(tmp_path: Path) -> None:
    setting = SETTINGS[0]
    [runs] = sweep([setting], tmp_path)
    path = ResultFolder(tmp_path).path(setting)
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    refused = 0
    damaged = [whole[: len(whole) // 2], whole[:-1], b"", b"half"]
    for position in rng.integers(len(whole), size=600):
        flipped = bytearray(whole)
        flipped[position] ^= 1 << int(rng.integers(8))
        damaged.append(bytes(flipped))
    for content in damaged:
        path.write_bytes(content)
        try:
            [again] = sweep([setting], tmp_path)
        except ValueError as error:
            refused += 1
            message = str(error)
        else:
            message = str(path)
            assert (again.results[0].pulls == runs.results[0].pulls).all()
        assert str(path) in message
        assert path.read_bytes() == content
    assert refused > 450  # what is left, a fifth, are bits of the archive that mean nothing


def test_a_result_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep(SETTINGS[:1], tmp_path)
    monkeypatch.setattr("thrifty.sweep.__version__", "9.9.9")
    with pytest.raises(ValueError, match=r"is from thrifty .* and this is 9\.9\.9"):
        sweep(SETTINGS[:1], tmp_path)


def test_a_result_of_another_setting_is_refused(tmp_path: Path) -> None:
    sweep(SETTINGS[:2], tmp_path)
    store = ResultFolder(tmp_path)
    store.path(SETTINGS[0]).write_bytes(store.path(SETTINGS[1]).read_bytes())
    with pytest.raises(ValueError, match="holds the result of another setting"):
        sweep(SETTINGS[:1], tmp_path)


def test_unwritable_folders_and_unknown_backends_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cannot make the folder"):
        sweep(SETTINGS[:1], tmp_path / "file")
    with pytest.raises(ValueError, match="backend must be local, dask or"):
        sweep(SETTINGS[:1], tmp_path, backend="ray")
    with pytest.raises(ValueError, match="unknown policy"):
        Setting(table_1(0.3), "cs-abc", 100, 1)


def test_a_scheduler_without_workers_is_one_clear_line(tmp_path: Path) -> None:
    with (
        dask_cluster(tmp_path, 0) as (address, _),
        pytest.raises(ValueError, match="has no workers: start some with `dask worker`"),
    ):
        sweep(SETTINGS[:1], tmp_path / "out", backend=f"dask://{address}")


@contextmanager
def dask_cluster(folder: Path, n_workers: int) -> Iterator[tuple[str, list["subprocess.Popen[bytes]"]]]:
    """A real scheduler and real worker processes on loopback; the address, and the workers."""
    note = folder / "scheduler.json"
    command = [sys.executable, "-m", "dask"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(note)]
    scheduler = subprocess.Popen([*command, "scheduler", *options], **quiet)  # type: ignore[call-overload]
    workers: list[subprocess.Popen[bytes]] = []
    try:
        waited = time.monotonic()
        while not note.exists() or not note.read_text().endswith("}"):
            assert time.monotonic() - waited < 60, "the scheduler did not start"
            time.sleep(0.1)
        for number in range(n_workers):
            options = ["--scheduler-file", str(note), "--nthreads", "1", "--no-nanny", "--no-dashboard", "--name", str(number)]
            workers.append(subprocess.Popen([*command, "worker", *options], **quiet))  # type: ignore[call-overload]
        yield json.loads(note.read_text())["address"].removeprefix("tcp://"), workers
    finally:
        for process in [*workers, scheduler]:
            process.kill()
            process.wait()


def test_a_dask_cluster_gives_the_same_bits_and_survives_the_death_of_a_worker(tmp_path: Path, alone: list[list[int]]) -> None:
    from distributed import Client

    long = [Setting(table_1(0.46), "cs-ts", 100_000, 10, seed) for seed in range(8)]
    with dask_cluster(tmp_path, 2) as (address, workers):
        watcher: Any = Client(f"tcp://{address}", timeout="30s")  # type: ignore[no-untyped-call]
        watcher.wait_for_workers(2, timeout=60)
        assert pulls_of(sweep(SETTINGS, tmp_path / "dask", backend=f"dask://{address}")) == alone
        done = threading.Event()

        def kill_one(_done: int, _total: int) -> None:
            if _done > 0 and not done.is_set():
                done.set()
                workers[0].send_signal(signal.SIGKILL)

        results = pulls_of(sweep(long, tmp_path / "killed", backend=f"dask://{address}", progress=kill_one))
        assert done.is_set()
        assert workers[0].wait() == -signal.SIGKILL
        assert workers[1].poll() is None
        finished = watcher.run_on_scheduler(
            lambda dask_scheduler: sum(entry[1:3] == ("processing", "memory") for entry in dask_scheduler.transition_log)
        )
        watcher.close()
        # Nothing is played twice but the task of the worker that died, and at most one result that died with it unread.
        assert len(SETTINGS) + len(long) <= finished <= len(SETTINGS) + len(long) + 1
    assert results == pulls_of(sweep(long, tmp_path / "here"))
    assert len(os.listdir(ResultFolder(tmp_path / "killed").folder)) == len(long)
