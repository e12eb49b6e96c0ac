"""Work spread over a Dask cluster, through Prefect's own Dask integration.

For catalogues that one machine cannot refit in a night. An optional extra: nothing of
Dask is imported unless settings ask for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from models.errors import ConfigError, NewsbeatError

S = TypeVar("S")
T = TypeVar("T")

LOCAL = "local"
"""Address that asks for a cluster on this machine."""


def map_on_dask(
    call: Callable[[S], T], items: Sequence[S], address: str, workers: int = 2
) -> list[T]:
    """Return what `call` makes of every item, computed on Dask, in their order.

    Parameters
    ----------
    call
        Importable by name on the workers, which need newsbeat installed.
    items
        Large enough each that sending it out and back costs little.
    address
        Of a scheduler; `LOCAL` starts a cluster of processes here, for this call.
    workers
        Processes of a local cluster.

    Raises
    ------
    ConfigError
        If prefect-dask is not installed.
    NewsbeatError
        If the scheduler cannot be reached, or work was lost on it.
    """
    try:
        import distributed
        from prefect_dask import DaskTaskRunner
    except ModuleNotFoundError as error:
        raise ConfigError(
            "newsbeat.toml",
            "refit.dask",
            address,
            f"{error.name} is not installed; install the extra: pip install 'newsbeat[dask]'",
        ) from error
    options: dict[str, Any] = {"address": address}
    if address == LOCAL:
        kwargs = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
        options = {"cluster_kwargs": kwargs}
    try:
        with DaskTaskRunner(**options) as runner:
            futures = [runner.client.submit(call, item, pure=False) for item in items]
            return list(runner.client.gather(futures))
    except (OSError, distributed.scheduler.KilledWorker) as error:
        raise NewsbeatError(f"Dask at {address}: {error}") from error
