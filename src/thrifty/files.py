"""Result files, each written whole or not at all."""

import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the path of an empty file beside `path`; it replaces `path` at the end, unless an exception is raised.

    An OSError is not translated.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "a.txt"
    >>> with replacing(target) as part:
    ...     _ = part.write_text("all of it")
    ...     target.exists()
    False
    >>> target.read_text()
    'all of it'
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    try:
        yield part
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that no reader ever sees half of it; a ValueError names the path if that fails.

    >>> write_whole(Path("/nowhere/a.csv"), b"a")
    Traceback (most recent call last):
    ValueError: cannot write /nowhere/a.csv: No such file or directory
    """
    try:
        with replacing(path) as part:
            part.write_bytes(content)
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror}") from None


def check_folder(folder: Path) -> None:
    """A ValueError that names the folder if it cannot be made or written, before any work is done; nothing is made.

    >>> check_folder(Path("/dev/null/out"))
    Traceback (most recent call last):
    ValueError: cannot write into the folder /dev/null/out: /dev/null is not a folder; name another with --out
    """
    try:
        nearest = next(each for each in (folder, *folder.absolute().parents) if each.exists())
        wrong = "is not a folder" if not nearest.is_dir() else "" if os.access(nearest, os.W_OK | os.X_OK) else "is not writable"
    except OSError as error:
        nearest, wrong = folder, f"cannot be looked at ({error.strerror})"
    if wrong:
        raise ValueError(f"cannot write into the folder {folder}: {nearest} {wrong}; name another with --out")


def check_file(path: Path, flag: str) -> None:
    """A ValueError if a file cannot be written, before any work is done; nothing is made. `flag` is what names the file.

    >>> check_file(Path("/nowhere/a.csv"), "--csv")
    Traceback (most recent call last):
    ValueError: cannot write /nowhere/a.csv: there is no folder /nowhere; name another file with --csv
    """
    folder = path.absolute().parent
    try:
        wrong = _what_is_wrong(path, folder)
    except OSError as error:
        wrong = f"it cannot be looked at ({error.strerror})"
    if wrong:
        raise ValueError(f"cannot write {path}: {wrong}; name another file with {flag}")


def _what_is_wrong(path: Path, folder: Path) -> str:
    """Why a file cannot be written into its folder; empty if it can."""
    if path.is_dir():
        return "it is a folder"
    if not folder.is_dir():
        return f"there is no folder {folder}"
    return "" if os.access(folder, os.W_OK | os.X_OK) else f"the folder {folder} is not writable"


def write_files(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write files by name into a folder, made if need be; returns their paths."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"cannot make the folder {folder}: {error.strerror}") from None
    for name, content in files.items():
        write_whole(folder / name, content)
    return [folder / name for name in files]


def flush_gently(path: Path) -> None:
    """Flush what was written to a file so far to the disk, then leave the disk to others for as long as that took.

    For a file that grows for minutes beside a service: one large flush at the end would hold up the service's commits.
    """
    began = time.monotonic()
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    time.sleep(min(time.monotonic() - began, 0.05))
