"""The file format of results: one .npz file with a header in JSON and the arrays."""

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from thrifty.files import write_whole

_FORMAT = 3
_NAMES_IN_FORMAT_2 = {"horizon": "rounds", "told_horizon": "horizon"}  # what the header called them: what it calls them now


def write_archive(path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write header and arrays into one file, whole or not at all."""
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"runs are saved in a file: give its path, got {path!r:.80}")
    buffer = io.BytesIO()
    np.savez_compressed(buffer, header=np.array(json.dumps({"format": _FORMAT, **header})), **arrays)
    write_whole(Path(path), buffer.getvalue())


def read_archive(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and arrays of a file that `write_archive` wrote, in this format or the one before."""
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"runs are read from a file: give its path, got {path!r:.80}")
    try:
        with np.load(io.BytesIO(Path(path).read_bytes()), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(str(arrays.pop("header")))
        if header["format"] == 2:
            header = {_NAMES_IN_FORMAT_2.get(name, name): value for name, value in header.items()}
        elif header["format"] != _FORMAT:
            raise ValueError(f"{path} has format {header['format']}, and this version reads 2 and {_FORMAT}")
    except (OSError, KeyError, EOFError, zipfile.BadZipFile, json.JSONDecodeError, TypeError) as error:
        raise not_whole(path, error) from None
    return header, arrays


def not_whole(path: str | os.PathLike[str], error: Exception) -> ValueError:
    """The error of a damaged file."""
    return ValueError(f"{path} is not a whole file of runs written by Runs.save: {error}")
