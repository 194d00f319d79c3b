import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from censored_gp.data.inputs import Columns, phase, read_inputs
from censored_gp.data.time import spacing
from censored_gp.kernels import (
    RBF,
    Block,
    Constant,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
    White,
)
from censored_gp.kernels.base import distinct_rows

STATIONARY = [RBF, Matern12, Matern32, Matern52, RationalQuadratic]
TABLE = Columns(("time", "rain"), (True, False), (np.datetime64("2018-01-01"), 0.0))


def times(number):
    names = tuple(f"t{c}" for c in range(number))
    return Columns(names, (True,) * number, (np.datetime64("2020-01-01"),) * number)


@pytest.mark.parametrize("asked", ["rain", 1, ["rain"], ("rain",), np.int64(1)])
def test_columns_by_name_or_index(asked):
    X = np.random.default_rng(1).normal(size=(6, 2))
    resolved = Matern32(0.4, columns=asked).resolve(TABLE)
    assert resolved.columns == (1,)
    np.testing.assert_allclose(resolved(X, X), Matern32(0.4)(X[:, 1:], X[:, 1:]), rtol=1e-14)
    np.testing.assert_array_equal(resolved(X + np.array([5.0, 0.0]), X), resolved(X, X))


def test_no_columns_means_all_of_them():
    assert RBF(1.0).resolve(TABLE).columns == (0, 1)
    assert (RBF(1.0) + White(columns="rain")).resolve(TABLE).terms[1].columns == (1,)


def test_resolving_twice_is_resolving_once():
    once = (Periodic("7d", "2h", columns="time") + Linear(columns="rain")).resolve(TABLE)
    assert repr(once.resolve(TABLE)) == repr(once)


def test_durations_become_hours():
    assert float(RBF("90min", columns="time").resolve(TABLE).lengthscale) == 1.5
    assert Periodic("7d", 0.1, columns="time").resolve(TABLE).period == 168.0
    mixed = RBF(["2d", 3.0]).resolve(TABLE)
    np.testing.assert_array_equal(mixed.lengthscale, [48.0, 3.0])
    assert float(Linear("1w", columns=0).resolve(TABLE).scale) == 168.0


def test_a_duration_as_periodic_lengthscale_is_the_width_of_details():
    x = np.array([[0.0], [0.01]])
    narrow = Periodic("1d", "30min", columns="time").resolve(TABLE)
    expected = RBF("30min", columns="time").resolve(TABLE)
    np.testing.assert_allclose(narrow(x, x), expected(x, x), atol=1e-9)
    both = Periodic("1d", ["30min", 0.2]).resolve(times(2))
    np.testing.assert_allclose(both.lengthscale, [2 * np.pi * 0.5 / 24, 0.2])


BAD_KERNELS = {
    "zero period": (lambda: Periodic(0), r"`period` of Periodic .*got 0\."),
    "zero duration": (lambda: Periodic("0d"), r"`period`.*got '0d'"),
    "no unit": (lambda: Periodic("7"), r"'7'"),
    "negative": (lambda: RBF(-1.0), r"`lengthscale` of RBF .*got -1\."),
    "not finite": (lambda: Matern12(np.inf), r"`lengthscale` of Matern12 .*got inf"),
    "one of two": (lambda: RBF([1.0, np.nan]), r"got \[1, nan\]"),
    "one duration of two": (lambda: RBF(["1d", -2.0]), r"got -2"),
    "no number": (lambda: RBF({}), r"`lengthscale`.*got \{\}"),
    "no duration": (lambda: Constant("1d"), r"`variance` of Constant .*got '1d'"),
    "absent name": (lambda: RBF(columns="snow").resolve(TABLE), r"RBF\(.*'snow'.*'time', 'rain'"),
    "absent index": (lambda: RBF(columns=2).resolve(TABLE), r"column 2"),
    "negative index": (lambda: RBF(columns=-1).resolve(TABLE), r"column -1"),
    "bool index": (lambda: RBF(columns=True).resolve(TABLE), r"column True"),
    "no period": (lambda: Periodic(None), r"`period` of Periodic .*got None"),
    "no columns": (lambda: RBF(columns=[]), r"`columns` of RBF .*got \[\]"),
    "a column twice": (lambda: Linear(columns=["a", "a"]), r"`columns`.*got \['a', 'a'\]"),
    "twice by name": (lambda: RBF(columns=["time", 0]).resolve(TABLE), r"got \[0, 0\]"),
    "in a sum": (lambda: (RBF() + White(columns="snow")).resolve(TABLE), r"White.*'snow'"),
    "duration of rain": (lambda: Periodic("1d", columns="rain").resolve(TABLE), r"'1d'.*'rain'"),
    "duration on all": (lambda: RBF("1d").resolve(TABLE), r"'rain'"),
    "sizes": (lambda: RBF([1, 2, 3]).resolve(TABLE), r"`lengthscale`.*'time', 'rain'.*got 3"),
    "duration sizes": (lambda: RBF(["1d"]).resolve(TABLE), r"`lengthscale`.*got 1"),
    "not filled": (lambda: RBF()(np.eye(2), np.eye(2)), r"RBF\(.*lengthscale"),
    "not resolved": (
        lambda: (RBF(1.0, columns="rain") * White()).diagonal(np.eye(2)),
        r"columns.*resolve",
    ),
}


@pytest.mark.parametrize(("make", "message"), BAD_KERNELS.values(), ids=BAD_KERNELS)
def test_bad_kernels_are_refused_by_field_and_value(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_weekly_kernel_on_hourly_data_starts_able_to_follow_hours():
    X = np.arange(24.0 * 28)[:, None]
    weekly = Periodic(168.0).fill_lengthscales(X)
    assert float(weekly.lengthscale) == pytest.approx(2 * np.pi * 2.5 / 168)
    correlation = np.asarray(weekly(X[:1], X[[1, 6]]))[0]
    assert correlation[0] > 0.9
    assert correlation[1] < 0.1


@pytest.mark.parametrize(("step", "expected"), [(0.01, 0.05), (1.0, 0.654498), (6.0, 1.0)])
def test_periodic_start_stays_within_reason(step, expected):
    X = np.arange(0.0, 100.0, step)[:, None]
    assert float(Periodic(24.0).fill_lengthscales(X).lengthscale) == pytest.approx(expected)


def test_starting_lengthscales_follow_the_spread_of_each_column():
    X = np.random.default_rng(2).normal(size=(500, 2)) * [1e-6, 1e6]
    filled = RBF().fill_lengthscales(X)
    np.testing.assert_allclose(filled.lengthscale, np.sqrt(2) * X.std(axis=0))
    shifted = Matern52(columns=1).fill_lengthscales(X + 1e3)
    assert float(shifted.lengthscale) == pytest.approx(X[:, 1].std())
    variance = Linear().fill_lengthscales(X).diagonal(X)
    assert float(jnp.mean(variance)) == pytest.approx(1.0)


@pytest.mark.parametrize("kernel", [*(k() for k in STATIONARY), Periodic(24.0), Linear()])
@pytest.mark.parametrize("X", [np.zeros((5, 2)), np.zeros((1, 2)), np.full((1, 1), 3e5)])
def test_starting_values_are_usable_for_constant_columns_and_one_row(kernel, X):
    filled = kernel.fill_lengthscales(X)
    assert all(np.all(np.isfinite(v) & (v > 0)) for v in jax.tree.leaves(filled))
    assert np.all(np.isfinite(filled(X, X)))


def test_only_what_is_open_is_filled():
    X = np.arange(10.0)[:, None]
    given = RBF(0.3) + Periodic(5.0, 0.2) * Constant(2.0) + White()
    assert repr(given.fill_lengthscales(X)) == repr(given)
    assert "None" not in repr((RBF() * Periodic(5.0) + Linear()).fill_lengthscales(X))


def test_spacing_is_the_typical_step():
    assert spacing(np.array([3.0, 0.0, 1.0, 2.0, 2.0, 100.0])) == 1.0
    assert spacing(np.array([5.0, 5.0])) == 0.0


def representatives_by_loop(kernel, X):
    """The slow twin: a row is new if no row kept so far has the same covariances with all rows."""
    gram, kept = np.asarray(eqx.filter_jit(kernel)(X, X)), []
    for n in range(len(X)):
        if not any(np.allclose(gram[n], gram[m], atol=1e-6, rtol=0) for m in kept):
            kept.append(n)
    return kept


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(1.0),
        Periodic(4.0, 0.5, columns=0),
        Periodic(4.0, 0.5, columns=0) + RBF(1.0, columns=1),
        Periodic(4.0, 0.5, columns=0) * Periodic(6.0, 0.5, columns=0),
        Constant(2.0),
        White(columns=1),
        Block(4.0, columns=0),
        Block(4.0, columns=0) * Periodic(4.0, 0.5, columns=0),
        Constant(1.0) + Matern12(1.0, columns=1),
    ],
    ids=repr,
)
def test_distinct_rows_are_those_the_kernel_tells_apart(kernel):
    X = np.stack([np.arange(30.0), np.arange(30.0) % 5], axis=1)
    assert distinct_rows(kernel, X).tolist() == representatives_by_loop(kernel, X)


@pytest.mark.parametrize("start", [0.0, -400.0, 1e5 + 0.3, 4e5, 1.7e9])
@pytest.mark.parametrize(("period", "number"), [(24.0, 24), (168.0, 168)])
def test_hourly_data_have_as_many_phases_as_hours(start, period, number):
    X = (start + np.arange(2000.0))[:, None]
    np.testing.assert_array_equal(distinct_rows(Periodic(period, 1.0), X), np.arange(number))


@pytest.mark.parametrize("period", [0.1, 1 / 3, 1.0, 2 * np.pi, 8766.0, 1024.0, 1e-6, 1e6])
@pytest.mark.parametrize("parts", [7, 60, 1024])
def test_phases_survive_rounding(period, parts):
    rng = np.random.default_rng(3)
    part, turns = rng.integers(parts, size=4000), rng.integers(-5000, 5000, size=4000)
    X = (period * (turns + part / parts))[:, None]
    kernel = Periodic(period, 1.0)
    assert len(distinct_rows(kernel, X)) == len(np.unique(part))
    canonical = kernel.canonical(X)[:, 0]
    np.testing.assert_allclose(canonical, period * part / parts, atol=3e-9 * period)
    assert np.all((canonical >= 0) & (canonical < period))


def test_phases_just_below_the_period_are_zero():
    x = np.array([0.0, 24.0, 24.0 - 1e-12, -1e-12, 1e-12, 48.0 + 1e-10, 23.9])
    np.testing.assert_allclose(phase(x, 24.0), [0, 0, 0, 0, 0, 0, 23.9], atol=1e-7)
    assert len(np.unique(phase(x, 24.0))) == 2


def test_canonical_columns():
    X = np.stack([np.arange(10.0), np.ones(10), -np.zeros(10)], axis=1)
    daily, slow = Periodic(4.0, 1.0, columns=0), RBF(1.0, columns=0)
    np.testing.assert_array_equal(daily.canonical(X)[:, 0], X[:, 0] % 4)
    np.testing.assert_array_equal((daily * slow).canonical(X), X[:, :1])
    np.testing.assert_array_equal(RBF(1.0).canonical(X), X)
    assert (daily + daily + Periodic(6.0, 1.0, columns=0)).canonical(X).shape == (10, 2)
    assert Constant().canonical(X).shape == (10, 0)
    assert distinct_rows(Constant(), X[:0]).shape == (0,)


def test_inducing_at_the_distinct_rows_is_exact():
    """k(X, Z) k(Z, Z)⁻¹ k(Z, X) = k(X, X) with Z the distinct rows."""
    X = np.stack([np.arange(120.0), np.arange(120.0) // 40], axis=1)
    kernel = Periodic(24.0, 0.6, columns=0) * RBF(1.0, columns=1)
    kept = distinct_rows(kernel, X)
    full = np.asarray(eqx.filter_jit(kernel)(X, X))
    cross, gram = full[:, kept], full[np.ix_(kept, kept)]
    assert len(kept) == 72
    np.testing.assert_allclose(cross @ np.linalg.solve(gram, cross.T), full, atol=1e-8)


def test_aligned_kernels_see_the_same_periods_from_another_origin():
    """Times from noon on have other zeros than the same times with a day before them."""
    times = np.datetime64("2024-06-03T12") + np.arange(48)
    early = np.append(np.datetime64("2024-06-02T07"), times)
    (inputs, columns), (shifted, others) = read_inputs({"t": times}), read_inputs({"t": early})
    kernel = (Block("1d", columns="t") + Block("1d", columns="t") * RBF("7d")).resolve(columns)
    gram = np.asarray(kernel(inputs, inputs))
    moved = np.asarray(kernel.aligned(others)(shifted[1:], shifted[1:]))
    np.testing.assert_allclose(moved, gram, rtol=1e-12)
    assert not np.allclose(np.asarray(kernel(shifted[1:], shifted[1:])), gram)
