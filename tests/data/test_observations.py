import dataclasses
import datetime
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing, indexable

from censored_gp import HMOCGP
from censored_gp.data.observations import (
    Observations,
    find_steps,
    step_of,
    widen_exact,
    within_steps,
)
from censored_gp.data.validation import within_support
from censored_gp.likelihoods import Gaussian, Poisson
from censored_gp.likelihoods.support import COUNTS, NONNEGATIVE, POSITIVE, REAL

INF, NAN = np.inf, np.nan
KINDS = ("exact", "right", "left", "interval", "partial", "missing")
Y = np.array([[1.0, 10.0], [2.0, NAN], [3.0, 30.0]])
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.fixture
def every_kind():
    ends = np.array([[2.0, 2.0], [1.0, INF], [-INF, 4.0], [1.0, 4.0], [2.0, 2.0], [-INF, INF]])
    return Observations(*ends.T, exposure=[1.0, 1.0, 1.0, 1.0, 0.5, 1.0])


def between(lower, upper, names=()):
    return Observations(np.array(lower), np.array(upper), names)


def intervals(observations):
    pairs = zip(observations.lower.ravel(), observations.upper.ravel(), strict=True)
    return [(float(low), float(high)) for low, high in pairs]


def test_the_kinds_partition_the_cells(every_kind):
    masks = np.stack([getattr(every_kind, f"is_{kind}")[:, 0] for kind in KINDS])
    np.testing.assert_array_equal(masks, np.eye(6, dtype=bool))
    assert {k: v.tolist() for k, v in every_kind.counts().items()} == {k: [1] for k in KINDS}


def test_values_are_the_value_the_bound_or_the_middle(every_kind):
    np.testing.assert_array_equal(every_kind.values()[:, 0], [2.0, 1.0, 4.0, 2.5, 2.0, NAN])
    huge = between([-1.5e308, 1e308], [1.5e308, 1.6e308])
    np.testing.assert_allclose(huge.values()[:, 0], [0.0, 1.3e308])


def test_bounds_are_float64_copies():
    lower = np.array([1, 2])
    observations = Observations(lower, lower)
    lower[0] = 9
    assert observations.lower.dtype == observations.upper.dtype == np.float64
    assert intervals(observations) == [(1.0, 1.0), (2.0, 2.0)]
    with pytest.raises(dataclasses.FrozenInstanceError):
        observations.lower = lower
    for array in (observations.lower, observations.upper, observations.exposure):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_names_default_to_y():
    assert Observations.exact([1.0]).names == ("y",)
    assert Observations.exact(Y).names == ("y0", "y1")
    assert between(Y[:1], Y[:1], ("a", "b")).names == ("a", "b")


def test_exact():
    observations = Observations.exact(Y)
    assert intervals(observations)[2:4] == [(2.0, 2.0), (-INF, INF)]
    assert observations.is_exact.sum() == 5


def loop_flags(y, flag, strict):
    """The obvious twin: the interval of one value and its flag."""
    step = 1 if strict else 0
    if np.isnan(y):
        return (-INF, INF)
    return {0: (y, y), 1: (y + step, INF), -1: (-INF, y - step)}[int(flag)]


@pytest.mark.parametrize("strict", [False, True])
def test_flags_equal_the_obvious_loop(strict):
    rng = np.random.default_rng(0)
    y = np.where(rng.random((40, 3)) < 0.2, NAN, rng.poisson(4.0, (40, 3)))
    flags = rng.integers(-1, 2, (40, 3))
    expected = [loop_flags(*cell, strict) for cell in zip(y.ravel(), flags.ravel(), strict=True)]
    assert intervals(Observations.from_flags(y, flags, strict=strict)) == expected


@pytest.mark.parametrize("flags", [[True, False], [1, 0], [1.0, 0.0], np.array([True, False])])
def test_flags_may_be_bools_or_numbers(flags):
    assert intervals(Observations.from_flags([3.0, 4.0], flags)) == [(3.0, INF), (4.0, 4.0)]


def test_flags_of_the_left_side_are_upper_bounds():
    left = Observations.from_flags([3, 4, NAN], [True, False, True], side="left")
    assert intervals(left) == [(-INF, 3.0), (4.0, 4.0), (-INF, INF)]
    strict = Observations.from_flags([3, 4], [1, 0], side="left", strict=True)
    assert intervals(strict) == [(-INF, 2.0), (4.0, 4.0)]


@pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series, pa.array])
def test_what_was_flat_stays_flat(make):
    y = make([1.0, 2.0, 3.0])
    built = (
        Observations.exact(y),
        Observations.from_flags(y, [0, 1, 0]),
        Observations.from_bounds(y, [5.0, 5.0, 5.0]),
        Observations.from_capacity(y, 2),
        Observations.from_detection_limit(y, 2),
        Observations.from_rounding(y, 1),
        Observations(np.arange(3), np.arange(3)),
    )
    assert all(each.flat and each.rows([0, 2]).flat and each[1].flat for each in built)
    moved = dataclasses.replace(built[0], lower=np.zeros((3, 1)), upper=np.ones((3, 1)))
    assert moved.flat


@pytest.mark.parametrize("y", [Y, Y[:, :1], Y.tolist(), {"a": [1.0]}, pd.DataFrame({"a": [1.0]})])
def test_what_had_columns_is_not_flat(y):
    assert Observations.exact(y).flat is False
    assert Observations.exact(y)[:1].flat is False


def test_strict_needs_counts_only_where_censored():
    observations = Observations.from_flags([2.5, 3.0, NAN], [0, 1, 1], strict=True)
    assert intervals(observations) == [(2.5, 2.5), (4.0, INF), (-INF, INF)]


def test_flags_of_missing_values_do_not_matter():
    observations = Observations.from_flags([NAN, NAN, 1.0], [1, NAN, 0])
    assert observations.is_missing[:, 0].tolist() == [True, True, False]


def test_a_value_whose_flag_is_missing_is_left_out():
    with pytest.warns(UserWarning, match="first of them row 1"):
        found = Observations.from_flags([1, 2, 3], [0, NAN, 1])
    assert found.is_missing[:, 0].tolist() == [False, True, False]
    assert found.is_right[:, 0].tolist() == [False, False, True]


def test_flags_in_words_are_read():
    found = Observations.from_flags([1, 2, 3], ["yes", "no", "-1"])
    assert intervals(found) == [(1.0, INF), (2.0, 2.0), (-INF, 3.0)]


def test_bounds_with_nan_are_open():
    observations = Observations.from_bounds([1.0, NAN, NAN, -INF], [NAN, 2.0, NAN, INF])
    assert intervals(observations) == [(1.0, INF), (-INF, 2.0), (-INF, INF), (-INF, INF)]


SHAPES = {
    "constant": (2.0, [[2, 2]] * 3),
    "constant array": ([2.0], [[2, 2]] * 3),
    "per output": ([3.0, 10.0], [[3, 10]] * 3),
    "per output, by name": ({"y1": 10.0, "y0": 3.0}, [[3, 10]] * 3),
    "one output only": ({"y1": 10.0}, [[NAN, 10]] * 3),
    "per row, one output only": ({"y1": [1.0, 5.0, 30.0]}, [[NAN, 1], [NAN, 5], [NAN, 30]]),
    "per row, by name": ({"y1": [1, 5, 30], "y0": [9, 2, 9]}, [[9, 1], [2, 5], [9, 30]]),
    "per row, under a name of its own": ({"docks": [1, 5, 30]}, [[1, 1], [5, 5], [30, 30]]),
    "per row": ([1.0, 5.0, 30.0], [[1, 1], [5, 5], [30, 30]]),
    "per row, column": (np.array([[1.0], [5.0], [30.0]]), [[1, 1], [5, 5], [30, 30]]),
    "per cell": ([[5, 5], [2, NAN], [INF, 30]], [[5, 5], [2, NAN], [INF, 30]]),
    "series": (pd.Series([1.0, 5.0, 30.0], name="docks"), [[1, 1], [5, 5], [30, 30]]),
    "none": (None, [[NAN, NAN]] * 3),
}


@pytest.mark.parametrize(("given", "cells"), SHAPES.values(), ids=SHAPES)
def test_capacities_of_every_shape_equal_the_obvious_loop(given, cells):
    expected = []
    for y, capacity in zip(Y.ravel(), np.ravel(cells), strict=True):
        full = INF if y >= capacity else y
        expected.append((-INF, INF) if np.isnan(y) else (y, full))
    assert intervals(Observations.from_capacity(Y, given)) == expected


def test_arrays_have_no_names_to_compare_with_those_of_a_frame():
    frame, flags = pd.DataFrame(Y, columns=["y1", "y2"]), np.array([[0, 1], [1, 0], [0, 0]])
    for given in (flags, flags.tolist()):
        found = Observations.from_flags(frame, given)
        assert intervals(found) == intervals(Observations.from_flags(Y, flags))
    limits = Observations.from_capacity(frame, np.array([[3.0, 10.0]]))
    assert intervals(limits) == intervals(Observations.from_capacity(Y, [3.0, 10.0]))
    bounds = Observations.from_bounds(frame, Y + 1)
    assert intervals(bounds) == intervals(Observations.from_bounds(Y, Y + 1))


def test_capacity_of_one_output_per_row():
    observations = Observations.from_capacity([3.0, 3.0, 4.0], [3.0, 5.0, 3.0])
    assert observations.is_right[:, 0].tolist() == [True, False, True]
    square = Observations.from_capacity([[1.0, 2.0], [3.0, 4.0]], np.array([[1.0], [9.0]]))
    assert square.is_right.tolist() == [[True, True], [False, False]]


def test_detection_limit():
    observations = Observations.from_detection_limit([0.5, 1.0, 3.0, NAN], 1.0)
    assert intervals(observations) == [(-INF, 1.0), (-INF, 1.0), (3.0, 3.0), (-INF, INF)]
    assert Observations.from_detection_limit([0.5, 3.0], 1.0, floor=0).is_interval[0, 0]
    by_name = Observations.from_detection_limit(Y, {"y0": 2.0}, floor={"y0": 0.0})
    assert intervals(by_name)[:3] == [(0.0, 2.0), (10.0, 10.0), (0.0, 2.0)]


def test_nondetect_flags_decide_where_they_are_given():
    y, flags = [5.0, 5.0, NAN, NAN], [1, 0, 1, 0]
    recorded = Observations.from_detection_limit(y, nondetect=flags)
    assert intervals(recorded) == [(-INF, 5.0), (5.0, 5.0), (-INF, INF), (-INF, INF)]
    known = Observations.from_detection_limit(y, [6.0, 6.0, 7.0, 7.0], flags, floor=0.0)
    assert intervals(known) == [(0.0, 6.0), (5.0, 5.0), (0.0, 7.0), (-INF, INF)]


def test_rounding():
    observations = Observations.from_rounding([1.0, 2.5, NAN], 0.5)
    assert intervals(observations) == [(0.75, 1.25), (2.25, 2.75), (-INF, INF)]
    np.testing.assert_array_equal(observations.values()[:, 0], [1.0, 2.5, NAN])
    mixed = Observations.from_rounding(Y, [0.0, 10.0])
    assert mixed.is_exact[:, 0].all()
    assert intervals(mixed)[1] == (5.0, 15.0)
    assert Observations.from_rounding([1.0, 2.0], NAN).is_exact.all()


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_frames_give_names_and_missing_values(make):
    y, censored = {"a": [1, None], "b": [3, 4]}, {"a": [True, None], "b": [False, True]}
    observations = Observations.from_flags(make(y), make(censored))
    assert observations.names == ("a", "b")
    assert intervals(observations) == [(1.0, INF), (3.0, 3.0), (-INF, INF), (4.0, INF)]


@pytest.mark.parametrize(
    "series",
    [
        pd.Series([1, None, 3], name="demand", dtype="Int64"),
        pd.Series([1, None, 3], name="demand", dtype=object),
        pd.Series([1, None, 3], name="demand", dtype="float32[pyarrow]"),
        pl.Series("demand", [1, None, 3]),
        pl.Series("demand", ["1", None, "3.0"]),
    ],
)
def test_series_give_their_name_and_need_not_share_it(series):
    observations = Observations.from_flags(series, pd.Series([0, 0, 1], name="stockout"))
    assert observations.names == ("demand",)
    assert intervals(observations) == [(1.0, 1.0), (-INF, INF), (3.0, INF)]


def test_a_frame_of_one_column_need_not_share_its_name():
    censored = pd.DataFrame({"stockout": [True]})
    assert Observations.from_flags(pd.DataFrame({"demand": [2]}), censored).names == ("demand",)


def test_rows_keep_names_and_order():
    observations = Observations.exact(pd.DataFrame(Y, columns=["a", "b"]))
    for index in (np.array([2, 0]), [2, 0], slice(None, None, -2)):
        part = observations.rows(index)
        assert part.names == ("a", "b")
        np.testing.assert_array_equal(part.values()[:, 0], [3.0, 1.0])
    assert observations.rows(1).shape == (1, 2)
    assert len(observations[np.array([True, False, True])]) == 2


def test_scikit_learn_makes_folds_of_them():
    observations = Observations.exact(np.arange(10.0))
    (kept,) = indexable(observations)
    for train, test in KFold(5).split(np.zeros((10, 1)), observations):
        assert kept is observations
        folds: list = [_safe_indexing(observations, rows) for rows in (train, test)]
        np.testing.assert_array_equal(folds[1].values()[:, 0], test)
        assert len(folds[0]) == 8


def test_the_summary_counts_every_kind(every_kind):
    def numbers(seen):
        return [[int(n) for n in re.findall(r"\b\d+", row)] for row in seen.summary().split("\n")]

    assert numbers(every_kind) == [[6, 1], [1] * len(KINDS)]
    assert numbers(every_kind.rows([1, 1, 5])) == [[3, 1], [2, 1]]
    assert numbers(Observations.exact(Y)) == [[3, 2], [3], [2, 1]]
    assert numbers(Observations.exact(Y).rows([])) == [[0, 2], [], []]


def test_an_output_never_seen_is_named():
    unseen = Observations.exact(pd.DataFrame({"a": [1.0, 2.0], "b": [NAN, NAN]}))
    with pytest.raises(ValueError, match=r"Output 'b': got no observed row among 2.*Drop the"):
        within_support(unseen, (Gaussian(), Gaussian()))


AB, BA = (pd.DataFrame(Y, columns=list(names)) for names in ("ab", "ba"))
BAD = {
    "crossed bounds": (
        lambda: Observations.from_bounds([1, 5, 5], [2, 4, 3]),
        r"Output 'y', row 1 \(and 1 more such cell\): got lower 5 and upper 4",
    ),
    "crossed in a named output": (
        lambda: Observations.from_bounds(AB, AB - np.array([0, 1])),
        r"Output 'b', row 0.*lower 10 and upper 9",
    ),
    "floor above limit": (
        lambda: Observations.from_detection_limit([1.0], 2.0, floor=3.0),
        r"row 0: got lower 3 and upper 2",
    ),
    "one flag for all": (lambda: Observations.from_flags([1, 2], True), r"Flag: got bool"),
    "nan inside": (lambda: between([NAN], [1.0]), r"row 0: got lower nan.*from_bounds"),
    "point at infinity": (lambda: between([INF], [INF]), r"row 0: got lower inf and upper"),
    "point at minus infinity": (lambda: between([-INF], [-INF]), r"lower -inf and upper -inf"),
    "infinite value": (
        lambda: Observations.exact(pd.DataFrame({"a": [1, 2], "b": [1, INF]})),
        r"Output 'b', row 1: got inf.*from_b",
    ),
    "infinite in a builder": (lambda: Observations.from_capacity([-INF], 1), r"got -inf"),
    "text": (
        lambda: Observations.exact(["1", "many"]),
        r"Output 'y', row 1: got 'many' \(str\).*Correct the value",
    ),
    "times": (lambda: Observations.exact([datetime.date(2020, 1, 1)]), r"row 0: got .*date.*num"),
    "complex": (lambda: Observations.exact(np.array([1j])), r"(?i)complex"),
    "objects": (lambda: Observations.exact([{"a": 1}]), r"row 0: got \{'a': 1\} \(dict\)"),
    "three axes": (lambda: Observations.exact(np.zeros((2, 1, 1))), r"shape \(2, 1, 1\).*Reshape"),
    "one number": (lambda: Observations.exact(3.0), r"got float"),
    "ragged": (lambda: Observations.exact([[1], [1, 2]]), r"1 in row 0 and 2 in row 1"),
    "lazy": (lambda: Observations.exact(pl.LazyFrame({"a": [1]})), r"LazyFrame.*\.collect\(\)"),
    "no output": (lambda: Observations.exact(np.zeros((3, 0))), r"got no column"),
    "no output in bounds": (lambda: between(np.zeros((3, 0)), 1), r"shape \(3, 0\)"),
    "double names": (
        lambda: Observations.exact(pd.DataFrame(Y, columns=["a", "a"])),
        r"'a' 2 times",
    ),
    "names of other length": (lambda: between(Y[:1], Y[:1], ("a",)), r"'a' for 2 output\(s\)"),
    "double given names": (lambda: between(Y[:1], Y[:1], ("a", "a")), r"all different"),
    "rows of bounds": (
        lambda: between([1, 2], [1]),
        r"lower bounds have 2 row.*upper .* 1 ro",
    ),
    "rows of flags": (
        lambda: Observations.from_flags(Y, [0, 1, 1]),
        r"Flag: got 3 row\(s\) and 1 column\(s\).*'y0', 'y1'.*3 row\(s\) and 2",
    ),
    "names of flags": (
        lambda: Observations.from_flags(AB, BA),
        r"Flag: got the columns 'b', 'a'.*'a', 'b'.*Rename or reorder",
    ),
    "names of bounds": (lambda: Observations.from_bounds(AB, BA), r"Upper bound: got the col"),
    "names of capacity": (lambda: Observations.from_capacity(AB, BA), r"Capacity: .*'b', 'a'"),
    "unknown flag": (
        lambda: Observations.from_flags([1, 2], [0, 2]),
        r"Flag of output 'y', row 1: got 2\. Accepted flags are -1",
    ),
    "flag of no side": (
        lambda: Observations.from_flags([1], [0], side="up"),
        r"side.* got 'up'",
    ),
    "text flag": (lambda: Observations.from_flags([1], ["<"]), r"Flag 'y', row 0: got '<'"),
    "left nondetect": (
        lambda: Observations.from_detection_limit([1, 2], nondetect=[0, -1]),
        r"row 1: got -1\. Accepted flags are 0",
    ),
    "strict non-count": (
        lambda: Observations.from_flags([1, 2.5], [0, 1], strict=True),
        r"row 1: got 2\.5.*strict=True.*whole",
    ),
    "no limit": (lambda: Observations.from_detection_limit([1.0]), r"neither a limit nor flags"),
    "unknown name": (
        lambda: Observations.from_capacity(Y, {"z": 1}),
        r"Capacity: got 'z', which is not an output.*'y0', 'y1'",
    ),
    "rows or outputs": (
        lambda: Observations.from_capacity(Y[:2], [1, 2]),
        r"could be one per row or one per output.*shape \(2, 1\)",
    ),
    "size of limit": (
        lambda: Observations.from_detection_limit(Y, [1, 2, 3, 4]),
        r"Limit: got 4 row.*outputs .*3 row",
    ),
    "name of one of two outputs": (
        lambda: Observations.from_capacity(AB, AB[["a"]]),
        r"Capacity: .*'a', where",
    ),
    "rows of one output": (
        lambda: Observations.from_capacity(Y, {"y0": 1.0, "y1": [1.0, 2.0]}),
        r"Capacity: got 2 row.*\('y1'\) have 3 row",
    ),
    "columns of one output": (
        lambda: Observations.from_capacity(Y, {"y0": 1.0, "y1": Y}),
        r"Capacity: .*2 column.*'y1'",
    ),
    "text for one output": (
        lambda: Observations.from_capacity(Y, {"y0": 1.0, "y1": "full"}),
        r"Capacity: got str",
    ),
    "text capacity": (lambda: Observations.from_capacity(Y, "full"), r"Capacity: got str"),
    "negative unit": (lambda: Observations.from_rounding([1], -1), r"Unit of .*row 0: got -1"),
    "infinite unit": (lambda: Observations.from_rounding([1], INF), r"got inf"),
}


@pytest.mark.parametrize(("make", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_in_words(make, message):
    with pytest.raises(ValueError, match=message):
        make()


READINGS = np.array([0.0, 0, 4, 6, 10, 2, 8, 14, 6, 4, 20, 2])


def test_a_step_is_the_largest_of_which_all_values_are_multiples():
    assert step_of(READINGS) == 2.0
    assert step_of(0.1 * READINGS) == pytest.approx(0.2)
    assert step_of(np.float32(0.35) * READINGS.astype(np.float32) / 2) == pytest.approx(0.35)
    assert step_of(-READINGS) == 2.0
    assert step_of(READINGS + 1) == 1.0


def test_there_is_no_step_of_few_values_of_one_or_of_one_that_is_fine():
    rng = np.random.default_rng(0)
    assert step_of(READINGS[:8]) == 0.0
    assert step_of(np.full(50, 3.0)) == step_of(np.zeros(50)) == step_of(np.zeros(0)) == 0.0
    assert step_of(rng.lognormal(size=500)) == step_of(1e6 + rng.normal(size=500)) == 0.0
    # Next to a large level all of them are multiples of the level, as far as float32 can tell.
    assert step_of(1e7 + rng.normal(size=500)) == step_of(rng.normal(1.7e9, 50.0, 500)) == 0.0
    assert step_of(1.0e6 + 100 * READINGS) == 200.0
    assert step_of(np.round(rng.normal(size=500), 3)) == 0.0
    assert step_of(np.round(rng.normal(size=500), 1)) == 0.1


def test_bounds_on_the_grid_move_by_half_a_step_and_others_do_not():
    lower = np.array([-INF, 20.0, 20.2, 3.0, 3.5, 7.0, -INF])
    upper = np.array([6.0, INF, INF, 5.0, 4.5, 7.0, 6.3])
    moved = within_steps(between(lower, upper).rounded(1), [REAL])
    np.testing.assert_array_equal(moved.lower[:, 0], [-INF, 19.5, 20.2, 2.5, 3.5, 7.0, -INF])
    np.testing.assert_array_equal(moved.upper[:, 0], [6.5, INF, INF, 5.5, 4.5, 7.0, 6.3])
    exact = widen_exact(moved)
    np.testing.assert_array_equal(exact.lower[5], [6.5])
    np.testing.assert_array_equal(exact.lower[:5], moved.lower[:5])
    still = between(lower, upper).rounded(0)
    assert within_steps(still, [REAL]) is still
    assert widen_exact(still) is still


def test_at_most_6_and_less_than_7_are_the_same():
    truth = np.arange(3.0, 24.0)
    y, less, below = np.maximum(truth, 6.0), np.maximum(truth, 7.0), truth <= 6
    found = [
        within_steps(find_steps(each, [POSITIVE]), [POSITIVE]).upper
        for each in (
            Observations.from_flags(y, below, side="left"),
            Observations.from_flags(less, below, side="left"),
            Observations.from_flags(less, below, side="left", strict=True),
            Observations.from_detection_limit(y, 6.0, floor=0.0),
            Observations.from_bounds(np.where(below, NAN, y), y),
        )
    ]
    for upper in found:
        np.testing.assert_array_equal(upper[below], 6.5)
        np.testing.assert_array_equal(upper[~below], y[~below, None])


def test_what_is_found_is_neither_of_counts_nor_of_intervals_that_were_stated():
    y = np.repeat(READINGS + 1, 2)
    assert find_steps(Observations.exact(y), [REAL]).step == 1.0
    assert find_steps(Observations.exact(y), [COUNTS]).step == 0.0
    assert find_steps(Observations.exact(y).rounded(1), [COUNTS]).step == 0.0
    assert find_steps(Observations.exact(y).rounded(0), [REAL]).step == 0.0
    mixed = Observations.from_rounding(y, np.arange(len(y)) % 2)
    assert find_steps(mixed, [REAL]).step == 0.0
    assert find_steps(mixed.rounded("auto"), [REAL]).step == 0.0
    # Sums of equal amounts are multiples of one, unless rounding is stated.
    assert find_steps(Observations.exact(y), [NONNEGATIVE]).step == 0.0
    assert find_steps(Observations.exact(y).rounded(1), [NONNEGATIVE]).step == 1.0
    # A zero is no value of a positive family, unless the step is stated.
    assert find_steps(Observations.exact(y - 1), [POSITIVE]).step == 0.0
    low = within_steps(Observations.exact([0.0, 3.0]).rounded(1), [POSITIVE])
    assert intervals(low) == [(-0.5, 0.5), (3.0, 3.0)]


def test_exact_values_are_widened_where_steps_are_coarse():
    rng = np.random.default_rng(1)
    for scale, wide in ((1.0, True), (20.0, False)):
        seen = Observations.exact(np.round(rng.normal(scale=scale, size=200))).rounded(1)
        np.testing.assert_array_equal(widen_exact(seen).upper - seen.upper, 0.5 * wide)
    quiet = np.where(np.arange(200) % 3, np.round(rng.normal(scale=200, size=200)), 0.0)
    np.testing.assert_array_equal(widen_exact(Observations.exact(quiet).rounded(1)).lower[0], -0.5)


def test_steps_are_kept_by_rows_and_outputs_and_given_by_output():
    pair = Observations.exact(Y)
    assert np.isnan(pair.step).all()
    given = pair.rounded({"y1": 10})
    np.testing.assert_array_equal(given.step, [NAN, 10.0])
    np.testing.assert_array_equal(given[1:].step, [NAN, 10.0])
    np.testing.assert_array_equal(given.outputs([1]).step, [10.0])
    np.testing.assert_array_equal(given.rounded([1, False]).step, [1.0, 0.0])
    np.testing.assert_array_equal(given.rounded(True).step, [NAN, NAN])
    for bad in (-1, "one", [1, 2, 3], {"z": 1}, np.inf):
        with pytest.raises(ValueError, match=r"rounded|Step"):
            pair.rounded(bad)


def test_a_varying_scale_does_not_vanish_where_all_records_are_nought():
    # Nothing is ever wanted in the first half of every day.
    hours = np.arange(96.0)
    busy = hours % 12 >= 6
    y = np.where(busy, np.random.default_rng(0).poisson(3, len(hours)), 0).astype(float)
    X = {"phase": hours % 12}
    model = HMOCGP(random_state=0).fit(X, y)
    scale = model.predict_distribution(X).parameters()["scale"][:, 0]
    assert scale[~busy].min() > 0.03
    # One ride at night is a surprise, and not an impossibility.
    assert model.log_density(X, np.ones(len(y)))[~busy].min() > -50
    # What was observed comes back as it was.
    np.testing.assert_array_equal(model.impute(), y)


LIMITS = ["<0.5", "1.2", " ≤ 3", ">=100", ">7.5", None, "<=4", "2"]


@pytest.mark.parametrize("make", [list, pd.Series, pl.Series, lambda v: pa.table({"y": v})])
def test_bounds_in_text_are_flags(make):
    values, flags = [0.5, 1.2, 3, 100, 7.5, NAN, 4, 2], [-1, 0, -1, 1, 1, 0, -1, 0]
    found, same = Observations.exact(make(LIMITS)), Observations.from_flags(values, flags)
    np.testing.assert_array_equal(found.lower, same.lower)
    np.testing.assert_array_equal(found.upper, same.upper)
    numbers = Observations.exact([t if t and t[0] in " <>" else t and float(t) for t in LIMITS])
    np.testing.assert_array_equal(numbers.upper, same.upper)


def test_a_count_below_seven_is_at_most_six():
    given, same = ["<7", ">3", "<=7", ">=3", "5"], ([-INF, 4, -INF, 3, 5], [6, INF, 7, INF, 5])
    found = within_support(Observations.exact(given), [Poisson()])
    np.testing.assert_array_equal([found.lower[:, 0], found.upper[:, 0]], same)


def test_readings_below_the_lowest_reading_in_steps_are_below_it_by_text_and_by_flags():
    values = [7, 7, 9, 12, 8, 10, 7, 11, 15, 13, 9]
    flags = [-1] + [0] * 10
    text = Observations.exact(["<7", *map(str, values[1:])]).rounded(1)
    found, same = (
        within_steps(each, [REAL]).upper
        for each in (text, Observations.from_flags(values, flags).rounded(1))
    )
    assert same[0] == 6.5
    np.testing.assert_allclose(found, same, rtol=1e-12)


@pytest.mark.parametrize("word", ["<", "<LOD", "< 0.5 mg", "n.d.", "<>5"])
def test_other_text_is_no_bound(word):
    with pytest.raises(ValueError, match="row 1"):
        Observations.exact(["<1", word, "2"])


def test_a_bound_in_text_is_refused_where_flags_or_bounds_say_it_as_well():
    y = ["<1", "2"]
    for read in (
        lambda: Observations.from_flags(y, [1, 0]),
        lambda: Observations.from_capacity(y, 5),
        lambda: Observations.from_detection_limit(y, 1),
        lambda: Observations.from_rounding(y, 1),
        lambda: Observations.from_bounds(y, [2, 3]),
    ):
        with pytest.raises(ValueError, match="row 0"):
            read()
