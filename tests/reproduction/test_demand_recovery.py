"""Hidden hours are those of the judge, scores are its scores, and odd stores do not stop a run."""

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

from reproduction.demand_recovery import (
    DAYS,
    HOURS,
    SPLIT,
    TRAINING_DAYS,
    Series,
    added,
    availability,
    baselines,
    hide,
    hour_profiles,
    load,
    one_store,
    score,
    thinned,
)

RNG = np.random.default_rng(0)


def series(sale, stockout=None):
    """One store of products without prices or holidays."""
    count = len(sale)
    days = np.datetime64("2024-03-28", "s") + np.arange(DAYS) * np.timedelta64(1, "D")
    return Series(
        np.zeros(count, int), np.arange(count), np.tile(days, (count, 1)), sale,
        np.zeros((count, DAYS)), np.zeros(sale.shape, bool) if stockout is None else stockout,
        np.ones((count, DAYS)), np.zeros((count, DAYS)),
    )  # fmt: skip


def test_hours_and_scores_are_the_judges():
    data = Path(os.environ.get("CENSORED_GP_DATA", "../shared/data"))
    tool = data.parent / "tools" / "frn_recovery.py"
    file = data / "freshretailnet50k" / "city_08.parquet"
    if not (tool.exists() and file.exists()):
        pytest.skip(f"{tool} or {file} is not there")
    spec = importlib.util.spec_from_file_location("judge", tool)
    judge = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(judge)
    theirs, ours = judge.load([str(file)]), load([file])
    assert [set(load([file], split=side).store % 2) for side in SPLIT] == [{0}, {1}]
    np.testing.assert_array_equal(load([file], 1).product, judge.load([str(file)], 1).product)
    hidden = hide(ours)
    np.testing.assert_array_equal(hidden, judge.hide(theirs))
    both = baselines(ours, hidden).values(), judge.baselines(theirs, hidden).values()
    for mine, other in zip(*both, strict=True):
        np.testing.assert_allclose(mine, other)
        found, expected = score(ours, hidden, mine), judge.score(theirs, hidden, mine)
        assert (found.wape, found.wpe) == pytest.approx((expected["WAPE"], expected["WPE"]))


def test_totals_of_stores_add_up():
    sale = RNG.gamma(1.0, size=(4, DAYS, HOURS))
    every = series(sale)
    hidden = hide(every)
    parts = [score(every[k : k + 2], hidden[k : k + 2], np.ones((2, DAYS, HOURS))) for k in (0, 2)]
    assert added(parts) == pytest.approx(score(every, hidden, np.ones(sale.shape)))


def test_profiles_are_those_of_the_hours_that_were_seen():
    shape = np.arange(1.0, HOURS + 1) / np.sum(np.arange(1.0, HOURS + 1))
    level = np.where(np.arange(DAYS) % 2, 100.0, 300.0)[:, None]
    seen = np.ones((1, DAYS, HOURS), bool)
    seen[:, ::2, 8:] = False  # busy days sell out at noon
    sale = (level * shape)[None]
    (found,) = hour_profiles(sale, seen)
    means = np.mean(sale, axis=1, where=seen)[0]
    assert np.abs(found - shape).sum() < 0.8 * np.abs(means / means.sum() - shape).sum()


def test_an_hour_that_is_flagged_is_available_as_far_as_it_sold():
    sale = np.ones((1, DAYS, HOURS))
    stockout = np.zeros(sale.shape, bool)
    stockout[:, ::2, 8:] = True
    for sold, share in ((0.0, 0.5), (0.2, 0.6)):
        sale[stockout] = sold
        found = availability(series(sale, stockout), slice(0, TRAINING_DAYS))
        np.testing.assert_allclose(found[0, :2], [share, 1.0])


def test_sales_are_the_share_of_demand_on_average_and_all_of_it_or_nothing_at_the_ends():
    demand = RNG.gamma(2.0, 3.0, size=(4000, 1, 3)) * (RNG.random((4000, 1, 3)) < 0.9)
    law = (np.full((1, 3), theta) for theta in (6.0, 0.4, 1.4))
    sold = thinned(demand, np.array([[0.0, 0.3, 1.0]]), *law)
    np.testing.assert_array_equal(sold[..., 0], 0.0)
    np.testing.assert_array_equal(sold[..., 2], demand[..., 2])
    assert np.all((sold >= 0.0) & (sold <= demand))
    # Five standard errors.
    assert sold[..., 1].mean() == pytest.approx(0.3 * demand[..., 1].mean(), rel=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["one product", "nothing sold", "always sold out"])
def test_odd_stores_are_scored(kind):
    sale = RNG.poisson(0.5, size=(1 if kind == "one product" else 2, DAYS, HOURS)).astype(float)
    if kind == "nothing sold":
        sale[:] = 0.0
    stockout = np.zeros(sale.shape, bool)
    stockout[-1] = kind == "always sold out"
    store = series(sale, stockout)
    found, _, failure = one_store(store, hide(store))
    assert not failure
    assert found.days > 0
    assert found.error == 0.0 if kind == "nothing sold" else found.wape < 100.0
