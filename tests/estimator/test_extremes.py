"""Extreme numbers, odd arguments and mismatched tables get words, and never a silent NaN."""

import dataclasses
import datetime
import os
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from censored_gp import CGP, HMOCGP, CensoredGP, Observations, compare, load
from censored_gp.data.errors import DataError
from censored_gp.data.inputs import read_inputs
from censored_gp.data.time import zone_rules
from censored_gp.kernels import RBF, Constant, Periodic

X = np.arange(6.0)[:, None]
Y = np.array([1.0, 2.0, 3.0, 2.0, 1.0, 2.0])
TIMES = pd.date_range("2024-06-03", periods=6, freq="h")


def fit(*args, **keywords):
    """A fit of three steps."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        made = CensoredGP(
            kernels=RBF(1.0),
            heteroscedastic=False,
            coupled=False,
            max_iterations=3,
            hyperparameters="fixed",
        )
        return made.fit(*args, **keywords)


@pytest.fixture(scope="module")
def flat():
    """A model of arrays."""
    return fit(X, Y, capacity=3)


@pytest.fixture(scope="module")
def timed():
    """A model of a pandas table with times."""
    return fit(pd.DataFrame({"t": TIMES, "y": Y}), outputs="y", time="t", capacity=3)


def long(**changes):
    """A long table of two outputs."""
    made = {"t": np.repeat(TIMES, 2), "s": np.tile(["a", "b"], 6), "y": np.repeat(Y, 2)}
    return pd.DataFrame(made | changes)


@pytest.fixture(scope="module")
def stations():
    """A model of a long table."""
    return fit(long(), outputs="y", time="t", by="s", capacity=3)


@pytest.mark.parametrize("scale", [1e200, 2e307, 1e-200])
def test_numbers_whose_squares_overflow_are_refused_by_column_and_row(scale):
    with pytest.raises(DataError, match="'x0', row"):
        CGP().fit(X * scale, Y)
    for family in ("gaussian", "gamma"):
        with pytest.raises(DataError, match="'y', row"):
            CGP(family).fit(X, Y * scale)
    with pytest.raises(DataError, match="'y', row"):
        CGP().fit(X, lower=Y * scale, upper=Y * scale * 1.5)


def test_large_numbers_are_refused_where_they_are_predicted_small_ones_not(flat):
    with pytest.raises(DataError, match="'x0', row 0"):
        flat.predict([[1e200]])
    assert np.isfinite(flat.predict([[1e-200]])).all()


@pytest.mark.parametrize("scale", [1e140, 1e-140])
def test_numbers_below_these_limits_are_only_other_units(scale, flat):
    far = fit(X, Y * scale, capacity=3 * scale)
    for found, known in zip(far.predict(X, True), flat.predict(X, True), strict=True):
        np.testing.assert_allclose(found, scale * known, rtol=1e-6)


def test_nan_in_a_posterior_is_never_called_converged(flat):
    def engine(task, settings):
        weights = {role: own._replace(mean=np.nan * own.mean) for role, own in q.weights.items()}
        return dataclasses.replace(q, weights=weights), done

    q, done = flat.posterior_, dataclasses.replace(flat.report_, status="converged")
    made = CensoredGP(kernels=RBF(1.0), heteroscedastic=False, coupled=False, engine=engine)
    with pytest.warns(ConvergenceWarning, match=r"weights.*mean.*mean"):
        model = made.fit(X, Y, capacity=3)
    assert not model.report_.converged
    with pytest.warns(RuntimeWarning, match=r"'y', row 0.*NaN"):
        model.predict(X)
    with pytest.warns(RuntimeWarning, match=r"'y', row 0.*NaN"):
        model.sample(X, 2)


def test_levels_below_the_normal_numbers_go_on_as_those_above(flat):
    levels = [1e-300, 3e-308, 2e-308, 5e-309]
    found = flat.quantile(X, levels)
    assert np.all(np.diff(found, axis=0) < 0)
    assert np.all(np.diff(found, axis=0) > -1)


def test_integers_of_many_digits_keep_them():
    nanoseconds = 1_700_000_000_000_000_000 + 10 * np.arange(6)
    near = fit(10 * np.arange(6)[:, None], Y)
    unsigned = nanoseconds.astype(np.uint64)
    for data in (nanoseconds[:, None], unsigned[:, None], pd.DataFrame({"t": nanoseconds})):
        far = fit(data, Y)
        assert far.columns_.values(far.columns_.names[0], far.training_.inputs).tolist() == (
            nanoseconds.tolist()
        )
        np.testing.assert_allclose(far.predict(data), near.predict(10 * np.arange(6)[:, None]))


def test_many_digits_are_saved(tmp_path):
    nanoseconds = 1_700_000_000_000_000_000 + 10 * np.arange(6)[:, None]
    model = fit(nanoseconds, Y)
    again = load(model.save(tmp_path / "m.cgp"))
    assert (again.predict(nanoseconds) == model.predict(nanoseconds)).all()


def test_the_same_index_in_another_order_is_refused():
    frame = pd.DataFrame(X, columns=["x"], index=list("abcdef"))
    y = pd.Series(Y, index=list("abdcef"))
    with pytest.raises(DataError, match=r"y.*'d' in row 2.*'c'"):
        fit(frame, y)
    with pytest.raises(DataError, match=r"censored.*row 2"):
        fit(frame, Y, censored=y > 2)
    with pytest.raises(DataError, match=r"censored\['y'\].*row 2"):
        fit(frame, Y, censored={"y": y > 2})
    with pytest.raises(DataError, match=r"capacity.*row 2"):
        fit(frame.assign(y=Y), outputs="y", inputs="x", capacity=y)
    model = fit(frame, y.sort_index())
    with pytest.raises(DataError, match="row 2"):
        model.score(frame, y)
    with pytest.raises(DataError, match="row 2"):
        model.cdf(frame, y)


def test_another_index_is_warned_of():
    frame = pd.DataFrame(X, columns=["x"], index=TIMES)
    with pytest.warns(UserWarning, match=r"row 0.*2024-06-03.*position"):
        fit(frame, pd.Series(Y))
    fit(frame, pd.Series(Y, index=TIMES))


@pytest.mark.parametrize("table", [False, True])
def test_a_time_that_comes_twice_is_warned_of(table):
    frame = pd.DataFrame({"t": TIMES[[0, 1, 2, 3, 4, 1]]})
    given = (frame.assign(y=Y), None) if table else (frame, Y)
    names = {"outputs": "y", "time": "t"} if table else {}
    with pytest.warns(UserWarning, match=r"row 1 and row 5.*2024-06-03T01:00"):
        fit(*given, **names)


def test_an_hour_that_a_zone_has_twice_is_no_such_case():
    times = pd.date_range("2024-10-27", periods=6, freq="h", tz="Europe/Berlin")
    fit(pd.DataFrame({"t": times, "y": Y}), outputs="y", time="t")


WRONG = {
    "an empty path": (lambda m: m.predict(""), "str"),
    "levels in two dimensions": (lambda m: m.quantile(X, [[0.1, 0.2]]), "levels"),
    "no levels": (lambda m: m.quantile(X, []), "levels"),
    "levels in words": (lambda m: m.quantile(X, "low"), "levels"),
    "a flag for rows": (lambda m: m.imputation(True), "rows.*True"),
    "rows that are not there": (lambda m: m.imputation([99]), "rows.*99"),
    "rows in words": (lambda m: m.imputation("a"), "rows.*'a'"),
    "too many draws": (lambda m: m.sample(X, 10**12), "`n`.*1000000000000"),
    "fewer draws than none": (lambda m: m.sample(X, -1), "`n`.*-1"),
    "a flag for draws": (lambda m: m.sample(X, True), "`n`.*True"),
    "no draws of the prior": (lambda m: m.sample_prior(X, 0), "`n`.*0"),
    "too many draws of the prior": (lambda m: m.sample_prior(X, 10**12), "`n`"),
    "too many samples": (lambda m: m.lost_demand(samples=10**10), "`samples`.*10000000000"),
    "samples of supply": (lambda m: m.required_supply(X, samples=0), "`samples`.*0"),
    "no groups": (lambda m: m.lost_demand(by=[]), r"`by`.*\[\]"),
    "labels for other rows": (lambda m: m.lost_demand(by=["a", None] * 6), "`by`.*6 rows"),
    "words for y": (lambda m: m.cdf(X, "x"), "`y`.*'x'"),
}


def test_near_misses_of_groups_and_roles_are_told(flat):
    with pytest.raises(ValueError, match="mean 'output'"):
        flat.lost_demand(by="outptu")
    with pytest.raises(ValueError, match="mean 'mean'"):
        flat.correlations("maen")


@pytest.mark.parametrize(("ask", "words"), WRONG.values(), ids=WRONG)
def test_odd_arguments_are_refused_by_name(flat, ask, words):
    with pytest.raises(ValueError, match=words):
        ask(flat)


def test_odd_arguments_of_times_are_refused_by_name(timed):
    table = pd.DataFrame({"t": TIMES})
    with pytest.raises(ValueError, match=r"window.*'0h'"):
        timed.required_supply(table, window="0h")
    with pytest.raises(ValueError, match=r"samples.*0"):
        timed.forecast(2, samples=0)


def test_one_row_or_a_mask_of_rows_is_imputed(flat):
    rows = [flat.imputation(which).mean for which in (2, [2], np.arange(6) == 2, slice(2, 3))]
    assert all(found == rows[0] for found in rows)


def test_labels_that_are_missing_are_a_group(flat):
    found = flat.lost_demand(by=["a", None] * 3, samples=10)
    assert [row["group"] for row in found] == ["a", "missing"]


def test_numbers_too_large_for_a_float_are_refused_by_name():
    with pytest.raises(ValueError, match=r"period.*Periodic"):
        Periodic(10**400)
    with pytest.raises(ValueError, match=r"lengthscale.*RBF"):
        RBF([1, 10**400])


@pytest.mark.parametrize("variance", [[], [1.0, 2.0]])
def test_a_setting_without_units_of_inputs_is_one_number(variance):
    with pytest.raises(ValueError, match=r"variance.*Constant"):
        Constant(variance).resolve(read_inputs([[0.0]])[1])


def test_nothing_at_all_has_no_rows():
    assert len(Observations.from_capacity(np.array([], "M8[s]"), 3)) == 0


@pytest.mark.parametrize("kind", [np.array, pd.Index])
def test_names_come_in_any_list(kind):
    table = {"u": X[:, 0], "v": X[:, 0] ** 2, "y": Y}
    model = fit(table, outputs=kind(["y"]), inputs=kind(["u", "v"]))
    assert (model.columns_.names, model.output_names_) == (("u", "v"), ("y",))


def test_an_unfitted_model_says_so():
    for name in ("output_names_", "columns_", "layout_", "observations_", "rank_"):
        with pytest.raises(NotFittedError):
            getattr(CGP(), name)
        assert not hasattr(CGP(), name)


NEAR = {
    "a family": (lambda: CGP("Poisson").fit(X, Y), "'poisson'"),
    "a family in one word": (lambda: CGP("studentt").fit(X, Y), "'student_t'"),
    "an engine": (lambda: CGP(engine="Natural").fit(X, Y), "'natural'"),
    "a setting": (lambda: CGP(engine_settings={"Tolerance": 1}).fit(X, Y), "mean 'tolerance'"),
    "a side": (lambda: CGP().fit(X, Y, Y > 2, side="Left"), "mean 'left'"),
    "a model": (lambda: compare(X, Y, models="hmocpg"), "mean 'HMOCGP'"),
    "a zone": (lambda: zone_rules("Europe/Copenhaven"), "mean 'Europe/Copenhagen'"),
}


@pytest.mark.parametrize(("call", "words"), NEAR.values(), ids=NEAR)
def test_near_misses_are_told(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_what_a_model_fixes_is_told_by_its_own_name():
    with pytest.raises(TypeError, match=r"CGP.*coupled.*CensoredGP"):
        CGP(coupled=True)
    with pytest.raises(TypeError, match=r"HMOCGP.*kernel.*'kernels'"):
        HMOCGP(kernel=RBF())


def autumn():
    """A long table with an hour that comes twice, of one output."""
    times = pd.date_range("2024-10-27", periods=6, freq="h", tz="Europe/Berlin")
    return pd.DataFrame({"t": times, "s": "a", "y": np.arange(6.0) ** 2})


def test_values_of_a_doubled_hour_stay_apart():
    model = fit(autumn(), outputs="y", time="t", by="s")
    logs, prediction = model.log_density(autumn()), model.predict(autumn())
    again = [model.log_density(autumn()[k : k + 1])["y"].iloc[0] for k in range(6)]
    np.testing.assert_allclose(logs["y"], again)
    assert prediction["y"][2] == prediction["y"][3]
    assert logs["y"][2] != logs["y"][3]


def test_rows_of_one_time_and_output_are_each_answered(stations):
    twice = long()[:2].loc[[0, 0]].assign(y=[1.0, 5.0])
    apart = [stations.cdf(twice[k : k + 1])["y"].iloc[0] for k in (0, 1)]
    np.testing.assert_allclose(stations.cdf(twice)["y"], apart)


def test_windows_of_a_long_table_have_a_label_for_each_of_its_rows(stations):
    hours, labels = np.repeat(np.arange(6) // 3, 2), ["early", "late"]
    by_row = stations.required_supply(long(), window=np.array(labels)[hours], samples=20)
    by_time = stations.required_supply(long(), window="3h", samples=20)
    assert list(by_row["window"].unique()) == labels
    pd.testing.assert_frame_equal(by_row.drop(columns="window"), by_time.drop(columns="window"))
    with pytest.raises(DataError, match=r"window.*row 1"):
        stations.required_supply(long(), window=["early", "late"] * 6, samples=20)


@pytest.mark.parametrize("names", [["t", "s"], ["t"]])
def test_a_forecast_has_the_index_of_the_table(names):
    model = fit(long().set_index(names), outputs="y", time="t", by="s")
    found = model.forecast(2)
    assert found.index.names == names
    assert {*found.index.names, *found.columns} == {"t", "s", "y", "y_low", "y_high"}


def test_labels_that_are_days_are_saved(tmp_path):
    days = [datetime.date(2024, 6, 3), datetime.date(2024, 6, 4)]
    for labels in (days, [pd.Timestamp(day) for day in days]):
        table = long(s=np.array(labels * 6, dtype=object))
        model = fit(table, outputs="y", time="t", by="s")
        again = load(model.save(tmp_path / "m.cgp"))
        assert again.layout_.outputs == model.layout_.outputs
        pd.testing.assert_frame_equal(again.predict(table), model.predict(table))


def test_saving_into_no_folder_names_the_folder(flat, tmp_path):
    with pytest.raises(FileNotFoundError) as refusal:
        flat.save(tmp_path / "none" / "m.cgp")
    assert refusal.value.filename == str(tmp_path / "none")
    assert ".part" not in str(refusal.value)


def test_saving_removes_what_a_killed_process_has_left(flat, tmp_path):
    old, new, other = (tmp_path / name for name in (".m[1].cgp.12.part", ".m[1].cgp.34.part",
                                                    ".other.cgp.56.part"))  # fmt: skip
    for draft in (old, new, other):
        draft.touch()
    for draft in (old, other):
        os.utime(draft, (time.time() - 7200,) * 2)
    flat.save(tmp_path / "m[1].cgp")
    assert sorted(tmp_path.iterdir()) == sorted([new, other, tmp_path / "m[1].cgp"])


def test_columns_of_one_name_are_refused():
    with pytest.raises(DataError, match="unique"):
        fit(pd.DataFrame(np.hstack([X, X]), columns=["x", "x"]), Y)


def test_endless_names_are_cut_wherever_they_are_said():
    name = 100_000 * "q"
    with pytest.warns(UserWarning, match=r"qqq\.\.\. has the same value") as told:
        made = fit({"t": X[:, 0], name: np.ones(6)}, outputs=name, inputs="t")
    assert len(str(made) + str(told[0].message)) < 2000
    assert made.output_names_ == (name,)


def test_design_points_where_numbers_overflow_are_not_taken():
    rows = np.linspace(0, 5, 30)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # The bound of a constant has no maximum.
        made = CensoredGP(hyperparameters="mixed").fit(rows, np.full(30, 3.0))
    np.testing.assert_allclose(made.predict(rows), 3.0, rtol=1e-3)


def test_a_constant_share_is_predicted_within_seconds():
    with pytest.warns(UserWarning, match="the same value, 0.5"):
        model = CGP("beta").fit(X, np.full(6, 0.5))
    began = time.process_time()
    low, high = model.interval(X)
    assert time.process_time() - began < 30
    assert np.all((low < 0.5) & (high > 0.5) & (high - low < 0.01))
