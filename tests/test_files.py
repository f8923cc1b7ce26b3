import os
import stat
from pathlib import Path

import pytest

from thrifty.files import check_folder, replacing, write_files, write_whole


def test_a_failure_leaves_the_old_file_and_no_part(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    write_whole(path, b"old")

    def fail() -> None:
        with replacing(path) as part:
            part.write_text("half")
            raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        fail()
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["a.csv"]


def test_a_folder_in_the_way_is_one_line_and_leaves_no_part(tmp_path: Path) -> None:
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(ValueError, match=r"cannot write .*a\.csv: Is a directory"):
        write_whole(tmp_path / "a.csv", b"new")
    assert [each.name for each in tmp_path.iterdir()] == ["a.csv"]


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "a.csv", b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.csv").stat().st_mode) == 0o640


def test_files_are_written_into_a_folder_that_is_made(tmp_path: Path) -> None:
    paths = write_files(tmp_path / "new" / "folder", {"a": b"1", "b": b"2"})
    assert [path.read_bytes() for path in paths] == [b"1", b"2"]
    with pytest.raises(ValueError, match="cannot make the folder"):
        write_files(tmp_path / "new" / "folder" / "a", {"c": b"3"})


def test_a_folder_is_checked_and_not_made(tmp_path: Path) -> None:
    check_folder(tmp_path)
    check_folder(tmp_path / "new" / "folder")
    (tmp_path / "file").write_text("")
    for wrong in (tmp_path / "file", tmp_path / "file" / "in" / "it"):
        with pytest.raises(ValueError, match=rf"folder {wrong}: {tmp_path / 'file'} is not a folder; name another with --out"):
            check_folder(wrong)
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
