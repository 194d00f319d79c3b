"""FreshRetailNet-50K as one long table, and one model for each of its stores."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pyarrow as pa
from pyarrow import parquet

from censored_gp import MOCGP
from censored_gp.estimator.fleet import fit_many

OPEN = np.arange(6, 22)
"""The opening hours: outside of them next to nothing is sold."""
READ = ("store_id", "product_id", "dt", "sale", "stockout_mask")
SCHEMA = pa.schema(
    [("store_id", pa.int16()), ("product_id", pa.int16()), ("time", pa.timestamp("s")),
     ("sale", pa.float32()), ("sold_out", pa.bool_())]
)  # fmt: skip


def hourly(days: pa.Table) -> pa.Table:
    """Return a row for each store, product and opening hour, from a row for each day.

    `sale` of a day is 24 numbers, and bit h of `stockout_mask` says that hour h was sold out.
    """
    sale = days["sale"].combine_chunks().flatten().to_numpy().reshape(-1, 24)[:, OPEN]
    mask = days["stockout_mask"].to_numpy()[:, None] >> OPEN.astype(np.uint32) & 1
    hours = days["dt"].to_numpy().astype("datetime64[s]")[:, None] + OPEN.astype("timedelta64[h]")
    keys = [np.repeat(days[name].to_numpy(), len(OPEN)) for name in ("store_id", "product_id")]
    columns = [*keys, hours.ravel(), sale.ravel(), mask.astype(bool).ravel()]
    return pa.table([pa.array(each) for each in columns], schema=SCHEMA)


def write_table(path: Path, stores: int | None = None) -> Path:
    """Write the hours of all stores, or of some spread over the cities: a row group for each."""
    source = Path(os.environ["CENSORED_GP_DATA"]) / "freshretailnet50k"
    files = sorted(source.glob("city_*.parquet"))
    if not files:
        raise FileNotFoundError(f"There is no city_*.parquet in {source}.")
    draft = path.with_suffix(".part")
    ids = [np.unique(parquet.read_table(file, columns=["store_id"])["store_id"]) for file in files]
    every = np.concatenate(ids)
    wanted = every[:: max(1, len(every) // stores)][:stores] if stores else every
    with parquet.ParquetWriter(draft, SCHEMA) as writer:
        for file, there in zip(files, ids, strict=True):
            chosen = np.intersect1d(there, wanted)
            if not len(chosen):
                continue
            city = parquet.read_table(
                file, columns=list(READ), filters=[("store_id", "in", chosen)]
            )
            own = city["store_id"].to_numpy()
            for store in chosen:
                writer.write_table(hourly(city.take(np.flatnonzero(own == store))))
    return draft.replace(path)


def run(
    folder: Path, stores: int | None = None, jobs: int | None = None, workers: int | None = None
) -> str:
    """Fit a model to each store, or go on where an earlier run stopped; return what came of it.

    With `workers` the fleet is fitted on a local Dask cluster of so many processes.
    """
    name = "fresh_retail" if stores is None else f"fresh_retail_{stores}"
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / f"{name}.parquet"
    if not table.exists():
        write_table(table, stores)
    with contextlib.ExitStack() as stack:
        if workers:
            from dask.distributed import Client, LocalCluster

            settings: Any = {"threads_per_worker": 1, "dashboard_address": None}
            cluster = stack.enter_context(LocalCluster(n_workers=workers, **settings))
            stack.enter_context(Client(cluster))
            stack.enter_context(joblib.parallel_config(backend="dask"))
        start = time.perf_counter()
        found = fit_many(
            table, MOCGP(), by="store_id", series="product_id", outputs="sale", time="time",
            censored="sold_out", save=folder / name, n_jobs=None if workers else jobs or -1,
        )  # fmt: skip
        return f"{found}\nseconds {time.perf_counter() - start:.0f}"
