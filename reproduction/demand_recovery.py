"""FreshRetailNet-50K: recovery of hidden hours of days that never sold out, and forecasts.

The protocol of the recovery is that of the data set's paper (arXiv 2505.16319, table 2), as far as
it is stated there and in its authors' code. Opening hours are 6 to 22, and stock-out hours are
unknown. A day without any stock-out is hidden, with a probability, from a random hour on, or up to
one; besides, runs of 2 to 6 whole days are. Scored are daily totals of days that never sold out and
have hidden hours.

A store is one table of days: what each product sold in the hours that were seen, and as exposure
the share of its usual day that these hours have. Whether the product ran out that day and its
discount are inputs of its own, holidays an input of all.

The forecast is that of numpyro_forecast: the series of largest volume, daily, trained to 2024-06-11
and tested on 14 days whose availability and prices are given. Draws of the demand of whole days are
thinned to the hours with the product on the shelf.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float
from joblib import Parallel, delayed
from pyarrow import parquet

from censored_gp import MOCGP

OPEN = slice(6, 22)
DAYS, HOURS, WINDOW = 90, 16, 30
LEAST_SHARE = 1e-6
"""The exposure of a day of which nothing was seen."""
PSEUDO_SALES = 10.0
"""Sales of the store's profile that each product's own starts with, in mean daily sales."""
DRAWS = 200
SPLIT = ("development", "report")
"""Stores of an even number are for development; those of an odd one have no part in it."""
TRAINING_DAYS = 76
"""The days to 2024-06-11."""
GROUP = 20
"""Series that one forecasting model has, of one product as far as they go."""
PUBLISHED = (
    ("TimesNet (published, all series)", 27.62, 1.43),
    ("DLinear (published, all series)", 29.99, -1.28),
    ("iTransformer (published, all series)", 33.30, -2.09),
)
Hours = Float[np.ndarray, "S 90 16"]
Hidden = Bool[np.ndarray, "S 90 16"]


class Series(NamedTuple):
    """S series of one product in one store, of 90 days.

    Attributes
    ----------
    sale
        Sales of opening hours, S x 90 x 16.
    closed
        Sales of other hours, S x 90.
    stockout
        True where the shelf was empty.
    """

    store: np.ndarray
    product: np.ndarray
    day: np.ndarray
    sale: np.ndarray
    closed: np.ndarray
    stockout: np.ndarray
    discount: np.ndarray
    holiday: np.ndarray

    def __getitem__(self, chosen: Any) -> Series:  # pyright: ignore
        return Series(*(column[chosen] for column in self))


def load(
    paths: Sequence[Path | str], stores: int | None = None, split: str | None = None
) -> Series:
    """Read files of a row for each store, product and day; keep series that have all days.

    Only the first `stores` are kept, and those of one side of the `SPLIT`, if asked for.
    """
    names = ["store_id", "product_id", "dt", "sale", "stockout_mask", "discount", "holiday_flag"]
    every = pa.concat_tables([parquet.read_table(path, columns=names[:1]) for path in paths])
    chosen = np.unique(every["store_id"].to_numpy())
    chosen = chosen if split is None else chosen[chosen % 2 == SPLIT.index(split)]
    # As a series may lack days, some stores more than are wanted are read.
    wanted = [("store_id", "in", chosen[: None if stores is None else 2 * stores].tolist())]
    read = [parquet.read_table(path, columns=names, filters=wanted) for path in paths]
    table = pa.concat_tables(read)
    t = {n: table[n].to_numpy() for n in names if n != "sale"}
    sale = table["sale"].combine_chunks().flatten().to_numpy().reshape(-1, 24)
    order = np.lexsort((t["dt"], t["product_id"], t["store_id"]))
    key = t["store_id"].astype(np.int64)[order] * 100_000 + t["product_id"][order]
    _, start, count = np.unique(key, return_index=True, return_counts=True)
    start = start[count == DAYS]
    if stores is not None:
        own = t["store_id"][order][start]
        start = start[np.isin(own, np.unique(own)[:stores])]
    rows = order[start[:, None] + np.arange(DAYS)]
    mask = t["stockout_mask"][rows][..., None] >> np.arange(24, dtype=np.uint32) & 1
    hours = sale[rows].astype(float)
    first = rows[:, 0]
    return Series(
        t["store_id"][first], t["product_id"][first], t["dt"][rows].astype("datetime64[s]"),
        hours[..., OPEN], hours.sum(-1) - hours[..., OPEN].sum(-1), mask[..., OPEN].astype(bool),
        t["discount"][rows].astype(float), t["holiday_flag"][rows].astype(float),
    )  # fmt: skip


def hide(series: Series, rate: float = 0.3, seed: int = 1024) -> Hidden:
    """Choose the opening hours that are hidden besides those that were sold out."""
    rng, hour = np.random.default_rng(seed), np.arange(HOURS)
    whole = ~series.stockout.any(-1)
    count = len(whole)
    part = whole & (rng.random((count, DAYS)) < rate)
    start = rng.integers(0, int(HOURS * (1 - rate)), (count, DAYS, 1))
    late = rng.random((count, DAYS, 1)) < 0.5
    hidden = part[..., None] & np.where(late, hour >= start, hour <= HOURS - start)
    windows, clean = hidden.reshape(-1, WINDOW, HOURS), whole.reshape(-1, WINDOW)
    streak = np.zeros(len(windows), int)
    for day in range(WINDOW):
        streak = np.where(clean[:, day], streak + 1, 0)
        length = rng.integers(2, 7, len(windows))
        gone = (day > 7) & (rng.random(len(windows)) < rate / 10) & (streak > length + 1)
        for back in range(1, 7):
            windows[gone & (back <= length), day - back] = True
    return hidden


class Totals(NamedTuple):
    """Sums over scored days of one store; those of several stores add up."""

    days: float
    size: float
    absolute: float
    error: float
    held: float = 0.0

    @property
    def wape(self) -> float:
        """Sum of absolute errors by sum of daily totals, in percent."""
        return 100 * self.absolute / self.size

    @property
    def wpe(self) -> float:
        """Sum of errors by sum of daily totals, in percent."""
        return 100 * self.error / self.size

    @property
    def coverage(self) -> float:
        """Share of daily totals inside their intervals."""
        return self.held / self.days


def score(
    series: Series,
    hidden: Hidden,
    recovered: Hours,
    interval: tuple[np.ndarray, np.ndarray] | None = None,
) -> Totals:
    """Score daily totals of days that never sold out and have hidden hours.

    `recovered` has an amount for every opening hour, of which the hidden ones count.
    """
    judged = hidden.any(-1) & ~series.stockout.any(-1)
    truth = series.sale.sum(-1) + series.closed
    total = np.where(hidden, recovered, series.sale).sum(-1) + series.closed
    error = (total - truth)[judged]
    held = 0.0
    if interval is not None:
        held = float(np.sum((truth >= interval[0]) & (truth <= interval[1]), where=judged))
    sums = judged.sum(), truth[judged].sum(), np.abs(error).sum(), error.sum()
    return Totals(*map(float, sums), held)


def added(parts: Sequence[Totals]) -> Totals:
    """Return the totals of several stores."""
    return Totals(*np.sum(parts, axis=0))


def baselines(series: Series, hidden: Hidden) -> dict[str, Hours]:
    """Return hour means of each month: of what is left, of days that never sold out, by weekend."""
    seen = np.where(hidden | series.stockout, np.nan, series.sale).reshape(-1, WINDOW, HOURS)
    day = np.arange(DAYS)
    # The first day is a Thursday.
    weekend = np.isin(day % 7, (2, 3)).reshape(-1, WINDOW)
    weekend = np.tile(weekend, (len(series.store), 1))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        by_hour, over_all = (
            np.nanmean(seen, 1, keepdims=True),
            np.nanmean(seen, (1, 2), keepdims=True),
        )
        every = np.nan_to_num(np.where(np.isnan(by_hour), over_all, by_hour))
        full = ~np.isnan(seen).any(-1)
        clean = np.nanmean(np.where(full[..., None], seen, np.nan), 1, keepdims=True)
    enough = (full.sum(1)[:, None, None] >= 3) & ~np.isnan(clean)
    clean = np.where(enough, clean, every)
    level = clean.sum(2, keepdims=True)
    total = np.nansum(np.where(full[..., None], seen, 0.0), 2)
    factor = np.ones((*seen.shape[:2], 1))
    for kind in (weekend, ~weekend):
        days = (full & kind).sum(1)[:, None, None]
        sold = np.sum(total * (full & kind), 1)[:, None, None]
        own = (sold + 4 * level) / np.maximum((days + 4) * level, 1e-9)
        factor = np.where(kind[..., None], own, factor)
    found = {
        "hour mean of the month": every,
        "hour mean of days that never sold out": clean,
        "the same times a weekend factor": clean * factor,
    }
    shape = (len(series.store), DAYS, HOURS)
    return {name: np.broadcast_to(f, seen.shape).reshape(shape) for name, f in found.items()}


def hour_profiles(sale: Hours, seen: Hidden) -> Float[np.ndarray, "S 16"]:
    """Return the share of each hour in a usual day of each product, shrunk to the store's.

    Hours are compared within days, as those that are seen may be from busier days than others.
    """
    sold, profile = np.where(seen, sale, 0.0), np.full((len(sale), HOURS), 1 / HOURS)
    for _ in range(8):
        share, total = (seen * profile[:, None]).sum(-1), sold.sum(-1)
        level = np.maximum(total.sum(1) / np.maximum(share.sum(1), 1e-9), 1e-9)[:, None]
        day = (total + 0.5 * level) / (share + 0.5)
        by_hour, expected = sold.sum(1), (seen * day[..., None]).sum(1)
        store = by_hour.sum(0) / np.maximum(expected.sum(0), 1e-9)
        store = store / max(store.sum(), 1e-9) if store.any() else np.full(HOURS, 1 / HOURS)
        extra = PSEUDO_SALES * level
        profile = (by_hour + extra * store) / np.maximum(expected + extra, 1e-9)
        profile /= np.maximum(profile.sum(1, keepdims=True), 1e-9)
    return profile


def log_price(discount: Float[np.ndarray, "S 90"]) -> Float[np.ndarray, "S 90"]:
    """Return the log of the price, relative to the full one; zero stands for no price at all."""
    return np.log(np.where(discount > 0.0, np.clip(discount, 0.1, 1.0), 1.0))


def recover(
    series: Series, hidden: Hidden
) -> tuple[Hours, tuple[Float[np.ndarray, "S 90"], Float[np.ndarray, "S 90"]]]:
    """Return amounts for the hidden hours of one store, and 90 % intervals of daily totals.

    Products of which no sale was seen have nothing to be learned from, and are put back as zero.
    """
    seen = ~(hidden | series.stockout)
    sold = np.where(seen, series.sale, 0.0).sum(-1)
    recovered, ends = np.zeros(hidden.shape), (sold + series.closed, sold + series.closed)
    known = sold.sum(1) > 0.0
    if not known.any():
        return recovered, ends
    own = series[known]
    profile = hour_profiles(own.sale, seen[known])[:, None]
    share = np.clip((seen[known] * profile).sum(-1), LEAST_SHARE, 1.0)
    columns = {
        "product": np.repeat(own.product, DAYS),
        "day": own.day.ravel(),
        "sale": sold[known].ravel(),
        "share": np.where(seen[known].all(-1), 1.0, share).ravel(),
        "ran_out": own.stockout.any(-1).astype(float).ravel(),
        "discount": log_price(own.discount).ravel(),
        "holiday": np.tile(own.holiday.max(0), len(own.product)),
    }
    model = MOCGP(likelihood="tweedie").fit(
        columns, outputs="sale", by="product", time="day", inputs="holiday", exposure="share",
        own_inputs=["ran_out", "discount"],
    )  # fmt: skip
    order = [model.output_names_.index(str(product)) for product in own.product]
    found = model.imputation()
    rest = np.maximum(found.mean.T[order] - sold[known], 0.0)
    of_hour = hidden[known] * profile
    of_hour /= np.maximum(of_hour.sum(-1, keepdims=True), 1e-9)
    recovered[known] = rest[..., None] * of_hour
    ends = tuple(end.copy() for end in ends)
    drawn = np.quantile(found.sample(DRAWS), (0.05, 0.95), axis=0)
    for end, quantile in zip(ends, drawn, strict=True):
        end[known] = quantile.T[order] + own.closed
    return recovered, ends


def one_store(series: Series, hidden: Hidden) -> tuple[Totals, float, str]:
    """Recover and score one store; return also its CPU seconds, and what went wrong, if anything.

    A store whose fit fails has the baseline's amounts, and intervals that hold nothing.
    """
    started, failure = time.process_time(), ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = score(series, hidden, *recover(series, hidden))
        except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            failure = f"store {series.store[0]}: {error}"
            *_, last = baselines(series, hidden).values()
            found = score(series, hidden, last)
    return found, time.process_time() - started, failure


def run(
    files: Sequence[Path],
    stores: int | None = None,
    rate: float = 0.3,
    seed: int = 1024,
    jobs: int | None = None,
    split: str | None = None,
) -> Iterator[str]:
    """Recover the hidden hours of every store; yield the lines of a table, the score last."""
    series = load(files, stores, split)
    hidden = hide(series, rate, seed)
    each = [series.store == store for store in np.unique(series.store)]
    judged = [hidden[own].any() for own in each]
    each = [own for own, wanted in zip(each, judged, strict=True) if wanted]
    yield f"{len(series.store)} series of {len(each)} stores, {hidden.mean():.1%} of hours hidden"
    yield f"{'':40}{'WAPE %':>8}{'WPE %':>8}"
    for name, wape, wpe in PUBLISHED:
        yield f"{name:40}{wape:8.2f}{wpe:+8.2f}"
    for name, recovered in baselines(series, hidden).items():
        found = score(series, hidden, recovered)
        yield f"{name:40}{found.wape:8.2f}{found.wpe:+8.2f}"
    started = time.time()
    tasks = (delayed(one_store)(series[own], hidden[own]) for own in each)
    results = Parallel(n_jobs=jobs or 1)(tasks)
    totals, seconds, failures = zip(*results, strict=True)
    yield from filter(None, failures)
    total = added(totals)
    yield f"{'ours':40}{total.wape:8.2f}{total.wpe:+8.2f}"
    if len(totals) > 1:
        # Of a ratio of sums over stores.
        away = [(t.absolute - total.absolute / total.size * t.size) for t in totals]
        error = 100 * np.std(away, ddof=1) * np.sqrt(len(away)) / total.size
        yield f"standard error of WAPE over {len(totals)} stores {error:.2f}"
    yield f"{np.mean(seconds):.0f} CPU seconds a store"
    scores = f"WAPE {total.wape:.2f} WPE {total.wpe:.2f} held {total.coverage:.2f}"
    yield f"{scores} seconds {time.time() - started:.0f}"


def largest(files: Sequence[Path], count: int) -> Series:
    """Return the series of largest volume in the days of training, largest first."""

    def top(series: Series) -> Series:
        past = slice(0, TRAINING_DAYS)
        volume = series.sale[:, past].sum((1, 2)) + series.closed[:, past].sum(1)
        return series[np.argsort(-volume, kind="stable")[:count]]

    parts = [top(load([file])) for file in files]
    return top(Series(*map(np.concatenate, zip(*parts, strict=True))))


def availability(group: Series, days: slice) -> Float[np.ndarray, "S 90"]:
    """Return the share of each day's demand that could be served, by what is known of some days.

    Hours are weighted by their profiles. An hour that is flagged counts, too, as sales in such
    hours say: a shelf is rarely empty for all of its first and last one.
    """
    seen, sale = ~group.stockout, group.sale[:, days]
    profile = hour_profiles(sale, seen[:, days])[:, None]
    open_share = (seen * profile).sum(-1)
    sold = np.where(seen[:, days], sale, 0.0).sum((1, 2))
    level = sold / np.maximum(open_share[:, days].sum(1), 1e-9)
    missed = float(np.sum(level * (1.0 - open_share[:, days]).sum(1)))
    flagged = float(sale[~seen[:, days]].sum()) / max(missed, 1e-9)
    share = open_share + min(flagged, 1.0) * (1.0 - open_share)
    return np.where(seen.all(-1), 1.0, np.clip(share, LEAST_SHARE, 1.0))


def thinned(
    demand: Float[np.ndarray, "K S H"],
    share: Float[np.ndarray, "S H"],
    mean: Float[np.ndarray, "S H"],
    dispersion: Float[np.ndarray, "S H"],
    power: Float[np.ndarray, "S H"],
) -> Float[np.ndarray, "K S H"]:
    """Draw which part of the demand of a day comes in a share of it.

    Demand is a sum of gamma amounts (`Tweedie`), as many as it has typical ones, and each comes in
    that share with the same probability.
    """
    rng, shape = np.random.default_rng(0), (2.0 - power) / (power - 1.0)
    amount = dispersion * (2.0 - power) * mean ** (power - 1.0)
    count = np.maximum(np.round(demand / amount), 1.0).astype(int)
    kept = rng.binomial(count, np.broadcast_to(share, count.shape))
    part = rng.beta(np.maximum(shape * kept, 1e-9), np.maximum(shape * (count - kept), 1e-9))
    return demand * np.where(kept == count, 1.0, np.where(kept == 0, 0.0, part))


def forecast_group(group: Series) -> tuple[Float[np.ndarray, "K S H"], float]:
    """Return draws of the sales of some series on the test days, and CPU seconds.

    Series of which no sale was seen are forecast to have none.
    """
    started, past, ahead = time.process_time(), slice(0, TRAINING_DAYS), slice(TRAINING_DAYS, DAYS)
    sold = group.sale.sum(-1) + group.closed
    found, known = np.zeros((DRAWS, len(sold), DAYS - TRAINING_DAYS)), sold[:, past].any(1)
    if not known.any():
        return found, 0.0
    group, sold = group[known], sold[known]
    share = availability(group, past)
    columns = {
        "series": np.repeat(np.arange(len(sold)), DAYS).reshape(sold.shape),
        "day": group.day,
        "sale": sold,
        "share": share,
        "ran_out": group.stockout.any(-1).astype(float),
        "discount": log_price(group.discount),
        "holiday": np.broadcast_to(group.holiday.max(0), sold.shape),
    }
    train = {name: column[:, past].ravel() for name, column in columns.items()}
    test = {name: column[:, ahead].ravel() for name, column in columns.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MOCGP(likelihood="tweedie").fit(
            train, outputs="sale", by="series", time="day", inputs="holiday", exposure="share",
            own_inputs=["ran_out", "discount"],
        )  # fmt: skip
        drawn = np.asarray(model.sample(test, DRAWS, random_state=0)["sale"])
        theta = model.predict_distribution(test).parameters().values()
    shape = share[:, ahead].shape
    # A row for each series and day, with the parameters of every series.
    order = np.repeat([model.output_names_.index(str(k)) for k in range(len(sold))], shape[1])
    own = (parameter[np.arange(len(order)), order].reshape(shape) for parameter in theta)
    found[:, known] = thinned(drawn.reshape(DRAWS, *shape), share[:, ahead], *own)
    return found, time.process_time() - started


def forecast(files: Sequence[Path], count: int = 1000, jobs: int | None = None) -> Iterator[str]:
    """Forecast the series of largest volume; yield lines, the score last."""
    series, started = largest(files, count), time.time()
    # What stores sell of one product has a season and a price in common.
    series = series[np.lexsort((series.store, series.product))]
    count = len(series.store)
    groups = [series[own] for own in np.array_split(np.arange(count), -(-count // GROUP))]
    results = Parallel(n_jobs=jobs or 1)(delayed(forecast_group)(group) for group in groups)
    draws = np.concatenate([drawn for drawn, _ in results], axis=1)
    sold = series.sale.sum(-1) + series.closed
    truth, last = sold[:, TRAINING_DAYS:], sold[:, TRAINING_DAYS - 7 : TRAINING_DAYS]
    naive = np.abs(np.tile(last, 2) - truth)
    ordered = np.sort(draws, axis=0)
    # E|X - X'| of K draws, from their order.
    rank = (2 * np.arange(1, DRAWS + 1) - DRAWS - 1)[:, None, None]
    apart = 2.0 * np.sum(rank * ordered, axis=0) / DRAWS**2
    crps = np.mean(np.abs(draws - truth), axis=0) - 0.5 * apart
    ends = np.quantile(draws, (0.03, 0.25, 0.75, 0.97), axis=0)
    held94, held50 = ((ends[k] <= truth) & (truth <= ends[-1 - k]) for k in (0, 1))

    def scores(own: Any) -> str:
        ratio = crps[own].sum() / naive[own].sum()
        return f"ratio {ratio:.3f} held94 {held94[own].mean():.2f} held50 {held50[own].mean():.2f}"

    yield f"{count} series, {sum(s for _, s in results):.0f} CPU seconds"
    yield "published (numpyro_forecast): CRPS 1.2159, seasonal naive 2.3872, ratio 0.509"
    for remainder, side in enumerate(SPLIT):
        own = series.store % 2 == remainder
        if own.any():
            yield f"{side} stores, {own.sum()} series: {scores(own)}"
    yield f"CRPS {crps.mean():.4f}, seasonal naive {naive.mean():.4f}"
    yield f"{scores(slice(None))} seconds {time.time() - started:.0f}"
