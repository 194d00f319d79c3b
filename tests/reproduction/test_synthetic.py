"""The paper's synthetic outputs: where they are censored, and the moments of their model."""

import numpy as np
import pytest

from reproduction.synthetic import synthetic_pair


def test_the_pair_is_censored_inside_its_windows_only():
    pair = synthetic_pair(seed=3)
    inside = (pair.x >= 1.3) & (pair.x <= 5.5)
    np.testing.assert_array_equal(pair.censored[:, 0], inside)
    assert not pair.censored[:, 1].any()
    assert pair.x[[0, -1]].tolist() == [0.0, 10.0]
    assert len(pair.x) == 100
    assert np.all(pair.observed[pair.censored] <= pair.truth[pair.censored])
    np.testing.assert_array_equal(pair.observed[~pair.censored], pair.truth[~pair.censored])
    assert np.all(pair.observations().lower <= pair.truth)


def test_the_pair_may_be_censored_elsewhere_and_deeper():
    windows = (((1.0, 2.0), (4.0, 5.0)), ((1.5, 4.5),))
    mild, deep = (synthetic_pair(windows=windows, depth=d) for d in (0.1, 2.0))
    np.testing.assert_array_equal(mild.truth, deep.truth)
    np.testing.assert_array_equal(mild.censored, deep.censored)
    gap = (deep.truth - deep.observed)[deep.censored] / (mild.truth - mild.observed)[mild.censored]
    np.testing.assert_allclose(gap, 20.0)


@pytest.mark.slow
def test_the_pair_has_the_covariance_of_its_model():
    draws = [synthetic_pair(seed=s, n=21, correlation=0.6) for s in range(3000)]
    f = np.stack([d.mean for d in draws])
    log_scale = np.log(np.stack([d.scale for d in draws]))
    assert np.mean(f[:, 5] ** 2, axis=0) == pytest.approx([1.0, 1.0], abs=0.08)
    assert np.mean(f[:, 5, 0] * f[:, 5, 1]) == pytest.approx(0.6, abs=0.06)
    # x = 2.5 and x = 3: the mean of two RBF kernels, of lengthscales 0.7 and 2.
    expected = np.mean(np.exp(-0.5 * (0.5 / np.array([0.7, 2.0])) ** 2))
    assert np.mean(f[:, 5, 0] * f[:, 6, 0]) == pytest.approx(expected, abs=0.08)
    assert log_scale.mean() == pytest.approx(np.log(0.2), abs=0.02)
    assert log_scale[:, 5].std(axis=0) == pytest.approx([0.5, 0.5], abs=0.03)


def test_the_noise_of_the_pair_has_its_scale():
    pairs = [synthetic_pair(seed=seed) for seed in range(30)]
    assert np.std([(p.truth - p.mean) / p.scale for p in pairs]) == pytest.approx(1.0, abs=0.03)
