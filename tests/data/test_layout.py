"""Tables in, tables out: what a table says is read, and what it had comes back."""

import dataclasses
import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from censored_gp import CensoredGP, load
from censored_gp.data.layout import columns_used, read_new, read_training, read_truth, result
from censored_gp.data.tables import Table, build, read_table
from censored_gp.kernels import RBF

MAKES = {
    "pandas": lambda d: d,
    "polars": pl.from_pandas,
    "pyarrow": lambda d: pa.Table.from_pandas(d, preserve_index=False),
}
EVERY_MAKE = pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)
N = 12


def wide(zone="Europe/Berlin"):
    """Twelve hours around the end of summer time, in which an hour is there twice."""
    time = pd.date_range("2024-10-26 22:00", periods=N, freq="h", tz=zone)
    wave = 3 + 2 * np.sin(np.arange(N) / 2) + np.random.default_rng(0).normal(0, 0.3, N)
    return pd.DataFrame(
        {
            "time": time,
            "rain": np.arange(N) % 3 / 2,
            "a": np.minimum(wave, 4.0),
            "b": wave[::-1] + np.arange(N) % 3,
            "a_full": wave > 4.0,
            "b_full": np.arange(N) == 5,
        },
        index=10 * np.arange(N),
    )


def long(shuffled=True):
    """The same, a row for each output and time."""
    table = wide()
    parts = [
        pd.DataFrame(
            {
                "time": table["time"],
                "rain": table["rain"],
                "station": name,
                "n": table[name],
                "full": table[f"{name}_full"],
            }
        )
        for name in "ab"
    ]
    both = pd.concat(parts, ignore_index=True)
    return both.sample(frac=1, random_state=0) if shuffled else both


WIDE = {"outputs": ["a", "b"], "time": "time", "inputs": ["rain"]}
SETTINGS = {"heteroscedastic": False, "hyperparameters": "fixed"}
LONG = {"outputs": "n", "by": "station", "time": "time", "inputs": ["rain"]}
FLAGS = {"censored": ["a_full", "b_full"]}


def columns_of(frame):
    return list(frame.column_names if isinstance(frame, pa.Table) else frame.columns)


def as_pandas(frame):
    return frame if isinstance(frame, pd.DataFrame) else frame.to_pandas()


@EVERY_MAKE
def test_wide_and_long_tables_say_the_same(make):
    one = read_training(make(wide()), **WIDE, **FLAGS)
    other = read_training(make(long()), **LONG, censored="full")
    order = [other.observations.names.index(name) for name in "ab"]
    for end in ("lower", "upper"):
        found = getattr(other.observations, end)[:, order]
        np.testing.assert_array_equal(found, getattr(one.observations, end))
    assert one.observations.is_right.sum() == wide()[["a_full", "b_full"]].to_numpy().sum()
    assert other.inputs.numbers("rain", "").tolist() == one.inputs.numbers("rain", "").tolist()


@pytest.mark.parametrize(
    "flags",
    [
        ["a_full", "b_full"],
        {"b": "b_full", "a": "a_full"},
        wide()[["a_full", "b_full"]].to_numpy(),
        wide()[["a_full", "b_full"]].set_axis(["a", "b"], axis=1),
    ],
    ids=["list", "dict", "array", "frame"],
)
def test_every_way_to_give_flags(flags):
    expected = read_training(wide(), **WIDE, **FLAGS).observations
    found = read_training(wide(), **WIDE, censored=flags).observations
    np.testing.assert_array_equal(found.upper, expected.upper)


def test_a_value_whose_flag_is_missing_is_left_out():
    """Taken for lower bounds, many exact values would have nothing to hold what is above them."""
    table = wide().assign(a_full=[np.nan, 1.0, *[0.0] * (N - 2)])
    with pytest.warns(UserWarning, match=r"Flag 'a_full' is missing in 1 row.*first of them row 0"):
        found = read_training(table, **WIDE, censored={"a": "a_full"}).observations
    assert np.argwhere(found.is_missing).tolist() == [[0, 0]]
    assert np.argwhere(found.is_right).tolist() == [[1, 0]]


def test_flags_that_never_say_exact_are_refused_where_some_are_missing():
    # A missing value has no flag to speak of.
    table = wide().assign(a_full=[1.0, *[np.nan] * (N - 1)], a=[*range(N - 1), np.nan])
    with pytest.raises(
        ValueError, match=r"(?i)Flag 'a_full'.* is missing in .* nowhere 0.*fill in 0"
    ):
        read_training(table, **WIDE, censored={"a": "a_full"})


@pytest.mark.parametrize("limit", [{"capacity": 4.0}, {"lower": 0.0}])
def test_an_unknown_exposure_needs_a_flag(limit):
    with pytest.raises(ValueError, match="no flag"):
        read_training(wide(), **WIDE, exposure="unknown", **limit)


def test_flags_of_some_outputs_only():
    found = read_training(wide(), **WIDE, censored={"b": "b_full"}).observations
    assert found.is_right.sum(axis=0).tolist() == [0, 1]


def test_flags_in_words_and_flags_of_detection_limits():
    for yes, no in (("true", "False"), ("Yes", "no"), ("y", "N"), ("T", "f"), ("1", "0.0")):
        table = {"x": [1.0, 2, 3], "y": [5.0, 6, 7], "flag": [yes, no, yes.upper()]}
        for side, kind in (("right", "is_right"), ("left", "is_left")):
            read = read_training(table, "y", inputs="x", censored="flag", side=side)
            assert getattr(read.observations, kind)[:, 0].tolist() == [True, False, True]


@pytest.mark.parametrize(
    "capacity", [4.0, {"a": 4.0}, {"a": "limit"}, ["limit", "none"], [4.0, np.nan]], ids=str
)
def test_every_way_to_give_a_capacity(capacity):
    table = wide().assign(limit=4.0, none=np.nan)
    found = read_training(table, **WIDE, capacity=capacity).observations
    full = (table["a"] >= 4.0).to_numpy()
    np.testing.assert_array_equal(found.is_right[:, 0], full)
    assert np.all(found.lower[:, 0] == table["a"])


def test_capacities_of_a_long_table_by_output():
    found = read_training(long(), **LONG, capacity={"a": 4.0}).observations
    names = found.names
    assert found.is_right[:, names.index("a")].sum() == (wide()["a"] >= 4.0).sum()
    assert not found.is_right[:, names.index("b")].any()


@pytest.mark.parametrize("key", [3184, "3184"])
def test_outputs_whose_names_are_numbers_have_capacities_by_number_or_text(key):
    numbered = long(shuffled=False).assign(station=np.repeat([3184, 3186], N))
    found = read_training(numbered, **LONG, capacity={key: 4.0}).observations
    full = (wide()["a"] >= 4.0).to_numpy()
    np.testing.assert_array_equal(found.is_right, np.stack([full, np.zeros(N, bool)], axis=1))
    columns = wide().rename(columns={"a": 3184, "b": 3186})
    found = read_training(columns, [3184, 3186], time="time", capacity={key: 4.0}).observations
    np.testing.assert_array_equal(found.is_right[:, 0], full)


@pytest.mark.parametrize(
    ("exposure", "message"),
    [
        ("minutes", r"'minutes', row 3.*: got 30\. .*\"minutes/60\""),
        ("1 - minutes", r"'minutes', row 3.*: got 30\. .*\"1 - minutes/60\""),
        ("minutes/20", r"'minutes', row 3.*: got 30\. .*\"minutes/60\""),
        ({"b": 30}, r"'b', row 0.*: got 30\. .*0 to 1\. Divide by the length of the period\."),
        ({"b": np.full(N, 30)}, r"'b', row 0.*: got 30\. .*0 to 1\. Divide by the length"),
    ],
    ids=str,
)
def test_an_exposure_that_is_no_share_is_told_as_it_was_given(exposure, message):
    table = wide().assign(minutes=30.0 * (np.arange(N) == 3))
    with pytest.raises(ValueError, match=f"Exposure {message}"):
        read_training(table, **WIDE, exposure=exposure)


def test_a_new_table_need_not_have_every_output():
    table, capacity = long(shuffled=False), {"a": 4.0, "b": 3.0}
    layout = read_training(table, **LONG, capacity=capacity).layout
    found = read_truth(table[:N], layout).is_right
    np.testing.assert_array_equal(found[:, 0], table["n"][:N] >= 4.0)
    assert not found[:, 1].any()
    with pytest.raises(ValueError, match="'c', which is not an output"):
        read_truth(table[:N], dataclasses.replace(layout, capacity={"c": 4.0}))


def test_bounds_need_no_column_of_values():
    table = {"x": [1.0, 2, 3], "lo": [0.0, 5, np.nan], "hi": [12.0, 5, 3]}
    bounds = {"lower": {"lead": "lo"}, "upper": {"lead": "hi"}}
    found = read_training(table, "lead", inputs="x", **bounds).observations
    assert found.names == ("lead",)
    np.testing.assert_array_equal(found.lower[:, 0], [0, 5, -np.inf])
    np.testing.assert_array_equal(found.upper[:, 0], [12, 5, 3])


def test_absent_rows_of_a_long_table_are_missing_cells():
    found = read_training(long(shuffled=False).drop(index=[0, N + 3]), **LONG).observations
    assert found.shape == (N, 2)
    assert np.argwhere(found.is_missing).tolist() == [[0, 0], [3, 1]]


def test_without_a_time_rows_of_equal_inputs_are_one_and_repeats_are_kept():
    table = {"dose": [1.0, 1.0, 1.0, 2.0], "organ": ["liver", "bone", "liver", "bone"]}
    table["lead"] = [0.1, 0.2, 0.3, 0.4]
    found = read_training(table, "lead", by="organ", inputs="dose")
    assert found.inputs.numbers("dose", "").tolist() == [1.0, 1.0, 2.0]
    np.testing.assert_array_equal(
        found.observations.values(), [[0.1, 0.2], [0.3, np.nan], [np.nan, 0.4]]
    )


def test_times_in_text_are_read_and_come_back_as_they_were():
    table = {"when": ["2024-06-03 08:00", "2024-06-03T09:30"], "y": [1.0, 2.0]}
    read = read_training(table, "y", time="when")
    assert read.inputs.array("when", "")[1].as_py() == dt.datetime(2024, 6, 3, 9, 30)
    back = result(read.layout, read.rows, np.zeros((2, 1)))
    assert list(back["when"]) == table["when"]


@pytest.mark.parametrize("name", ["time", None])
def test_the_index_of_pandas_can_be_the_time(name):
    table = wide().set_index("time").rename_axis(name)
    read = read_training(table, ["a", "b"], time=name or "index")
    assert read.inputs.array(name or "index", "")[0].as_py() == wide()["time"].iloc[0]
    back = result(read.layout, read.rows, np.zeros((N, 2)))
    assert list(back.columns) == ["a", "b"]
    pd.testing.assert_index_equal(back.index, table.index)


FLAGGED = wide().assign(limit=2.0)
REFUSED = {
    "absent output": (wide(), {**WIDE, "outputs": ["a", "c"]}, {}, "no column 'c'.*has 'time'"),
    "absent input": (wide(), {**WIDE, "inputs": ["snow"]}, {}, "Input: got no column 'snow'"),
    "absent flag": (wide(), WIDE, {"censored": {"a": "oops"}}, "Flag: got no column 'oops'"),
    "no inputs": (wide(), {"outputs": "a"}, {}, "a time or inputs"),
    "two purposes": (wide(), {**WIDE, "inputs": ["a"]}, {}, "'a' named more than once"),
    "one flag for two": (wide(), WIDE, {"censored": "a_full"}, "'a_full' for 2 output"),
    "no such output": (wide(), WIDE, {"capacity": {"c": 1}}, "'c', which is not an output"),
    "a flag that is no flag": (
        wide().assign(a_full=2.0 * (np.arange(N) == 3)),
        WIDE,
        {"censored": {"a": "a_full"}},
        "Flag 'a_full', row 3: got 2",
    ),
    "a flag in words": (
        wide().assign(a_full=["maybe"] * N),
        WIDE,
        {"censored": {"a": "a_full"}},
        "Flag 'a_full', row 0.*: got 'maybe'",
    ),
    "a capacity too low": (
        FLAGGED,
        WIDE,
        {"censored": {"a": "a_full"}, "capacity": {"a": "limit"}},
        r"Output 'a', row 0.*: got .*, which is not flagged.*its capacity of 2",
    ),
    "bounds and flags": (wide(), WIDE, {"censored": ["a_full"] * 2, "lower": "a"}, "bounds and fl"),
    "crossed bounds": (
        wide().assign(lo=5.0, hi=4.0), {**WIDE, "outputs": "a"}, {"lower": "lo", "upper": "hi"},
        "Output 'a', row 0.*lower 5 and upper 4",
    ),
    "text among numbers": (
        wide().assign(a=["n/a"] * N), WIDE, {}, "Output 'a', row 0: got 'n/a'"
    ),
    "a time in words": (wide().assign(time="noon"), WIDE, {}, "Time 'time', row 0.*: got 'noon'"),
    "two zones": (
        wide().assign(time=["2024-06-03T08:00+00:00"] + ["2024-06-03T08:00+02:00"] * (N - 1)),
        WIDE, {}, "Time 'time', row 1: got a time in zone .02:00",
    ),
    "no table": (np.zeros((3, 2)), WIDE, {}, "Table: got ndarray"),
    "double names": (
        pd.DataFrame([[1, 2]], columns=["a", "a"]), WIDE, {}, "'a' 2 times"
    ),
    "an unknown side": (wide(), WIDE, {"side": "up"}, "side.* got 'up'"),
    "no rows": (wide()[:0], WIDE, {}, "got no rows"),
    "twice in a long table": (
        pd.concat([long(shuffled=False)] * 2, ignore_index=True), LONG, {},
        rf"Time 'time', row {2 * N} \(and {2 * N - 1} more.*: got 2024-10-26 22:00:00\+02:00 of "
        r"output 'a' again, after row 0",
    ),
    "inputs that disagree": (
        long(shuffled=False).assign(rain=np.arange(2.0 * N)), LONG, {},
        rf"Input 'rain', row {N}.*: got {N}.0, but 0.0 in row 0 of the same time",
    ),
    "no output named": (long().assign(station=None), LONG, {}, "Column 'station', row 0.*: got no"),
    "a value of a long table": (
        long(shuffled=False)[::-1].assign(n=lambda table: table["n"].where(table.index != 3, -1.0)),
        LONG, {"likelihood": "gamma"},
        rf"Output 'a' in column 'n', row {2 * N - 4}: got -1\. Gamma accepts",
    ),
    "an input of a long table": (
        long(shuffled=False)[::-1].assign(rain=lambda t: t["rain"].where(t.index % N != 3, np.inf)),
        LONG, {}, rf"Input 'rain', row {N - 4}.*: got inf",
    ),
    "a long table of two outputs": (
        long(), {**LONG, "outputs": ["n", "full"]}, {}, "one column of values"
    ),
    "a column for one output of a long table": (
        long(), LONG, {"capacity": {"a": "n"}}, "Capacity: got 'n' for one output"
    ),
    "an array for one output of a long table": (
        long(), LONG, {"capacity": {"a": np.ones(2 * N)}}, "Capacity: got ndarray for one output"
    ),
    "too few flags for one output": (
        wide(), WIDE, {"censored": {"a": [1, 0]}}, rf"Flag: got 2 row.*'a'.*{N} row"
    ),
    "a missing time": (
        long(shuffled=False).assign(time=pd.NaT), LONG, {}, "Input 'time', row 0.*: got no value"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("table", "names", "spec", "words"), REFUSED.values(), ids=REFUSED)
def test_bad_tables_are_refused_in_words(table, names, spec, words):
    spec = dict(spec)
    model = CensoredGP(spec.pop("likelihood", "gaussian"))
    with pytest.raises(ValueError, match=words):
        model.fit(table, **names, **spec)


def test_names_and_arrays_do_not_mix():
    with pytest.raises(ValueError, match=r"outputs.*time='time'"):
        CensoredGP().fit(wide(), time="time")
    with pytest.raises(ValueError, match=r"y.*outputs"):
        CensoredGP().fit(wide(), wide()["a"], outputs="a", time="time")


def test_a_new_long_table_may_ask_for_all_outputs_or_for_some():
    layout = read_training(long(), **LONG).layout
    names = list(layout.outputs)
    _, some = read_new(long(shuffled=False)[:2], layout)
    assert some.output.tolist() == [names.index("a")] * 2
    _, every = read_new(wide()[["time", "rain"]][:2], layout)
    back = result(layout, every, np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert back["n"].tolist() == [1, 2, 3, 4]
    assert back["station"].tolist() == names * 2
    with pytest.raises(ValueError, match=r"Column 'station', row 0.*: got 'z'.*outputs of the tr"):
        read_new(long().assign(station="z"), layout)


@pytest.mark.parametrize("trained", [int, str])
def test_outputs_named_by_numbers_are_the_same_in_text(trained):
    table = long().assign(station=long()["station"].map({"a": 3195, "b": 3199}))
    layout = read_training(table.astype({"station": trained}), **LONG).layout
    (_, numbers), (_, texts) = (read_new(table.astype({"station": k}), layout) for k in (int, str))
    np.testing.assert_array_equal(numbers.output, texts.output)


@EVERY_MAKE
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_keys_come_back_from_bytes(make, zone):
    table = make(wide(zone)[["time", "a"]])
    kept = read_table(table)
    again = Table.from_bytes(kept.to_bytes(), kept.backend).native()
    assert type(again) is type(table)
    pd.testing.assert_frame_equal(as_pandas(again), as_pandas(table), check_dtype=False)


@pytest.mark.parametrize("make", ["pandas", "polars", "pyarrow", "dict"])
def test_tables_are_built_of_any_columns(make):
    hours = np.array(["2024-06-03T08", "2024-06-03T09"], dtype="datetime64[s]")
    days = hours.astype("datetime64[D]")
    text, number = np.array(["x", "y"]), np.array([1.5, 2.5])
    built = build(make, {"when": hours, "day": days, "who": text, "n": number})
    names = list(built) if make == "dict" else columns_of(built)
    assert names == ["when", "day", "who", "n"]
    plain = pd.DataFrame(built) if make == "dict" else as_pandas(built)
    assert plain["when"][1] == pd.Timestamp("2024-06-03 09:00")
    assert plain["who"].tolist() == ["x", "y"]
    assert plain["n"].tolist() == [1.5, 2.5]


@pytest.fixture(scope="module")
def model():
    estimator = CensoredGP("gaussian", RBF(3.0, columns="time"), **SETTINGS)
    return estimator.fit(wide(), **WIDE, censored=["a_full", "b_full"])


@EVERY_MAKE
def test_results_are_like_the_table(model, make):
    table = make(wide())
    mean, std = model.predict(table, return_std=True)
    low, high = model.interval(table)
    for found in (mean, std, low, high, model.cdf(table, 2.0), model.log_density(table)):
        assert type(found) is type(table)
        assert columns_of(found) == ["time", "a", "b"]
        plain = as_pandas(found)
        assert str(plain["time"].dtype.tz) == "Europe/Berlin"
        assert (plain["time"].to_numpy() == wide()["time"].to_numpy()).all()
    expected = model.predict_distribution(wide()).mean
    np.testing.assert_array_equal(as_pandas(mean)[["a", "b"]], expected)
    if isinstance(table, pd.DataFrame):
        pd.testing.assert_index_equal(mean.index, table.index)


def test_levels_and_draws_are_stacked(model):
    both = model.quantile(wide(), [0.1, 0.9])
    assert list(both.columns) == ["time", "level", "a", "b"]
    assert both["level"].tolist() == [0.1] * N + [0.9] * N
    np.testing.assert_array_equal(both["a"][:N], model.quantile(wide(), 0.1)["a"])
    drawn = model.sample(wide(), 3, random_state=0)
    assert drawn["draw"].value_counts().to_dict() == {0: N, 1: N, 2: N}
    assert drawn.index.tolist() == wide().index.tolist() * 3


def test_imputed_tables_keep_what_was_seen_to_the_last_bit(model):
    filled, table = model.impute(), wide()
    for name in "ab":
        full = table[f"{name}_full"]
        assert (filled[name][~full] == table[name][~full]).all()
        assert (filled[name][full] > table[name][full]).all()
    pd.testing.assert_index_equal(filled.index, table.index)
    pd.testing.assert_series_equal(filled["time"], table["time"])


def test_long_in_long_out(model):
    estimator = CensoredGP("gaussian", RBF(3.0, columns="time"), **SETTINGS)
    other = estimator.fit(long(), **LONG, censored="full")
    # The outputs come in another order, which is all that may differ.
    assert other.elbo_ == pytest.approx(model.elbo_, rel=1e-6)
    filled = other.impute()
    assert list(filled.columns) == ["time", "station", "n"]
    pd.testing.assert_series_equal(filled["station"], long()["station"])
    seen = ~long()["full"]
    assert (filled["n"][seen] == long()["n"][seen]).all()
    assert other.score(long()) == pytest.approx(model.score(wide()), abs=1e-4)


def test_a_start_settles_the_order_of_outputs_of_a_long_table():
    table, columns = long(shuffled=False), LONG | {"censored": "full"}
    estimator = CensoredGP("gaussian", RBF(3.0, columns="time"), **SETTINGS)
    before = estimator.fit(table, **columns)
    again = CensoredGP("gaussian", RBF(3.0, columns="time"), **SETTINGS)
    again.fit(table[::-1], **columns, start=before)
    assert again.output_names_ == before.output_names_ == ("a", "b")
    filled, expected = again.impute(), before.impute()[::-1]
    pd.testing.assert_frame_equal(filled, expected, check_freq=False, rtol=0.05)


def test_arrays_about_the_training_rows_are_not_about_others(model):
    table, some = wide(), wide()[:6]
    flags = {name: table[f"{name}_full"].to_numpy() for name in "ab"}
    estimator = CensoredGP("gaussian", RBF(3.0, columns="time"), **SETTINGS)
    for censored in (flags, np.stack(list(flags.values()), axis=1)):
        other = estimator.fit(table, **WIDE, censored=censored)
        for ask in (other.score, other.cdf):
            with pytest.raises(ValueError, match="nothing says which"):
                ask(some)
        told = other.score(some, censored={name: flag[:6] for name, flag in flags.items()})
        assert told == pytest.approx(model.score(some), rel=1e-6)


def test_densities_and_probabilities_of_a_table_are_of_its_exact_values(model):
    """At a bound there is no value to be asked about; the cells of a long table are the same."""
    table, columns = wide(), LONG | {"censored": "full"}
    values = table[["a", "b"]].to_numpy()
    flags = table[["a_full", "b_full"]].to_numpy()
    assert 0 < flags.sum() < flags.size
    for answer, given in (
        (model.cdf(table), model.cdf(table, values)),
        (model.log_density(table), model.log_density(table, values)),
    ):
        expected = np.where(flags, np.nan, given[["a", "b"]].to_numpy())
        np.testing.assert_array_equal(answer[["a", "b"]], expected)
    shuffled = long()
    estimator = CensoredGP("gaussian", RBF(3.0, columns="time"), **SETTINGS)
    answer = estimator.fit(shuffled, **columns).cdf(shuffled)
    assert (answer["n"].isna() == shuffled["full"]).all()
    fewer = long(shuffled=False)[7:]
    np.testing.assert_array_equal(estimator.cdf(fewer)["n"].isna(), fewer["full"])


def test_detection_limits_in_text_have_no_density():
    table = {"x": [0.0, 1, 2, 3], "lead": ["<0.5", "1", "2", ">2"]}
    model = CensoredGP(kernels=RBF(1.0), **SETTINGS).fit(table, outputs="lead", inputs="x")
    assert np.isnan(model.log_density(table)["lead"]).tolist() == [True, False, False, True]


def test_what_holds_for_other_rows_is_kept_as_a_whole():
    table, flags = wide().assign(share=0.5), wide()["a_full"].to_numpy()
    given = {"capacity": [4.0, 9.0], "exposure": "share"}
    layout = read_training(table, **WIDE, **given).layout
    assert (layout.capacity, layout.exposure) == ([4.0, 9.0], "share")
    # A share without its flag would be taken for a known one.
    given = {"censored": {"a": flags}, "exposure": "share", "side": "left"}
    layout = read_training(table, **WIDE, **given).layout
    assert (layout.censored, layout.exposure, layout.side) == (None, None, "left")


def test_columns_may_be_named_in_an_array_or_an_index():
    named = {"outputs": np.array(["a", "b"]), "inputs": pd.Index(["rain"]), "time": "time"}
    assert columns_used(named, list(wide().columns)) == ["a", "b", "rain", "time"]


def test_an_error_is_not_its_own_cause():
    with pytest.raises(ValueError, match="row 1: got inf") as caught:
        CensoredGP().fit([[0.0], [1.0]], [1.0, np.inf])
    assert caught.value.__cause__ is None


def test_a_model_from_a_file_answers_in_tables(model, tmp_path):
    again = load(model.save(tmp_path / "model"))
    assert again.layout_ == model.layout_
    pd.testing.assert_frame_equal(again.predict(wide()), model.predict(wide()))
    pd.testing.assert_frame_equal(again.impute(), model.impute(), check_freq=False)


def test_arrays_in_arrays_out(model):
    matrix = np.column_stack([np.arange(3.0), np.zeros(3)])
    fitted = CensoredGP(kernels=RBF(1.0), heteroscedastic=False, max_iterations=2)
    with pytest.warns(match="."):
        fitted.fit(matrix, np.arange(3.0), capacity=2.0)
    assert fitted.layout_ is None
    assert isinstance(fitted.predict(matrix), np.ndarray)
    assert fitted.observations_.is_right[:, 0].tolist() == [False, False, True]


def test_detection_limits_in_the_values_of_a_long_table_are_bounds_of_their_output():
    table = {"t": [1.0, 1.0, 2.0], "metal": ["zinc", "lead", "zinc"], "value": ["<0.5", "2", "1"]}
    found = read_training(table, "value", by="metal", time="t").observations
    assert found.upper.tolist() == [[0.5, 2.0], [1.0, np.inf]]
    assert found.lower.tolist() == [[-np.inf, 2.0], [1.0, -np.inf]]
