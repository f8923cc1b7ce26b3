"""The folder of compiled kernels: one file for each bound function and types of arguments.

A file begins with a digest of the rest. A file that is damaged, cut short or cannot be read counts as missing, and is written anew;
a folder that is full or read-only only costs the time to compile again. The name of a file holds the fingerprint of the code
(`thrifty.fingerprint`), the types of the arguments and the processor, so nothing in it is ever out of date.
"""

import atexit
import hashlib
import logging
import os
import pickle
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from numba.core import serialize
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult

from thrifty.files import replacing

log = logging.getLogger("thrifty.cache")

_SUFFIX = ".kernel"
_DIGEST = hashlib.sha256().digest_size


def cache_folder() -> Path:
    """Where compiled kernels are kept: $THRIFTY_CACHE, else $XDG_CACHE_HOME/thrifty, else ~/.cache/thrifty.

    Falls back to a private temporary folder, gone with the process, when that place cannot be written.
    """
    folder = _wanted_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
    except OSError:
        pass
    return _temporary_folder()


def _wanted_folder() -> Path:
    chosen, caches = os.environ.get("THRIFTY_CACHE"), os.environ.get("XDG_CACHE_HOME")
    if chosen:
        return Path(chosen) / "kernels"
    try:
        return Path(caches or Path.home() / ".cache") / "thrifty" / "kernels"
    except RuntimeError:  # a user without a home, as in a container
        return _temporary_folder()


@cache
def _temporary_folder() -> Path:
    made = Path(tempfile.mkdtemp(prefix="thrifty-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    folder = made / "kernels"  # as below any other THRIFTY_CACHE, so that a child process can be told of it
    folder.mkdir()
    return folder


def is_kept(name: str) -> bool:
    """Whether the folder has an undamaged kernel of the bound function called `name`, for any types and processor."""
    return any(_read(path) is not None for folder in _folders() for path in _files_of(folder, name))


def _folders() -> list[Path]:
    """Where to look: the folder to write to, and the wanted one, which may be readable though it cannot be written."""
    return list(dict.fromkeys([cache_folder(), _wanted_folder()]))


def _files_of(folder: Path, name: str) -> list[Path]:
    try:
        return sorted(folder.glob(f"{name}-*{_SUFFIX}"))
    except OSError:
        return []


def _read(path: Path) -> bytes | None:
    """What was written to a file; None if it is missing or damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, rest = content[:_DIGEST], content[_DIGEST:]
    return rest if hashlib.sha256(rest).digest() == digest else None


class KernelFiles(_Cache):
    """The kernels of one bound function, as numba asks for them.

    Parameters
    ----------
    name : of the bound function; it holds its fingerprint

    """

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def cache_path(self) -> str:
        """The folder."""
        return str(cache_folder())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function for these types; None if it is not there, or not as it was written."""
        target_context.refresh()
        file = self._file(sig, target_context.codegen())
        for folder in _folders():
            content = _read(folder / file)
            if content is None:
                continue
            try:
                found: Any = CompileResult._rebuild(target_context, *pickle.loads(content))  # type: ignore[no-untyped-call]
            except Exception as error:  # it was written whole, by code that differs in something that its name does not say
                log.warning("%s cannot be loaded and is compiled again: %s", file, error)
                continue
            if tuple(found.signature.args) == tuple(sig):
                return found
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function; without a trace if there is no room, or if it holds addresses of this process."""
        if data.library.has_dynamic_globals or not all(lifted.can_cache for lifted in data.lifted):
            return
        content: bytes = serialize.dumps(data._reduce())  # type: ignore[no-untyped-call]
        path = cache_folder() / self._file(sig, data.codegen)
        try:
            with replacing(path) as part:
                part.write_bytes(hashlib.sha256(content).digest() + content)
        except OSError as error:
            log.warning("a compiled kernel is not kept: %s", error)

    def _file(self, sig: Any, codegen: Any) -> str:
        key = repr((sig, codegen.magic_tuple())).encode()
        return f"{self._name}-{hashlib.sha256(key).hexdigest()[:16]}{_SUFFIX}"

    def enable(self) -> None:
        """Always on."""

    def disable(self) -> None:
        """Always on."""

    def flush(self) -> None:
        """Remove what is kept for this function."""
        for path in _files_of(cache_folder(), self._name):
            path.unlink(missing_ok=True)
