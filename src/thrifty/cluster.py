"""Dask clusters: the name of a backend, a client of it, and packages that come with the extra `sweep`."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

BACKENDS = "local, dask or dask://host:port"


def cluster_address(backend: str) -> str | None:
    """The address in the name of a backend: None for "local", empty for a cluster that is started here.

    >>> cluster_address("local"), cluster_address("dask"), cluster_address("dask://10.0.0.1:8786")
    (None, '', '10.0.0.1:8786')
    """
    if not isinstance(backend, str):
        raise ValueError(f"backend must be {BACKENDS}, got {backend!r:.80}")
    if backend == "local":
        return None
    if backend == "dask" or (backend.startswith("dask://") and backend != "dask://"):
        return backend.removeprefix("dask").removeprefix("://")
    raise ValueError(f"backend must be {BACKENDS}, got {backend!r}")


@contextmanager
def connect(address: str, workers: int) -> Iterator[Any]:
    """A Dask client of the cluster at an address, or of one that is started here if the address is empty."""
    distributed = require_extra("distributed")
    # Distributed logs every lost connection of workers that come and go; what matters is raised.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    if not address:
        # Each worker has one thread, and polars inside it too: the cores are shared out among the workers.
        one = {"POLARS_MAX_THREADS": "1"}
        options = {"threads_per_worker": 1, "processes": True, "host": "127.0.0.1", "dashboard_address": None, "env": one}
        cluster = distributed.LocalCluster(n_workers=workers, **options)
        with cluster, distributed.Client(cluster) as client:
            yield client
        return
    try:
        client = distributed.Client(f"tcp://{address}", timeout="3s")
    except (OSError, TimeoutError, ValueError):
        raise ValueError(f"no Dask scheduler answers at {address}: start one with `dask scheduler`") from None
    with client:
        yield client


def describe_cluster(address: str) -> str:
    """How messages name a cluster."""
    return f"the Dask cluster at {address}" if address else "the Dask cluster started here"


def require_extra(name: str) -> Any:
    """A package of the extra `sweep`, or a ValueError that says how to get it."""
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise ValueError(f"sweeps and clusters need {name}: pip install 'thrifty[sweep]'") from None
