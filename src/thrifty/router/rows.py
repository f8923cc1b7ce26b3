"""Rows of the log, read: what a decision's row says besides its numbers."""

import json

from thrifty.router.records import Note
from thrifty.store.log import Row


def counted_name(row: Row) -> str:
    """The segment in which a decision is counted, which may not be the one it was asked for."""
    asked = row.segment or ""
    if row.detail is None or '"counted"' not in row.detail:
        return asked
    found: str = json.loads(row.detail).get("counted", asked)
    return found


def bucket_in(row: Row) -> int | None:
    """The bucket of the key that a decision was asked for with; None if there was none, or if its version wrote none."""
    if row.detail is None or '"bucket"' not in row.detail:
        return None
    found: int | None = json.loads(row.detail).get("bucket")
    return found


def note_of(row: Row) -> Note | None:
    """What is remembered of a decision besides its numbers. The bucket is not: it stands last, so it is alone if it is first."""
    if row.request_id is None and (row.detail is None or row.detail.startswith('{"bucket"')):
        return None
    return Note(row.request_id, row.segment or "", row.detail)


def is_shadow(detail: str | None) -> bool:
    """Whether a decision was made in shadow mode, where the caller keeps its own choice."""
    return detail is not None and '"shadow"' in detail and "shadow" in json.loads(detail)
