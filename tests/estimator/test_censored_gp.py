"""The estimator does what scikit-learn's users expect, and says what it learned."""

import pickle
import re
import warnings
from typing import Any

import jax
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
)

from censored_gp import MOCGP, CensoredGP, Observations, Prediction, load
from censored_gp.estimator import censored_gp, progress
from censored_gp.estimator.censored_gp import reported
from censored_gp.kernels import RBF, Block, Matern32, Periodic
from censored_gp.likelihoods import Gaussian
from censored_gp.prediction.metrics import likelihood_r2

CAP = (1.6, 1.5)


def fresh(model) -> Any:
    """An unfitted copy (scikit-learn says that it may be many things)."""
    return clone(model)


class World:
    """Two noisy waves that cannot be seen above a cap."""

    def __init__(self, n=40):
        rng = np.random.default_rng(0)
        self.X = np.linspace(0, 6, n)[:, None]
        self.clean = 1 + np.column_stack([np.sin(self.X[:, 0]), np.sin(self.X[:, 0] + 0.3)])
        self.truth = self.clean + 0.1 * rng.standard_normal((n, 2))
        self.censored = self.truth >= CAP
        self.y = np.minimum(self.truth, CAP)


@pytest.fixture(scope="module")
def world():
    return World()


@pytest.fixture(scope="module")
def pair(world):
    """Two coupled outputs with a gap, fitted."""
    y = world.y.copy()
    y[3, 0] = np.nan
    return CensoredGP(heteroscedastic=False).fit(world.X, y, world.censored)


@pytest.fixture(scope="module")
def single(world):
    """One flat output, fitted."""
    model = CensoredGP(heteroscedastic=False, random_state=0)
    return model.fit(world.X, world.y[:, 0], world.censored[:, 0])


def test_names_of_columns_are_kept_and_compared():
    model = CensoredGP(heteroscedastic=False, max_iterations=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check_dataframe_column_names_consistency("CensoredGP", model)


def test_bounds_lift_the_prediction_over_the_cap(world, single):
    hidden = world.censored[:, 0]
    naive = CensoredGP(heteroscedastic=False, use_censoring=False).fit(
        world.X, world.y[:, 0], hidden
    )

    def error(model):
        return np.abs(model.predict(world.X) - world.clean[:, 0])[hidden].mean()

    assert single.predict(world.X)[hidden].max() > CAP[0] + 0.2
    assert error(single) < 0.5 * error(naive)


def test_flags_bounds_and_observations_say_the_same(world, single):
    y, flags = world.y[:, 0], world.censored[:, 0]
    upper = np.where(flags, np.inf, np.nan)
    with_bounds = fresh(single).fit(world.X, y, upper=upper)
    only_bounds = fresh(single).fit(world.X, lower=y, upper=np.where(flags, np.inf, y))
    observations = fresh(single).fit(world.X, Observations.from_flags(y, flags))
    for other in (with_bounds, only_bounds, observations):
        assert other.elbo_ == single.elbo_
    column = fresh(single).fit(world.X, Observations.from_flags(y[:, None], flags[:, None]))
    assert with_bounds.predict(world.X).shape == observations.predict(world.X).shape == y.shape
    assert column.predict(world.X).shape == (len(y), 1)


def test_results_have_the_shape_of_y(world, single, pair):
    for model, shape in ((single, (40,)), (pair, (40, 2))):
        mean, std = model.predict(world.X, return_std=True)
        assert mean.shape == std.shape == shape
        assert np.all(std > 0)
    assert pair.predict_distribution(world.X).names == ("y0", "y1")
    assert single.quantile(world.X, 0.5).shape == (40,)
    assert single.quantile(world.X, [0.1, 0.9]).shape == (2, 40)
    assert single.log_density(world.X, single.predict(world.X)).shape == (40,)


def test_quantiles_invert_the_cdf_and_bound_the_interval(world, single):
    low, high = single.interval(world.X, 0.8)
    np.testing.assert_allclose(single.cdf(world.X, low), 0.1, atol=1e-6)
    np.testing.assert_allclose(single.cdf(world.X, high), 0.9, atol=1e-6)
    assert np.all(single.cdf(world.X, -1e6) == 0)


def test_the_density_integrates_to_one(single):
    y = np.linspace(-4, 6, 801)
    density = np.exp(single.log_density(np.full((801, 1), 2.0), y))
    assert np.trapezoid(density, y) == pytest.approx(1.0, abs=1e-6)


def test_samples_follow_the_prediction_and_the_seed(world, single):
    X = world.X[::8]
    drawn = single.sample(X, 4000, random_state=1)
    mean, std = single.predict(X, return_std=True)
    assert np.all(np.abs(drawn.mean(axis=0) - mean) < 5 * std / np.sqrt(4000))
    np.testing.assert_allclose(drawn.std(axis=0), std, rtol=0.1)
    np.testing.assert_array_equal(drawn, single.sample(X, 4000, random_state=1))
    np.testing.assert_array_equal(single.sample(X, 2), single.sample(X, 2))
    generator = np.random.default_rng(3)
    assert not np.array_equal(single.sample(X, 2, generator), single.sample(X, 2, generator))


def test_imputation_keeps_what_is_known(world, pair):
    filled, std = pair.impute(return_std=True)
    exact, hidden = pair.observations_.is_exact, pair.observations_.is_right
    np.testing.assert_allclose(filled[exact], world.y[exact], rtol=1e-12)
    assert np.all(std[exact] == 0)
    assert np.all(std[~exact] > 0)
    assert np.all(filled[hidden] > world.y[hidden])
    mean, spread = pair.predict(world.X, return_std=True)
    assert filled[3, 0] == pytest.approx(mean[3, 0])
    assert std[3, 0] == pytest.approx(spread[3, 0])
    # Of a cell that is known to lie above a bound, less is unknown than of one that is not.
    assert np.all(std[hidden] < spread[hidden])
    np.testing.assert_allclose(pair.imputation().mean[hidden], filled[hidden])


def test_the_score_is_r2_by_likelihood_where_cells_are_censored(world, pair):
    mean, truth = pair.predict(world.X), Observations.exact(world.truth)
    assert pair.score(world.X, truth) == pytest.approx(r2_score(world.truth, mean))
    assert pair.score(world.X, world.truth, censored=False) == pair.score(world.X, truth)
    seen = Observations.from_flags(world.y, world.censored)
    assert pair.score(world.X, world.y, censored=world.censored) == pair.score(world.X, seen)
    assert pair.score(world.X, world.y, capacity=CAP) == pair.score(world.X, seen)
    each = likelihood_r2(pair.predict_distribution(world.X), seen)
    assert pair.score(world.X, seen) == pytest.approx(np.mean(each))
    half = Observations.from_flags(
        np.where([True, False], world.y, world.truth), world.censored & [True, False]
    )
    expected = (each[0] + r2_score(world.truth[:, 1], mean[:, 1])) / 2
    assert pair.score(world.X, half) == pytest.approx(expected)
    weight = np.arange(1.0, 41)
    expected = r2_score(world.truth, mean, sample_weight=weight)
    assert pair.score(world.X, truth, weight) == pytest.approx(expected)
    swapped = pd.DataFrame(world.truth, columns=["y1", "y0"])
    with pytest.raises(ValueError, match=r"Outputs.*'y1', 'y0'.*'y0', 'y1'"):
        pair.score(world.X, swapped, censored=False)
    with_gap = Observations.exact(np.where(np.arange(40)[:, None] == 0, np.nan, world.truth))
    assert pair.score(world.X, with_gap) == pytest.approx(r2_score(world.truth[1:], mean[1:]))


def test_the_bound_is_in_the_units_of_the_outputs(world, single):
    scaled = fresh(single).fit(world.X, 1000 * world.y[:, 0], world.censored[:, 0])
    exact = (~world.censored[:, 0]).sum()
    assert scaled.elbo_ == pytest.approx(single.elbo_ - exact * np.log(1000), abs=1e-6)
    assert scaled.report_.trace[-1] == pytest.approx(scaled.elbo_, abs=1.0)
    np.testing.assert_allclose(scaled.predict(world.X), 1000 * single.predict(world.X), rtol=1e-6)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, dict], ids=lambda f: f.__module__)
def test_frames_of_any_make_give_the_same(world, pair, frame):
    table = frame({"position": world.X[:, 0]})
    outputs = {"a": world.y[:, 0].copy(), "b": world.y[:, 1]}
    outputs["a"][3] = np.nan
    model = fresh(pair).fit(table, frame(outputs), frame({"a": world.censored[:, 0],
                                                          "b": world.censored[:, 1]}))  # fmt: skip
    assert model.output_names_ == ("a", "b")
    assert list(model.feature_names_in_) == ["position"]
    np.testing.assert_allclose(model.predict(table), pair.predict(world.X), rtol=1e-8)


def test_times_may_be_datetimes():
    hours = np.arange(72)
    y = 5 + np.sin(2 * np.pi * hours / 24) + 0.1 * np.random.default_rng(0).standard_normal(72)
    times = np.datetime64("2024-03-01T00", "h") + hours

    def kernel(period, column):
        return Periodic(period, 0.5, columns=column)

    settings: Any = {"heteroscedastic": False}
    as_times = CensoredGP(kernels=kernel("1d", "time"), **settings).fit({"time": times}, y)
    as_hours = CensoredGP(kernels=kernel(24.0, 0), **settings).fit(hours[:, None], y)
    flat = CensoredGP(kernels=kernel("1d", 0), **settings).fit(times, y)
    later = 100 + hours[:24]
    there = np.datetime64("2024-03-01T00", "h") + later
    expected = as_hours.predict(later[:, None])
    np.testing.assert_allclose(expected, 5 + np.sin(2 * np.pi * later / 24), atol=0.2)
    np.testing.assert_allclose(as_times.predict({"time": there}), expected, rtol=1e-6)
    np.testing.assert_allclose(flat.predict(there), expected, rtol=1e-6)
    assert flat.n_features_in_ == 1


def test_couplings_can_be_read(pair):
    parts = pair.coregionalization()
    assert {part.role for part in parts} == {"mean"}
    for part in parts:
        assert part.outputs == ("y0", "y1")
        assert "columns=('x0',)" in part.kernel
        np.testing.assert_allclose(part.matrix, part.matrix.T)
        assert np.linalg.eigvalsh(part.matrix).min() > -1e-9
    total = np.sum([part.matrix for part in parts], axis=0)
    expected = total[0, 1] / np.sqrt(total[0, 0] * total[1, 1])
    correlation = pair.correlations()
    np.testing.assert_allclose(correlation, [[1, expected], [expected, 1]])
    assert expected > 0.5
    with pytest.raises(ValueError, match=r"`role`.*'mean'.*'scale'"):
        pair.correlations("scale")


@pytest.mark.slow
def test_uncoupled_outputs_are_learned_alone(world, single):
    # To the end: how early a climb may stop depends on the number of cells.
    patient = fresh(single).set_params(
        engine_settings={"tolerance": 1e-3, "tolerance_per_cell": 0.0}
    )
    both = fresh(patient).set_params(coupled=False).fit(world.X, world.y, world.censored)
    alone = patient.fit(world.X, world.y[:, 0], world.censored[:, 0])
    np.testing.assert_array_equal(both.correlations(), np.eye(2))
    assert [part.outputs for part in both.coregionalization()] == [("y0",), ("y1",)]
    np.testing.assert_allclose(both.predict(world.X)[:, 0], alone.predict(world.X), atol=2e-3)


def test_outputs_may_have_different_families(world, begin):
    counts = np.random.default_rng(1).poisson(np.exp(world.clean[:, 0])).astype(float)
    y = pd.DataFrame({"level": world.y[:, 0], "count": counts})
    by_name = {"count": "poisson", "level": Gaussian(scale="softplus")}
    task, _ = begin(CensoredGP(by_name), world.X, y)
    assert repr(task.model.likelihoods) == "(Gaussian(scale='softplus'), Poisson())"
    task, _ = begin(CensoredGP(["gaussian", "poisson"]), world.X, y)
    assert repr(task.model.likelihoods) == "(Gaussian(), Poisson())"
    assert task.model.priors["scale"].outputs == (0,)


@pytest.mark.slow
def test_a_gaussian_and_a_poisson_output_are_learned_together(world):
    counts = np.random.default_rng(1).poisson(np.exp(world.clean[:, 0])).astype(float)
    y = np.column_stack([world.y[:, 0], counts])
    model = CensoredGP(["gaussian", "poisson"], RBF(1.0), heteroscedastic=False).fit(world.X, y)
    assert model.score(world.X, y) > 0.5
    assert model.correlations()[0, 1] > 0.5


def test_kernels_by_role_decide_what_varies(world, begin):
    def counts(model):
        task, _ = begin(model, world.X, world.y[:, 0])
        return {role: len(lmc.kernels) for role, lmc in task.model.priors.items()}

    model = CensoredGP(kernels={"mean": [RBF(), Matern32(1.0)], "scale": RBF(3.0)})
    assert counts(model) == {"mean": 2, "scale": 1}
    assert counts(model.set_params(heteroscedastic=False)) == {"mean": 2, "scale": 0}
    student = CensoredGP("student_t", RBF(1.0))
    assert counts(student) == {"mean": 1, "scale": 1, "shape": 0}
    assert counts(student.set_params(kernels={"shape": RBF()}))["shape"] == 1


def test_pipelines_and_searches(world):
    y = world.truth[:, 0]
    model = CensoredGP(kernels=RBF(0.5), heteroscedastic=False)
    grid = {"censoredgp__max_iterations": [1, 20]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        search = GridSearchCV(make_pipeline(StandardScaler(), model), grid, cv=2)
        search.fit(world.X[::-1], y[::-1])
    assert search.best_params_ == {"censoredgp__max_iterations": 20}
    assert search.predict(world.X).shape == (40,)


def test_folds_of_flags_and_of_observations_are_the_same(world):
    model = CensoredGP(kernels=RBF(1.0), heteroscedastic=False)
    flags, y = world.censored[:, 0], world.y[:, 0]
    order = np.random.default_rng(0).permutation(40)
    X, y, flags = world.X[order], y[order], flags[order]
    by_observations = cross_val_score(model, X, Observations.from_flags(y, flags), cv=2)
    halves = (slice(20, 40), slice(0, 20))
    by_hand = [
        fresh(model)
        .fit(X[train], y[train], flags[train])
        .score(X[test], y[test], censored=flags[test])
        for train, test in (halves, halves[::-1])
    ]
    np.testing.assert_allclose(by_observations, by_hand)
    columns = {"outputs": "y", "inputs": "x", "censored": "full"}
    table = pd.DataFrame({"x": X[:, 0], "y": y, "full": flags})
    np.testing.assert_allclose(cross_val_score(model, table, cv=2, params=columns), by_hand)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = cross_val_score(model, X, y, cv=2, params={"censored": flags})
    np.testing.assert_allclose(routed, by_hand)
    with pytest.raises(ValueError, match=r"Observations\.from_flags"):
        cross_val_score(model, X, y, cv=2, params={"censored": flags}, error_score="raise")
    # A capacity that is one number is that of any row.
    capped = cross_val_score(model, X, y, cv=2, params={"capacity": CAP[0]})
    np.testing.assert_allclose(capped, by_hand)


def test_a_search_does_not_choose_to_ignore_censoring():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (90, 1))
    truth = 6 + 2 * np.sin(X[:, 0]) + rng.normal(size=90)
    y, flags = np.minimum(truth, 6.5), truth >= 6.5
    model = CensoredGP(kernels=RBF(1.0), heteroscedastic=False, hyperparameters="fixed")
    search = GridSearchCV(model, {"use_censoring": [False, True]}, cv=3)
    search.fit(X, Observations.from_flags(y, flags))
    assert search.best_params_ == {"use_censoring": True}
    best = search.best_estimator_
    # R² of exact cells alone would have chosen otherwise; this one is close to that of the truth.
    assert r2_score(y[~flags], best.predict(X)[~flags]) < 0.2
    assert search.best_score_ == pytest.approx(best.score(X, truth, censored=False), abs=0.15)


def test_a_fitted_model_can_be_cloned_pickled_and_read(world, single):
    again = pickle.loads(pickle.dumps(single))
    np.testing.assert_array_equal(again.predict(world.X), single.predict(world.X))
    unfitted = fresh(single)
    expected = "CensoredGP(heteroscedastic=False, random_state=0)"
    assert repr(unfitted) == str(unfitted) == expected
    with pytest.raises(NotFittedError):
        unfitted.summary()
    said = str(single)
    for words in ("CensoredGP on 'x0': y Gaussian()", "at least a bound", "The fit converged. ELBO",
                  "mean: sum of", "RBF(lengthscale=", "scale: constant"):  # fmt: skip
        assert words in said


def test_a_fit_that_is_cut_short_says_so(world):
    model = CensoredGP(heteroscedastic=False, max_iterations=1)
    with pytest.warns(ConvergenceWarning, match="raise max_iterations") as caught:
        model.fit(world.X, world.y[:, 0])
    assert caught[0].filename == __file__
    assert model.report_.status == "out of iterations"
    assert model.n_iter_ >= 1


def test_progress_is_told_when_asked(world):
    steps = []

    def tell(stage, done, most, bound):
        return steps.append((stage, done, most, bound))

    model = CensoredGP(heteroscedastic=False, progress=tell).fit(world.X, 100 * world.y[:, 0])
    assert steps[0][1] == 1
    assert all(done <= most for _, done, most, _ in steps)
    np.testing.assert_allclose(steps[-1][-1], model.elbo_, atol=0.1)


def test_without_a_terminal_progress_is_a_line_every_few_seconds(monkeypatch, capsys):
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with reported(True) as tell:
        for step in range(12):
            now = float(step)
            tell("fitting", step, 100, -3.25)
    # Older releases of rich end with an empty line.
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 2
    assert "5 of at most 100" in lines[0]


def test_the_hosts_precision_does_not_matter(world, single):
    with jax.enable_x64(False):
        again = fresh(single).fit(world.X, world.y[:, 0], world.censored[:, 0])
        assert again.elbo_ == single.elbo_
        np.testing.assert_array_equal(again.predict(world.X), single.predict(world.X))


def test_validation_data_are_given_in_the_users_units(world, begin):
    y = 100 * world.y[:, 0]
    settings = {"validation": (world.X[1::2], y[1::2])}
    model = CensoredGP(engine="svi", max_iterations=20, random_state=0, engine_settings=settings)
    _, given = begin(model, world.X[::2], y[::2])
    inputs, outputs = given.validation
    np.testing.assert_allclose(inputs, world.X[1::2] - world.X[::2].mean())
    shift, scale = y[::2].mean(), y[::2].std()
    np.testing.assert_allclose(outputs.lower[:, 0], (y[1::2] - shift) / scale)
    assert given.max_iterations == 20
    assert given.seed == begin(model, world.X[::2], y[::2])[1].seed
    assert model.get_params()["engine_settings"] is settings


ROWS = {
    "slice": slice(4, 14),
    "mask": np.isin(np.arange(24), range(4, 14)),
    "positions": np.arange(4, 14),
    "list": list(range(4, 14)),
}


@pytest.fixture(scope="module")
def mixed():
    """Two outputs with every kind of cell, from a table."""
    x = np.linspace(0.0, 6.0, 24)
    y = np.round(20 + 5 * np.stack([np.sin(x), np.sin(x + 0.4)], axis=1), 1)
    lower, upper = y.copy(), y.copy()
    upper[[4, 5], 0] = upper[[6], 1] = np.inf
    lower[[9, 10], 0] = -np.inf
    lower[12, 1], upper[12, 1] = y[12, 1] - 1, y[12, 1] + 1
    lower[15, 0], upper[15, 0] = -np.inf, np.inf
    ends = {f"{name}_{end}": bound[:, d] for end, bound in (("low", lower), ("high", upper))
            for d, name in enumerate("ab")}  # fmt: skip
    values = {name: np.where(lower == upper, y, np.nan)[:, d] for d, name in enumerate("ab")}
    return CensoredGP(kernels=RBF(1.5), heteroscedastic=False).fit(
        {"x": x, **values, **ends},
        outputs=["a", "b"], inputs="x", lower=["a_low", "b_low"], upper=["a_high", "b_high"],
    )  # fmt: skip


def cells(table):
    return np.stack([table[name] for name in "ab"], axis=1)


@pytest.fixture
def asked(monkeypatch):
    """How many rows each prediction was made for."""
    seen, make = [], Prediction.__init__

    def spied(self, posterior, units, inputs, *others):
        seen.append(len(inputs))
        make(self, posterior, units, inputs, *others)

    monkeypatch.setattr(Prediction, "__init__", spied)
    return seen


@pytest.mark.parametrize("kind", ROWS)
def test_rows_may_be_chosen_in_any_way(mixed, kind):
    every, some = mixed.imputation(), mixed.imputation(ROWS[kind])
    np.testing.assert_allclose(some.mean, every.mean[4:14], rtol=1e-9)
    np.testing.assert_allclose(some.std, every.std[4:14], rtol=1e-6, atol=1e-9)


def test_all_ways_to_fill_gaps_agree(mixed):
    mean, std = (cells(table) for table in mixed.impute(return_std=True))
    exact, found = mixed.observations_.is_exact, mixed.imputation()
    np.testing.assert_allclose(mean, found.mean, rtol=1e-9)
    np.testing.assert_allclose(std[~exact], found.std[~exact], rtol=1e-6)
    assert np.all(std[exact] == 0)
    np.testing.assert_array_equal(mean[exact], mixed.observations_.lower[exact])


def test_intervals_are_of_the_same_distribution(mixed):
    ends = mixed.impute_interval(0.8)
    assert list(ends[0]) == list(ends[1]) == list(mixed.impute())
    known = mixed.observations_
    open_ = ~known.is_exact.all(axis=1)
    twins = mixed.imputation(open_).interval(0.8)
    low, high = map(cells, ends)
    for end, twin in zip((low, high), twins, strict=True):
        np.testing.assert_array_equal(end[known.is_exact], known.lower[known.is_exact])
        np.testing.assert_allclose(end[open_], twin, rtol=1e-9)
        seen = mixed.training_.seen
        assert np.all((seen.lower <= end) & (end <= seen.upper))
    assert np.all((low < high)[~known.is_exact])


def test_nothing_is_computed_for_rows_that_are_exact(mixed, asked, monkeypatch):
    monkeypatch.setattr(censored_gp, "MOST_ROWS", 10)
    mean, std = (cells(table) for table in mixed.impute(return_std=True))
    mixed.impute_interval(0.8)
    assert asked == [7, 7]
    exact = mixed.observations_.is_exact
    np.testing.assert_array_equal(mean[exact], mixed.observations_.lower[exact])
    assert np.all(std[exact] == 0)


def test_lost_demand_asks_only_rows_of_which_something_may_be_lost(mixed, asked):
    with pytest.warns(UserWarning, match="upper bound have no record"):
        mixed.lost_demand(samples=20, random_state=8)
    assert asked == [3]


@pytest.mark.slow
def test_draws_from_the_prior_have_its_variance():
    """Gaussian, one kernel: variance of an output is that of the kernel and of the noise."""
    rng = np.random.default_rng(0)
    X = np.linspace(0, 6, 24)[:, None]
    y = 5 + np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=24)
    model = CensoredGP(heteroscedastic=False).fit(X, y)
    drawn = model.sample_prior(X, 100, random_state=1)
    priors, scale = model.posterior_.model.priors, model.units_.scale[0]
    latent = sum(float((np.asarray(a) ** 2).sum()) for a in priors["mean"].mixing)
    noise = float(np.exp(2 * np.asarray(priors["scale"].mean)[0, 0]))
    np.testing.assert_allclose(drawn.var(axis=0).mean(), scale**2 * (latent + noise), rtol=0.4)
    assert np.array_equal(drawn, model.sample_prior(X, 100, random_state=1))


def test_a_fit_goes_on_from_a_fitted_model():
    """Few more steps, to the same place; a model of something else is refused."""
    rng = np.random.default_rng(0)
    X = np.linspace(0.0, 10.0, 48)[:, None]
    y = np.sin(X) + 0.3 * rng.normal(size=(48, 2))
    before = MOCGP("gaussian", random_state=0).fit(X[:44], y[:44])
    fresh = MOCGP("gaussian", random_state=0).fit(X, y)
    further = MOCGP("gaussian", random_state=0).fit(X, y, start=before)
    # The prior is that of the first fit: rows do not count again with every update.
    centres = (jax.tree.leaves(model.posterior_.centre) for model in (before, further))
    assert all(map(np.array_equal, *centres))
    assert further.elbo_ == pytest.approx(fresh.elbo_, abs=0.5)
    assert len(further.report_.trace) < len(fresh.report_.trace)
    with pytest.raises(ValueError, match="outputs"):
        MOCGP("gaussian").fit(X, y[:, 0], start=before)
    with pytest.raises(NotFittedError):
        MOCGP("gaussian").fit(X, y, start=MOCGP("gaussian"))


def test_days_begin_at_midnight_whenever_the_first_fit_began():
    """New rows have another origin: a value of its own for each day is the same all day long."""
    rng, model = (
        np.random.default_rng(0),
        CensoredGP(
            kernels={"mean": Block("1d", columns="time")},
            heteroscedastic=False,
            hyperparameters="fixed",
        ),
    )
    start: Any = None
    for first in ("2024-06-03T05:00", "2024-06-06T20:00"):
        time = pd.date_range(first, periods=48, freq="h")
        date = (time - time[0].normalize()).days.to_numpy()
        table = pd.DataFrame({"time": time, "y": rng.normal(size=4)[date] + rng.normal(size=48)})
        start = clone(model).fit(table, outputs="y", time="time", start=start)
    by_day = start.predict(table)["y"].groupby(date).agg(["min", "max"])
    np.testing.assert_allclose(by_day["min"], by_day["max"])
    assert np.ptp(by_day["min"]) > 0.1


def test_the_summary_has_sizes_in_the_units_of_the_outputs():
    x = np.arange(20.0)
    y = np.sin(x / 3) + 0.2 * np.random.default_rng(0).standard_normal(20)

    def sizes(unit):
        both = np.column_stack([unit * y, unit * np.exp(y)])
        model = CensoredGP(["gaussian", "log_normal"], RBF(2.0), heteroscedastic=False)
        text = model.fit(x[:, None], both, rounded=0).summary()
        return np.array(
            re.findall(r"y[01] ([-+.e\d]+)", text.split("standard deviation")[1])[:2], float
        )

    # The latent mean of a log-normal is that of a logarithm.
    np.testing.assert_allclose(sizes(1000.0) / sizes(1.0), [1000.0, 1.0], rtol=0.05)


def test_detection_limits_in_text_are_known_wherever_outputs_are_read(tmp_path):
    """Outputs in text say the same of training rows, of other rows and of loaded models."""
    rng = np.random.default_rng(0)
    lead = np.exp(rng.normal(size=30)).round(2)
    words = [f"<{0.7}" if value < 0.7 else str(value) for value in lead]
    table = pd.DataFrame({"x": np.arange(30.0), "lead": words})
    settings = {"likelihood": "log_normal", "hyperparameters": "fixed"}
    model = CensoredGP(**settings).fit(table, outputs="lead", inputs="x")
    flags = np.where(lead < 0.7, -1, 0)
    known = Observations.from_flags(np.maximum(lead, 0.7), flags)
    same = CensoredGP(**settings).fit(table[["x"]], known)
    np.testing.assert_allclose(model.impute()["lead"], same.impute(), rtol=1e-6)
    arrays = CensoredGP(**settings).fit(table[["x"]], table["lead"])
    again = load(model.save(tmp_path / "model.cgp"))
    for rows in (slice(None), slice(0, 9)):
        expected = same.score(table[["x"]][rows], known[rows])
        assert np.isfinite(expected)
        assert model.score(table[rows]) == pytest.approx(expected, rel=1e-6)
        assert again.score(table[rows]) == pytest.approx(expected, rel=1e-6)
        assert arrays.score(table[["x"]][rows], table["lead"][rows]) == pytest.approx(expected)
