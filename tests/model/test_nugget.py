"""The variance of nuggets over a cycle."""

import numpy as np

from censored_gp.model.lmc import Nugget


def test_the_bumps_of_a_nugget_add_up_to_one_all_around_their_cycle():
    nugget = Nugget(np.ones((1, 1, 8)), 1, 24.0)
    inputs = np.stack([np.zeros(500), np.linspace(-60.0, 60.0, 500)], axis=1)
    bumps = nugget.bumps(inputs)
    np.testing.assert_allclose(bumps.sum(axis=1), 1.0)
    np.testing.assert_allclose(nugget.bumps(inputs + 24.0), bumps, atol=1e-9)
    np.testing.assert_allclose(nugget.bumps(np.array([[0.0, 3.0]]))[0], np.eye(8)[1], atol=1e-12)


def test_a_nugget_is_as_large_as_its_bump_says():
    nugget = Nugget(np.array([[[0.1, -0.5, 0.2]]]), 0, 6.0)
    found = nugget.variance(np.array([[0.0], [2.0], [4.0], [3.0]]))[0, :, 0]
    np.testing.assert_allclose(found, [0.01, 0.25, 0.04, (0.25 + 0.04) / 2])
