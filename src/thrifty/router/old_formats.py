"""Snapshots of older formats, in today's layout.

Formats 5 to 7 had no sums of squares. What is filled in overstates the variance rather than understates it, so that nothing looks
better known than it is: rewards are in [0, 1], where the sum of squares is at most the sum, as if each outcome were a success or
a failure; and costs get a standard deviation as large as their mean, 2 S^2 / n for n outcomes that sum to S.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Floats
from thrifty.router.frame import ArmSums
from thrifty.router.packing import Layout, flatten
from thrifty.router.segment_sums import SegmentSums

_SQUARES = {"reward_squares": "reward_sum", "cost_squares": "cost_sum", "reward_square": "reward", "cost_square": "cost"}
"""Fields that older formats do not have, and what each is derived from."""


def without_squares(kind: np.dtype[Any]) -> np.dtype[Any]:
    """The record that older formats had instead of this one.

    >>> without_squares(ArmSums).names[:6]
    ('sent', 'pending', 'seen', 'reward_sum', 'cost_sum', 'priced')
    """
    return np.dtype([(name, kind[name]) for name in kind.names or () if name not in _SQUARES])


def add_squares(old: NDArray[Any], kind: np.dtype[Any], mean_costs: Floats) -> NDArray[Any]:
    """Records of an older format as records of today; `mean_costs` are of the same shape."""
    new = np.zeros(old.shape, kind)
    for name in new.dtype.names or ():
        if name not in _SQUARES:
            new[name] = old[name]
        elif name.startswith("cost"):
            new[name] = 2.0 * mean_costs * old[_SQUARES[name]]
        else:
            new[name] = old[_SQUARES[name]]
    return new


def with_squares(dumped: dict[str, bytes], sums: SegmentSums) -> dict[str, bytes]:
    """The tables of a snapshot of format 6 or 7 as `SegmentSums.load` reads them; a ValueError where they are of another size."""
    shape, found = (sums.count, sums.n_arms), dict(dumped)
    costs = np.zeros(shape)
    for name in ("sums", "source", "recent"):  # what is remembered comes last: the recollections belong to it
        if name in found:
            old = _shaped(name, found[name], without_squares(ArmSums), shape)
            costs = _mean_costs(old)
            found[name] = add_squares(old, ArmSums, costs).tobytes()
    if "recollections" in found and sums.recollection_layout is not None:
        found["recollections"] = _recollections(found["recollections"], sums, sums.recollection_layout, costs)
    return found


def with_group_squares(groups: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The sums of the holdout and of all others with sums of squares, which snapshots had not before.

    >>> with_group_squares({"routed": [4, 2.0, 8.0]})
    {'routed': [4, 2.0, 8.0, 2.0, 32.0]}
    """
    return {
        name: [n, reward, cost, *(squares or (reward, 2.0 * cost * cost / max(n, 1)))]
        for name, (n, reward, cost, *squares) in groups.items()
    }


def _mean_costs(sums: NDArray[Any]) -> Floats:
    seen = np.asarray(sums["seen"])
    return np.where(seen > 0.0, sums["cost_sum"] / np.where(seen > 0.0, seen, 1.0), 0.0)


def _recollections(content: bytes, sums: SegmentSums, layout: Layout, mean_costs: Floats) -> bytes:
    begun = sums.forgetting.begin_plain(sums.n_arms)
    leaves = [np.asarray(leaf) for leaf in flatten(begun)]
    old_layout = Layout(tuple(np.zeros(leaf.size, _old_kind(leaf.dtype)) for leaf in leaves))
    old = _shaped("recollections", content, np.dtype(np.uint8), (sums.count, old_layout.n_bytes))
    new = np.tile(layout.pack(begun), (sums.count, 1))
    for leaf, (first, end), (at, until) in zip(leaves, old_layout.extents(), layout.extents(), strict=True):
        kept = np.ascontiguousarray(old[:, first:end]).view(_old_kind(leaf.dtype))
        if leaf.dtype.names:
            costs = np.take_along_axis(mean_costs, kept["arm"], axis=1) if "arm" in leaf.dtype.names else np.zeros(kept.shape)
            kept = add_squares(kept, leaf.dtype, costs)
        new[:, at:until] = kept.view(np.uint8)
    return new.tobytes()


def _old_kind(kind: np.dtype[Any]) -> np.dtype[Any]:
    return without_squares(kind) if kind.names else kind


def _shaped(name: str, content: bytes, kind: np.dtype[Any], shape: tuple[int, int]) -> NDArray[Any]:
    if len(content) != shape[0] * shape[1] * kind.itemsize:
        raise ValueError(f"a snapshot whose {name} have {len(content)} bytes instead of {shape[0] * shape[1] * kind.itemsize}")
    return np.frombuffer(content, kind).reshape(shape)
