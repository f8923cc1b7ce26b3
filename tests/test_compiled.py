"""The kernel cache: kept between processes, never stale."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import thrifty
from thrifty import compiled
from thrifty.compiled import bind, driver, is_cached, kept
from thrifty.kernel_cache import cache_folder

SCRIPT = """
import thrifty, thrifty.simulation.runner as runner
result = thrifty.simulate(thrifty.Instance([0.5, 0.46], [1.0, 0.0], 0.1), "cs-ucb", horizon=2000, runs=1, seed=1)["cs-ucb"]
course = runner._Course(thrifty.World([0.5, 0.46], [1.0, 0.0], 0.1), 2000, 2000, result.pulls[0, -1], None, 1)
task = runner._Task(thrifty.policy("cs-ucb"), course, runs=1, trace=False)
print(result.pulls[0, -1].tolist(), sum(task.kernel.stats.cache_hits.values()), sum(task.kernel.stats.cache_misses.values()))
"""


@driver
def double(x):  # type: ignore[no-untyped-def]
    return 2.0 * x


@kept
def thrice(x: float) -> float:
    return 3.0 * x


def test_a_kept_function_is_on_disk_once_it_was_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THRIFTY_CACHE", str(tmp_path))
    assert thrice(2.0) == 6.0
    assert [path.name.rpartition("_")[0] for path in cache_folder().iterdir()] == ["thrifty_thrice"]


REPLAY = """
import numba.core.event as event
from thrifty.cli.main import main
with event.install_recorder("numba:compile") as compiled:
    assert main(["replay", "log.csv", "--policies", "none"]) == 0
names = {each.data["dispatcher"].py_func.__module__ for _, each in compiled.buffer}
print(sorted(name for name in names if name.startswith(("thrifty.logs", "thrifty_"))))
"""


def test_a_question_to_a_log_compiles_nothing_of_its_own_the_second_time(tmp_path: Path) -> None:
    rows = "".join(f"{'ab'[n % 2]},{int(n % 5 > 0)},0.1\n" for n in range(400))
    (tmp_path / "log.csv").write_text("arm,reward,cost\n" + rows)
    environment = {**os.environ, "THRIFTY_CACHE": str(tmp_path / "cache")}
    first, second = (
        subprocess.run([sys.executable, "-c", REPLAY], check=True, capture_output=True, text=True, env=environment, cwd=tmp_path)
        for _ in range(2)
    )
    assert "thrifty__accumulate" in first.stdout
    assert second.stdout.splitlines()[-1] == "[]"


def run(package: Path, cache: Path) -> tuple[str, str, str]:
    environment = {**os.environ, "PYTHONPATH": str(package), "THRIFTY_CACHE": str(cache)}
    shown = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True, env=environment).stdout
    pulls, hits, misses = shown.rsplit(maxsplit=2)
    return pulls, hits, misses


def test_kernels_are_kept_and_an_edit_of_a_callee_is_noticed(tmp_path: Path) -> None:
    package = tmp_path / "package"
    shutil.copytree(Path(thrifty.__file__).parent, package / "thrifty", ignore=shutil.ignore_patterns("__pycache__"))
    before, hits, misses = run(package, tmp_path / "cache")
    assert (hits, misses) == ("0", "1")
    again, hits, misses = run(package, tmp_path / "cache")
    assert again == before
    assert (hits, misses) == ("1", "0")
    # The radius is called by the kernel that is kept, from another file: numba's own cache would not notice.
    intervals = package / "thrifty" / "intervals.py"
    intervals.write_text(intervals.read_text().replace("return 2.0 * math.log(horizon)", "return 0.02 * math.log(horizon)"))
    after, hits, misses = run(package, tmp_path / "cache")
    assert after != before
    assert (hits, misses) == ("0", "1")


def test_an_unusable_cache_folder_is_replaced_by_a_temporary_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("THRIFTY_CACHE", str(tmp_path / "file" / "below"))
    folder = cache_folder()
    assert folder.is_dir()
    assert os.access(folder, os.W_OK)
    assert tmp_path not in folder.parents


def test_a_kernel_that_another_thread_is_loading_can_be_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("THRIFTY_CACHE", str(tmp_path))
    loading, go_on = threading.Event(), threading.Event()
    load = compiled._compile_bound

    def load_slowly(module_name: str, bound: Callable[..., Any], short: bool) -> Callable[..., Any]:
        if module_name.startswith("thrifty_slow"):
            loading.set()  # the module is in sys.modules, and not yet what it will be
            assert go_on.wait(20)
        return load(module_name, bound, short)

    monkeypatch.setattr(compiled, "_compile_bound", load_slowly)
    found: list[object] = []
    with ThreadPoolExecutor(2) as pool:
        binding = pool.submit(lambda: found.append(bind(double, {}, name="slow")))
        assert loading.wait(20)
        asking = pool.submit(is_cached, double, {}, name="slow")
        with pytest.raises(TimeoutError):
            asking.result(0.2)  # it waits for the other thread
        go_on.set()
        binding.result(20)
        assert asking.result(20) is False  # loaded, and never compiled


def test_a_kernel_that_could_not_be_loaded_is_loaded_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("THRIFTY_CACHE", str(tmp_path))

    def fail(*_arguments: object) -> None:
        raise OSError("the disk is gone")

    with monkeypatch.context() as broken:
        broken.setattr(compiled, "_compile_bound", fail)
        with pytest.raises(OSError, match="the disk is gone"):
            bind(double, {}, name="again")
    assert bind(double, {}, name="again")(2.0) == 4.0
