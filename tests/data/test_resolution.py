"""Values recorded in steps: where many are the same, a density would have no largest value."""

import numpy as np
import pytest

from censored_gp import HMOCGP, Observations
from censored_gp.data.observations import step_of, within_steps


def test_a_step_is_found_where_many_values_are_the_same():
    counts = np.array([0.0, 0, 0, 0, 4, 6, 10, 2])
    assert step_of(counts) == 2.0
    assert step_of(0.1 * counts) == pytest.approx(0.2)
    assert step_of(7.3 + counts) == pytest.approx(2.0)


def test_there_is_none_without_ties_between_other_values_or_of_one_value():
    assert step_of(np.arange(10.0)) == 0.0
    assert step_of(np.array([0.0, 0, 0, 0, 0.31, 1.77])) == 0.0
    assert step_of(np.full(5, 3.0)) == 0.0
    assert step_of(np.zeros(0)) == 0.0


def test_only_exact_cells_of_the_outputs_named_are_widened():
    lower = np.array([[0.0, 0], [0, 0], [0, 0], [1, 1], [5, 5], [-np.inf, 2]])
    seen = Observations(lower, np.where((lower == 5) | (lower < 0), np.inf, lower))
    wide = within_steps(seen, [1])
    np.testing.assert_array_equal(wide.lower[:, 0], seen.lower[:, 0])
    np.testing.assert_array_equal(wide.lower[:, 1], [-0.5, -0.5, -0.5, 0.5, 5, 1.5])
    np.testing.assert_array_equal(wide.upper[:, 1], [0.5, 0.5, 0.5, 1.5, np.inf, 2.5])


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
