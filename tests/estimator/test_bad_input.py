"""Bad input is refused in words before any computing; odd input fits, or warns in words."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from censored_gp import CensoredGP, DataError, Observations
from censored_gp.estimator import censored_gp as estimator
from censored_gp.kernels import RBF, Periodic
from censored_gp.likelihoods import FAMILIES

X = np.arange(6.0)[:, None]
Y = np.array([1.0, 2.0, 3.0, 2.0, 1.0, 2.0])
FRAME = pd.DataFrame({"a": np.arange(6.0), "b": np.arange(6.0) ** 2})


def with_cell(values, row, value):
    """A copy with one cell changed."""
    changed = np.array(values, dtype=float)
    changed[row] = value
    return changed


class Call:
    """A call of fit, and the words its refusal must have."""

    def __init__(self, words, *args, settings=None, **keywords):
        self.words, self.args, self.settings = words, args, settings or {}
        self.keywords = keywords


def held_out(words, validation):
    """A fit of two outputs with validation data."""
    settings = {"engine": "svi", "engine_settings": {"validation": validation}}
    return Call(words, X, FRAME, settings=settings)


REFUSED = {
    "NaN in X": Call([r"Input 'x0', row 2", "finite"], with_cell(X, 2, np.nan), Y),
    "infinity in X": Call([r"Input 'x0', row 4"], with_cell(X, 4, np.inf), Y),
    "NaN in a frame": Call(
        [r"Input 'b', row 1"], FRAME.assign(b=with_cell(FRAME.b, 1, np.nan)), Y
    ),
    "text in X": Call(["Input 'a', row 5"], FRAME.assign(a=[*"12345", "hot"]), Y),
    "flat X": Call(["Expected 2D array, got 1D", r"reshape\(-1, 1\)"], X[:, 0], Y),
    "no rows": Call(["no rows"], np.empty((0, 2)), []),
    "ragged rows": Call(
        ["unequal length, 1 in row 0 and 2 in row 2"],
        [[1.0], [2.0], [3.0, 4.0]],
        Y[:3],
    ),
    "ragged capacity": Call(
        ["Capacity.*unequal length"], X, Y, capacity=[[1], [2, 3]]
    ),
    "ragged dict": Call(["'a' of 2", "'b' of 3"], {"a": [1, 2], "b": [1, 2, 3]}, Y),
    "other rows": Call(["6 row.* of inputs and 5 of outputs"], X, Y[:-1]),
    "no y": Call(["requires y to be passed"], X, None),
    "infinite y": Call(["Output 'y', row 1", "from_bounds"], X, with_cell(Y, 1, np.inf)),
    "lower above upper": Call(
        ["Output 'y', row 3"], X, Y, upper=with_cell(Y, 3, 1.0)
    ),
    "bounds of other shape": Call(
        ["Lower bound.*2 column"], X, Y, lower=FRAME
    ),
    "flags of other shape": Call(["(?i)flag.*5 row.*6 row"], X, Y, Y[:-1] > 1),
    "flags of other names": Call(
        ["(?i)flag.*'b', 'a'.*'a', 'b'"], X, FRAME, FRAME[["b", "a"]] > 100
    ),
    "lower and upper of other names": Call(
        ["(?i)upper bound.*'b', 'a'.*'a', 'b'"],
        X,
        lower=FRAME,
        upper=FRAME[["b", "a"]],
    ),
    "a bound of other names": Call(
        ["(?i)upper bound.*'b', 'a'"], X, FRAME, upper=FRAME[["b", "a"]] + 9
    ),
    "bounds of other names than each other": Call(
        ["(?i)upper bound.*'b', 'a'"],
        X,
        FRAME.to_numpy(),
        lower=FRAME,
        upper=FRAME[["b", "a"]],
    ),
    "a side that is none": Call(
        ["side"], X, Y, Y > 1, side="below"
    ),
    "two sides": Call(
        ["row 0.*"], X, Y, -1 * (Y < 2), side="left"
    ),
    "unknown flag": Call(["Flag of output 'y', row 0"], X, Y, with_cell(Y * 0, 0, 7)),
    "flags and bounds": Call(["bounds and flags"], X, Y, Y > 2, lower=Y),
    "flags for Observations": Call(["Observations and flags"], X, Observations.exact(Y), Y > 2),
    "nothing observed": Call(
        ["Output 'b'"], X, FRAME.assign(b=np.nan)
    ),
    "nothing bounded": Call(
        ["Output 'y'"], X, 0 * Y, Y >= 0, settings={"likelihood": "poisson"}
    ),
    "half a count": Call(
        ["Output 'y', row 2", "2.5", "Poisson"],
        X,
        with_cell(Y, 2, 2.5),
        settings={"likelihood": "poisson"},
    ),
    "negative count": Call(
        ["row 5", "NegativeBinomial"],
        X,
        with_cell(Y, 5, -1),
        settings={"likelihood": "negative_binomial"},
    ),
    "no count between": Call(
        ["row 1", "2.2", "2.8", "Poisson"],
        X,
        with_cell(Y, 1, np.nan),
        lower=with_cell(Y, 1, 2.2),
        upper=with_cell(Y, 1, 2.8),
        settings={"likelihood": "poisson"},
    ),
    "count below zero": Call(
        ["row 0", "-1", "Poisson"],
        X,
        with_cell(Y, 0, -1),
        np.where(np.arange(6) == 0, -1, 0),
        settings={"likelihood": "poisson"},
    ),
    "zero for a positive family": Call(
        ["row 3", "Gamma"],
        X,
        with_cell(Y, 3, 0),
        settings={"likelihood": "gamma"},
    ),
    "share above one": Call(
        ["row 0", "Beta"],
        X,
        with_cell(Y / 10, 0, 1.0),
        settings={"likelihood": "beta"},
    ),
    "three for a binary family": Call(
        ["row 2", "Bernoulli"],
        X,
        with_cell(Y > 1, 2, 3),
        settings={"likelihood": "bernoulli"},
    ),
    "the second of two families": Call(
        ["Output 'b', row 1"],
        X,
        FRAME.assign(b=with_cell(FRAME.b, 1, 0.5)),
        settings={"likelihood": {"a": "gaussian", "b": "poisson"}},
    ),
    "unknown family": Call(["(?i)likelihood.*'normal'"], X, Y, settings={"likelihood": "normal"}),
    "families by wrong name": Call(
        ["likelihood", "'y'", "'z'"],
        X,
        Y,
        settings={"likelihood": {"z": "gaussian"}},
    ),
    "too few families": Call(
        ["likelihood.*'a', 'b'"], X, FRAME, settings={"likelihood": ["gaussian"]}
    ),
    "kernel on no column": Call(
        ["looks at column 'rain', which is not there. The inputs have 'a', 'b'"],
        FRAME,
        Y,
        settings={"kernels": RBF(columns="rain")},
    ),
    "duration on numbers": Call(
        ["duration '1d', but column 'x0' holds numbers"], X, Y, settings={"kernels": Periodic("1d")}
    ),
    "kernel of an unknown role": Call(
        [r"role.*'noise'"],
        X,
        Y,
        settings={"kernels": {"noise": RBF()}},
    ),
    "not a kernel": Call(["'rbf' for role 'mean'"], X, Y, settings={"kernels": "rbf"}),
    "no kernel": Call([r"\[\] for role 'mean'"], X, Y, settings={"kernels": []}),
    "unknown engine": Call(["engine"], X, Y, settings={"engine": "em"}),
    "unknown setting": Call(
        ["engine_settings", "steps"],
        X,
        Y,
        settings={"engine_settings": {"steps": 3}},
    ),
    "settings of another kind": Call(
        ["engine_settings"], X, Y, settings={"engine_settings": 3}
    ),
    "no iterations": Call(
        ["max_iterations"], X, Y, settings={"max_iterations": 0}
    ),
    "a word for a switch": Call(
        ["coupled"], X, Y, settings={"coupled": "no"}
    ),
    "a number for a switch": Call(
        ["use_censoring"], X, Y, settings={"use_censoring": 0}
    ),
    "kernel of an unused role on no column": Call(
        ["looks at column 'rain', which is not there"],
        FRAME,
        Y,
        settings={"kernels": {"shape": RBF(columns="rain")}},
    ),
    "kernel of constant noise on no column": Call(
        ["looks at column 'rain', which is not there"],
        FRAME,
        Y,
        settings={"kernels": {"scale": RBF(columns="rain")}, "heteroscedastic": False},
    ),
    "validation that is no pair": held_out(["validation.*pair.*5"], 5),
    "validation of fewer outputs": held_out(["Outputs.*'y'.*'a', 'b'"], (X, Y)),
    "validation of outputs in another order": held_out(
        ["Outputs.*'b', 'a'.*'a', 'b'"], (X, FRAME[["b", "a"]])
    ),
    "validation of fewer rows": held_out(
        ["6 row.s. of inputs and 3 of outputs"], (X, FRAME.to_numpy()[:3])
    ),
    "rank": Call(["rank"], X, Y, settings={"rank": 1.5}),
    "tolerance": Call(
        ["inducing_tolerance"], X, Y, settings={"inducing_tolerance": -1}
    ),
    "inducing": Call(["max_inducing"], X, Y, settings={"max_inducing": None}),
}  # fmt: skip


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_it_is_refused_before_any_computing(call, monkeypatch):
    def infer(*_):
        raise AssertionError("computing has begun")

    monkeypatch.setattr(estimator, "infer", infer)
    with pytest.raises(ValueError, match=call.words[0]) as refusal:
        CensoredGP(**call.settings).fit(*call.args, **call.keywords)
    for words in call.words[1:]:
        refusal.match(words)


def test_a_period_of_zero_is_refused_at_once():
    with pytest.raises(ValueError, match=r"period.*Periodic.*got 0"):
        Periodic(0)


@pytest.fixture(scope="module")
def quick():
    """A small fit, to ask it the wrong questions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return CensoredGP(kernels=RBF(1.0), heteroscedastic=False, max_iterations=3).fit(X, Y)


ASKED = {
    "other columns": (lambda m: m.predict(np.ones((3, 2))), "X has 2 features, but CensoredGP"),
    "NaN": (lambda m: m.predict([[np.nan]]), "Input 'x0', row 0"),
    "times": (
        lambda m: m.predict(np.array([["2024-01-01"]], "M8[D]")),
        "Input 'x0'.*got times",
    ),
    "levels": (lambda m: m.quantile(X, [0.5, 1.0]), "between 0 and 1"),
    "percent": (lambda m: m.interval(X, 95), "`probability`.*95"),
    "percent of training": (lambda m: m.impute_interval(95), "`probability`.*95"),
    "bounds for values": (
        lambda m: m.log_density(X, Observations.from_flags(Y, Y > 2)),
        r"Output 'y', row 2.*log_probability",
    ),
    "a dict of numbers": (lambda m: m.cdf(X, {"y": 1.0}), "'y'.*flat"),
    "ragged values": (lambda m: m.cdf(X, [[1], [1, 2]]), "Output.*unequal length"),
    "other rows": (lambda m: m.score(X, Y[:-1]), r"6 row.* 5 of outputs"),
    "other outputs": (lambda m: m.cdf(X, np.ones((6, 2))), r"Outputs.*'y0', 'y1'.*'y'"),
}


@pytest.mark.parametrize(("ask", "words"), ASKED.values(), ids=ASKED)
def test_wrong_questions_are_refused(quick, ask, words):
    with pytest.raises(ValueError, match=words):
        ask(quick)


def test_bounds_that_exclude_nothing_are_no_news(monkeypatch):
    seen = []
    monkeypatch.setattr(estimator, "infer", lambda engine, task, settings: seen.append(task))
    y = with_cell(Y, 0, 0.0)
    for family, accepted in FAMILIES.items():
        if accepted.support.lower == 0.0 and not accepted.support.upper < np.inf:
            seen.clear()
            with pytest.raises(TypeError):  # there is no posterior to unpack
                CensoredGP(family).fit(X, y, np.arange(6) == 0)
            assert seen[0].observations.is_missing[0, 0], family


def test_bounds_of_counts_are_rounded_inward(monkeypatch):
    seen = []
    monkeypatch.setattr(estimator, "infer", lambda engine, task, settings: seen.append(task))
    lower, upper = (with_cell(Y + shift, 0, 1.0) for shift in (-0.5, 1.5))
    with pytest.raises(TypeError):
        CensoredGP("poisson").fit(X, lower=lower, upper=upper)
    np.testing.assert_array_equal(seen[0].observations.lower[:, 0], Y)
    np.testing.assert_array_equal(seen[0].observations.upper[:, 0], with_cell(Y + 1, 0, 1.0))


def fitted(X, y, *args, **settings):
    """A fit under which no warning passes unseen, except that it may end early."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return CensoredGP(kernels=RBF(), heteroscedastic=False, **settings).fit(X, y, *args)


def test_one_row_fits_and_says_what_cannot_be_learned():
    with pytest.warns(UserWarning, match=r"'y' has the same value, 3, in its one row: how much"):
        model = fitted([[2.0]], [3.0], hyperparameters="fixed")
    assert model.predict([[2.0]])[0] == pytest.approx(3.0, abs=1e-3)


@pytest.mark.parametrize("family", ["gaussian", "poisson", "gamma"])
def test_a_constant_output_fits_and_says_so(family):
    with pytest.warns(UserWarning, match=r"the same value, 4, in all of its 6 rows"):
        model = fitted(X, np.full(6, 4.0), likelihood=family)
    np.testing.assert_allclose(model.predict(X), 4.0, rtol=0.2)


def test_nothing_but_zeros_fits():
    with pytest.warns(UserWarning, match="the same value, 0, in all"):
        model = fitted(X, np.zeros(6), likelihood="poisson")
    assert np.all(model.predict(X) < 1.0)


@pytest.mark.parametrize("family", ["gaussian", "negative_binomial"])
def test_an_output_censored_everywhere_fits_and_says_so(family):
    with pytest.warns(UserWarning, match=r"'y' is censored in all of its 6 observed row\(s\)"):
        model = fitted(X, Y, np.ones(6, bool), likelihood=family)
    assert np.all(np.isfinite(model.predict(X)))
    assert model.predict(X).mean() > Y.mean()


def test_duplicate_rows_fit_as_one_input():
    twice = np.repeat(X, 2, axis=0)
    model = fitted(twice, np.repeat(Y, 2) + np.tile([-0.1, 0.1], 6))
    np.testing.assert_allclose(model.predict(X), Y, atol=0.3)


@pytest.mark.parametrize("scale", [1e6, 1e-6])
@pytest.mark.parametrize("family", ["gaussian", "gamma"])
def test_units_do_not_matter(scale, family):
    rows = np.linspace(0, 3, 24)[:, None]
    y = 3 + np.sin(3 * rows[:, 0]) + 0.1 * np.cos(40 * rows[:, 0])
    plain = fitted(rows, y, likelihood=family)
    scaled = fitted(scale * rows, scale * y, likelihood=family)
    # Rounding may break ties among inducing inputs otherwise, and a fit ends within a tolerance.
    np.testing.assert_allclose(scaled.predict(scale * rows), scale * plain.predict(rows), rtol=1e-2)


def test_times_far_from_zero_are_as_good_as_near_ones():
    hours, y = np.arange(24.0), Y[np.arange(24) % 6]
    near, far = (fitted(hours[:, None] + shift, y) for shift in (0.0, 1e9))
    np.testing.assert_allclose(far.predict(hours[:, None] + 1e9), near.predict(hours[:, None]),
                               rtol=1e-4)  # fmt: skip


def test_a_bad_row_of_a_file_of_new_inputs_is_named_by_its_line(tmp_path):
    table = {"x": np.arange(6.0), "y": np.sin(np.arange(6.0))}
    model = CensoredGP(kernels=RBF(1.0), heteroscedastic=False, max_iterations=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(table, outputs="y", inputs="x")
    path = tmp_path / "new.csv"
    path.write_text("x\n1.5\noften\n")
    with pytest.raises(DataError, match=r"new\.csv, line 3, column 'x': got 'often'"):
        model.predict(path)
