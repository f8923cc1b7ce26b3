"""A damaged, unreadable or full cache folder costs time, and nothing else."""

import errno
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from thrifty import compiled, kernel_cache
from thrifty.compiled import bind, driver, is_cached
from thrifty.kernel_cache import cache_folder


@driver
def triple(x):  # type: ignore[no-untyped-def]
    return 3.0 * x


def fresh(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """The bound function as another process would get it."""
    import sys

    name = compiled._bound_name(triple, {}, "triple", False)
    monkeypatch.delitem(sys.modules, name, raising=False)
    return bind(triple, {}, name="triple")


def compiles(bound: Any) -> bool:
    """Call it; whether it had to be compiled."""
    assert bound(2.0) == 6.0
    return bool(sum(bound.stats.cache_misses.values()) == 1)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("THRIFTY_CACHE", str(tmp_path))
    assert compiles(fresh(monkeypatch))
    assert not compiles(fresh(monkeypatch))
    return cache_folder()


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flip(content: bytes) -> bytes:
    """One bit of the machine code: unpickled without complaint, it would be run."""
    middle = 2 * len(content) // 3
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize("damage", [cut, flip, lambda _: b"", lambda _: b"\0" * 4096, lambda content: content[:10]])
def test_a_damaged_kernel_is_compiled_again_and_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[bytes], bytes]
) -> None:
    (file,) = folder.iterdir()
    file.write_bytes(damage(file.read_bytes()))
    assert compiles(fresh(monkeypatch))
    assert not compiles(fresh(monkeypatch))


def test_a_damaged_kernel_does_not_count_as_cached(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bound = fresh(monkeypatch)
    assert not bound.signatures  # type: ignore[attr-defined]
    assert is_cached(triple, {}, name="triple")
    (file,) = folder.iterdir()
    file.write_bytes(cut(file.read_bytes()))
    assert not is_cached(triple, {}, name="triple")


def test_a_kernel_that_cannot_be_unpickled_is_compiled_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hashlib

    (file,) = folder.iterdir()
    for content in (b"no pickle", pickle.dumps((1, 2, 3))):
        file.write_bytes(hashlib.sha256(content).digest() + content)
        assert compiles(fresh(monkeypatch))
        assert not compiles(fresh(monkeypatch))


def test_a_folder_in_place_of_the_file_is_no_obstacle(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file,) = folder.iterdir()
    file.unlink()
    file.mkdir()
    assert compiles(fresh(monkeypatch))


def test_a_full_disk_only_costs_the_time_to_compile(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    @contextmanager
    def full(_path: Path) -> Iterator[Path]:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        yield

    for file in folder.iterdir():
        file.unlink()
    monkeypatch.setattr(kernel_cache, "replacing", full)
    assert compiles(fresh(monkeypatch))
    assert "a compiled kernel is not kept: [Errno 28] No space left on device" in caplog.text
    assert compiles(fresh(monkeypatch))


def test_a_folder_that_cannot_be_written_is_still_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != folder and allowed(path, mode))  # root may write anywhere
    assert cache_folder() != folder
    assert not compiles(fresh(monkeypatch))
    for file in folder.iterdir():
        file.unlink()
    assert compiles(fresh(monkeypatch))
    assert not compiles(fresh(monkeypatch))  # from the temporary folder
    for file in cache_folder().iterdir():
        file.unlink()


def test_a_folder_that_cannot_be_read_is_no_obstacle(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bytes:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    assert folder.exists()
    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert compiles(fresh(monkeypatch))


def test_a_child_process_that_is_told_of_the_temporary_folder_uses_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("THRIFTY_CACHE", str(tmp_path / "file" / "below"))
    here = cache_folder()
    monkeypatch.setenv("THRIFTY_CACHE", str(here.parent))  # as thrifty.router.compiling sets it for its child
    assert cache_folder() == here


def test_a_user_without_a_home_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    for name, value in (("XDG_CACHE_HOME", "caches"), ("THRIFTY_CACHE", "chosen")):
        monkeypatch.setenv(name, str(tmp_path / value))
        assert cache_folder() == tmp_path / value / ("thrifty" * (name == "XDG_CACHE_HOME")) / "kernels"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("THRIFTY_CACHE")
    assert cache_folder() == kernel_cache._temporary_folder()
