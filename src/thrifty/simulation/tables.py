"""Tables of results: the summary that people read, and tables of numbers that say where they came from."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from thrifty.table import Table

METRICS = ("quality", "cost", "total")
_SOURCES = ("runs", "seed", "version", "digest", "parameters", "horizon", "feedback", "tapes", "known", "world")


def summary_table(final: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Table:
    """Regret at the end, one row a policy, as texts. `final` is that of `Runs.final`."""
    columns = {"policy": list(final)} | {
        f"{metric} regret": ["{mean:,.1f} [{low:,.1f}, {high:,.1f}]".format(**each[metric]) for each in final.values()]
        for metric in METRICS
    }
    columns["median"] = ["{median:,.1f}".format(**each["total"]) for each in final.values()]
    columns["5% to 95% of runs"] = ["{q05:,.1f} to {q95:,.1f}".format(**each["total"]) for each in final.values()]
    return Table({name: np.array(values, dtype=str) for name, values in columns.items()})


def with_sources(table: Table, sources: Mapping[str, Mapping[str, Any]]) -> Table:
    """A table with a column "policy" and, beside it, where the numbers of each policy came from; what is no text is JSON.

    >>> source = dict.fromkeys(_SOURCES, 1) | {"version": "0.1.0"}
    >>> with_sources(Table({"policy": np.array(["cs-etc"])}), {"cs-etc": source})["version"].tolist()
    ['0.1.0']
    """
    texts = {label: {name: _text(source[name]) for name in _SOURCES} for label, source in sources.items()}
    return Table(table.columns | {name: np.array([texts[label][name] for label in table["policy"]]) for name in _SOURCES})


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
