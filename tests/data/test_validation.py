"""What a user passes as outputs becomes bounds; what a likelihood cannot produce never does."""

import warnings

import numpy as np
import pytest

from censored_gp import CensoredGP, Observations
from censored_gp.data import validation as targets
from censored_gp.likelihoods import Gamma, Gaussian, Poisson

INF = np.inf
Y = np.array([1.0, 2.0, 3.0])


def between(lower, upper):
    return Observations(np.array(lower, dtype=float), np.array(upper, dtype=float))


def taken(observations, *likelihoods):
    """The values that a model without censoring takes the records for."""
    return targets.ignore_censoring(observations, likelihoods).values().T.tolist()


def test_flags_mean_what_their_side_says():
    flags = Y > 1.5
    left = targets.read_targets(Y, censored=flags, side="left")
    np.testing.assert_array_equal(left.is_left[:, 0], flags)
    np.testing.assert_array_equal(left.upper[:, 0], Y)
    np.testing.assert_array_equal(targets.read_targets(Y, censored=flags).is_right[:, 0], flags)


def test_bounds_join_values_whatever_their_names():
    y = {"a": [1.0, np.nan], "b": [3.0, 4.0]}
    seen = targets.read_targets(y, upper=np.array([[np.nan, 5.0], [7.0, np.nan]]))
    assert seen.names == ("a", "b")
    np.testing.assert_array_equal(seen.lower, [[1, 3], [-INF, 4]])
    np.testing.assert_array_equal(seen.upper, [[1, 5], [7, 4]])
    assert not seen.flat
    assert targets.read_targets(None, lower=Y, upper=Y + 1).flat


def test_a_value_outside_its_bounds_is_refused():
    with pytest.raises(ValueError, match=r"Output 'y', row 1: got 1, .* 2 and 3"):
        targets.read_targets([2.5, 1.0], lower=[2, 2], upper=[3, 3])
    seen = targets.read_targets([2.5, np.nan], lower=[2, 2], upper=[3, 3])
    assert seen.is_interval.all()


def test_counts_are_rounded_inward_before_they_are_taken_at_their_word():
    seen = between([2.5, -INF, 2.5, 3.0, -INF], [INF, 2.5, 6.5, 3.0, INF])
    np.testing.assert_array_equal(taken(seen, Poisson()), [[3, 2, 4, 3, np.nan]])
    # A number that is no count may well be another family's.
    np.testing.assert_array_equal(taken(seen, Gaussian()), [[2.5, 2.5, 4.5, 3, np.nan]])


def test_a_bound_where_no_value_can_be_is_taken_for_none():
    seen = between([0.0, -1.0, 0.5], [INF, 1.0, 0.5])
    np.testing.assert_array_equal(taken(seen, Gamma()), [[np.nan, 0.5, 0.5]])
    np.testing.assert_array_equal(taken(between([-1.0, 0.0], [INF] * 2), Poisson()), [[np.nan, 0]])


@pytest.mark.parametrize("ends", [(2.2, 2.8), (2.5, 2.5), (-INF, -1.0)])
def test_what_is_impossible_is_impossible_at_its_word_too(ends):
    seen = between([ends[0]], [ends[1]])
    for read in (targets.ignore_censoring, targets.within_support):
        with pytest.raises(ValueError, match=r"Output 'y', row 0: got .* Poisson accepts"):
            read(seen, (Poisson(),))


def test_outputs_of_another_order_are_refused_and_other_names_are_not():
    swapped = Observations.exact({"b": [1.0], "a": [2.0]})
    with pytest.raises(ValueError, match=r"got 'b', 'a'\. .*'a', 'b'"):
        targets.same_outputs(swapped, ("a", "b"))
    with pytest.raises(ValueError, match=r"got 'b', 'a'\. .* 'y'"):
        targets.same_outputs(swapped, ("y",))
    targets.same_outputs(swapped, ("truth_b", "truth_a"))
    targets.same_outputs(swapped, ("b", "a"))


def test_warnings_are_told_at_the_line_outside_the_package():
    with pytest.warns(UserWarning, match="same value, 1, in all") as caught:
        targets.warn_of_little(Observations.exact([1.0, 1.0]))
    assert caught[0].filename == __file__


def test_a_long_table_that_is_fitted_as_a_wide_one_is_noticed(begin):
    long = {
        "hour": np.repeat(np.arange(6.0), 3),
        "rides": np.arange(18.0),
        "place": list("abc") * 6,
    }
    with pytest.warns(UserWarning, match=r"18 of 18 rows have a time .*: by='...'"):
        begin(CensoredGP(), long, outputs="rides", time="hour")


def test_repeated_times_with_other_inputs_are_no_sign_of_a_long_table(begin):
    deep = {"hour": np.repeat(np.arange(6.0), 3), "lead": np.arange(18.0), "depth": [1, 2, 3] * 6}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        begin(CensoredGP(), deep, outputs="lead", time="hour", inputs=["depth"])
