"""Grids against closed moments of the normal distribution."""

import numpy as np
import pytest
from scipy import special

from censored_gp.likelihoods.quadrature import NODES, even, gauss_hermite, grid


@pytest.mark.parametrize("count", [1, 8, 12, 20, 32])
def test_moments_are_exact_up_to_twice_the_nodes(count):
    nodes, weights = gauss_hermite(count)
    for power in range(min(2 * count, 20)):
        moment = 0.0 if power % 2 else special.factorial2(power - 1) if power else 1.0
        np.testing.assert_allclose(weights @ nodes**power, moment, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("varying", [(True,), (True, False), (False, True, True), (False, False)])
def test_grid_integrates_products_over_what_varies(varying):
    nodes, mass = grid(varying)
    assert nodes.shape == (NODES[sum(varying)] ** sum(varying), len(varying))
    np.testing.assert_allclose(mass.sum(), 1.0)
    np.testing.assert_allclose(mass @ nodes**2, np.array(varying, dtype=float), atol=1e-12)
    np.testing.assert_allclose(mass @ nodes, 0.0, atol=1e-12)
    np.testing.assert_allclose(
        mass @ np.prod(np.exp(0.3 * nodes), axis=1), np.exp(0.045) ** sum(varying)
    )


def test_what_does_not_vary_costs_nothing():
    assert len(grid((True, False, False))[0]) == NODES[1]
    assert not np.any(grid((True, False))[0][:, 1])


def test_too_wide_a_grid_is_refused_with_advice():
    with pytest.raises(ValueError, match=r"4 varying parameters.*constant") as refusal:
        grid((True,) * 4)
    assert "svi" not in str(refusal.value)  # its own bound is computed on the same grid


def test_evenly_spaced_nodes_are_as_exact_and_nowhere_far_apart():
    nodes, mass = even()
    for power, moment in {0: 1.0, 1: 0.0, 2: 1.0, 4: 3.0, 8: 105.0}.items():
        np.testing.assert_allclose(mass @ nodes**power, moment, atol=1e-9)
    np.testing.assert_allclose(mass @ np.exp(0.8 * nodes), np.exp(0.32), rtol=1e-9)
    assert np.diff(nodes).max() < 0.13 < np.diff(gauss_hermite(32)[0]).min()


def test_a_grid_is_even_in_one_dimension_alone():
    assert len(grid((True, False), evenly=True)[1]) == len(even()[1])
    assert len(grid((True, True), evenly=True)[1]) == NODES[2] ** 2
