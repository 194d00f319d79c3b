"""The posterior predictive: moments, quantiles, probabilities and draws agree with each other."""

import functools
import math
from fractions import Fraction
from typing import Any

import jax
import numpy as np
import pytest
from scipy import integrate, stats

from censored_gp.data.observations import Observations
from censored_gp.inference import natural
from censored_gp.inference.natural import NaturalSettings
from censored_gp.inference.posterior import Posterior
from censored_gp.likelihoods import Gaussian, Poisson
from censored_gp.model.model import Units
from censored_gp.prediction import metrics, predictive
from censored_gp.prediction.predictive import Prediction, central_interval
from support import small

UNITS = Units(np.array([10.0, 0.0]), np.array([2.0, 1.0]))
NEW = np.array([[-4.0], [0.3], [2.0], [5.0], [9.5]])
NAMES = ("level", "count")


@pytest.fixture(scope="module")
def posterior():
    """A Gaussian with a noise of its own at every row, and a Poisson, coupled."""
    kernels = {"mean": (small.RBF(1.5),), "scale": (small.RBF(3.0),)}
    with jax.enable_x64(True):
        task = small.make_task((Gaussian(), Poisson()), kernels, rows=12, censored=(0.25, 0.0))
        return natural.fit(task, NaturalSettings(learn=False))[0]


@pytest.fixture(scope="module")
def prediction(posterior):
    return Prediction(posterior, UNITS, NEW, NAMES)


@functools.cache
def impute(family):
    """A censored output of one family imputed, with its bounds in the user's units."""
    place = 0 if isinstance(family, Gaussian) else 1
    lower = np.array([[11.0, 3], [-np.inf, -np.inf], [9.6, 2], [10.6, 4], [-np.inf, -np.inf]])
    upper = np.array([[np.inf, np.inf], [10.2, 2], [10.8, 6], [10.6, 4], [np.inf, np.inf]])
    bounds = Observations(lower[:, [place]], upper[:, [place]])
    units = Units(UNITS.shift[[place]], UNITS.scale[[place]])
    with jax.enable_x64(True):
        task = small.single(family, rows=12, censored=0.0)
        fitted, _ = natural.fit(task, NaturalSettings(learn=False))
    cut = Prediction(fitted, units, NEW, ("y",), units.apply(bounds))
    return Prediction(fitted, units, NEW, ("y",)), cut, bounds.lower, bounds.upper


# Counts take long to compile: their tails are series, and every kind of bound has its own.
@pytest.fixture(
    scope="module",
    params=[Gaussian(), pytest.param(Poisson(), marks=pytest.mark.slow)],
    ids=lambda family: type(family).__name__,
)
def imputation(request):
    return impute(request.param)


@pytest.mark.parametrize("level", [0.001, 0.3, 0.5, 0.99])
def test_quantiles_invert_the_cdf(prediction, level):
    found = prediction.quantile(level)
    reached = prediction.cdf(found)
    np.testing.assert_allclose(reached[:, 0], level, rtol=1e-9)
    assert np.all(reached[:, 1] >= level - 1e-9)
    below = prediction.cdf(found - 1.0)[:, 1]
    assert np.all((below < level) | (found[:, 1] == 0))


def test_several_levels_give_a_leading_axis_and_intervals_are_quantiles(prediction):
    several = prediction.quantile([0.05, 0.95])
    assert several.shape == (2, 5, 2)
    low, high = prediction.interval(0.9)
    np.testing.assert_allclose(several[0], low, rtol=1e-12)
    np.testing.assert_allclose(several[1, :, 0], high[:, 0], rtol=1e-12)
    assert np.all(several[0] < several[1])


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_intervals_of_counts_hold_enough_and_with_a_smaller_end_would_not(prediction, probability):
    low, high = prediction.interval(probability)
    start, upto, before = (prediction.cdf(y)[:, 1] for y in (low - 1.0, high, high - 1.0))
    assert np.all(upto - start >= probability - 1e-9)
    assert np.all((before - start < probability) | (high == low)[:, 1])
    assert np.all(start < (1 - probability) / 2), "no more is left out below than may be"


def test_intervals_of_draws_are_those_of_what_they_are_drawn_from():
    """At rates at which the lower end is nought, just above it, and far from it."""
    rates = np.array([0.1, 0.8, 2.5, 3.5, 40.0])
    drawn = np.random.default_rng(0).poisson(rates, size=(200_000, 5))[:, :, None]
    low, high = central_interval(drawn.astype(float), 0.9)
    start = stats.poisson(rates).ppf(0.05)
    np.testing.assert_array_equal(low[:, 0], start)
    level = 0.9 + stats.poisson(rates).cdf(start - 1.0)
    np.testing.assert_array_equal(high[:, 0], stats.poisson(rates).ppf(level))


@pytest.mark.parametrize(("count", "probability"), [(40, 0.95), (40, 0.7), (10, 0.9), (3, 1e-13)])
def test_rounding_does_not_make_one_draw_more_of_an_interval(count, probability):
    low, high = central_interval(np.arange(1.0, count + 1)[:, None, None], probability)
    left_out = (1 - Fraction(str(probability))) / 2
    assert low == max(1, math.ceil(count * left_out))
    assert high - low + 1 == max(1, math.ceil(count * Fraction(str(probability))))


def test_intervals_of_continuous_draws_are_their_quantiles():
    drawn = np.random.default_rng(0).normal(size=(1000, 3, 1))
    ends = np.quantile(drawn, [0.05, 0.95], axis=0, method="inverted_cdf")
    order = np.sort(drawn, axis=0)
    for found, expected in zip(central_interval(drawn, 0.9), ends, strict=True):
        places = [np.searchsorted(order[:, k, 0], (found[k, 0], expected[k, 0])) for k in range(3)]
        assert np.max(np.abs(np.diff(places))) <= 1


def test_quantiles_are_remembered_but_not_given_away(prediction, monkeypatch):
    asked = []
    honest = prediction._evaluate
    monkeypatch.setattr(
        prediction, "_evaluate", lambda *a, **k: [asked.append(1), honest(*a, **k)][1]
    )
    once = prediction.quantile(0.71)
    before = once.copy()
    once += 1.0
    np.testing.assert_array_equal(prediction.quantile(0.71), before)
    assert len(asked) == 1
    for level in np.linspace(0.1, 0.9, 9):
        prediction.quantile(level)
    assert len(asked) <= 10
    assert len(prediction._levels) <= 8, "memory is bounded"
    np.testing.assert_array_equal(prediction.quantile([0.71])[0], before)


def test_intervals_are_not_given_away_either(prediction):
    once = prediction.interval(0.62)
    before = np.stack(once)
    for end in once:
        end += 1.0
    np.testing.assert_array_equal(prediction.interval(0.62), before)


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.5, float("nan")])
def test_an_interval_of_nothing_or_everything_is_refused(prediction, probability):
    with pytest.raises(ValueError, match="between 0 and 1"):
        prediction.interval(probability)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, float("nan")])
def test_levels_outside_zero_and_one_are_refused(prediction, level):
    with pytest.raises(ValueError, match="between 0 and 1"):
        prediction.quantile(level)


def test_density_integrates_to_one_with_the_moments(prediction):
    """The Gaussian mixture by quadrature over y, the Poisson one by adding up."""
    centre, spread = prediction.mean[:, 0], prediction.std[:, 0]
    z = np.linspace(-14, 14, 281)
    y = centre + spread * z[:, None]
    density = np.stack([np.exp(prediction.log_density(np.stack([v, v * 0], 1))[:, 0]) for v in y])
    weight = integrate.simpson(density, y, axis=0)
    np.testing.assert_allclose(weight, 1.0, atol=1e-6)
    np.testing.assert_allclose(integrate.simpson(density * y, y, axis=0), centre, rtol=1e-5)
    square = integrate.simpson(density * (y - centre) ** 2, y, axis=0)
    np.testing.assert_allclose(square, spread**2, rtol=1e-3)
    counts = np.arange(250.0)
    mass = np.stack(
        [np.exp(prediction.log_density(np.full((5, 2), k))[:, 1]) for k in counts], axis=1
    )
    np.testing.assert_allclose(mass.sum(axis=1), 1.0, atol=1e-6)
    np.testing.assert_allclose(mass @ counts, prediction.mean[:, 1], rtol=1e-4)


def test_probabilities_add_up(prediction):
    y = prediction.quantile(0.4)
    low, high = prediction.mean - prediction.std, prediction.mean + prediction.std
    infinite = np.full(y.shape, np.inf)
    np.testing.assert_allclose(
        np.exp(prediction.log_probability(-infinite, y)), prediction.cdf(y), rtol=1e-9
    )
    np.testing.assert_allclose(prediction.log_probability(-infinite, infinite), 0.0, atol=1e-9)
    between = np.exp(prediction.log_probability(low, high))[:, 0]
    np.testing.assert_allclose(
        between, (prediction.cdf(high) - prediction.cdf(low))[:, 0], rtol=1e-9
    )


def test_an_unknown_value_has_an_unknown_density(prediction):
    y = prediction.mean.round()
    y[2, 0] = np.nan
    found = prediction.log_density(y)
    assert np.isnan(found[2, 0])
    assert np.isfinite(found).sum() == found.size - 1


def test_what_cannot_be_is_infinitely_surprising_and_its_cdf_is_nought_or_one(prediction):
    y = np.tile([11.0, -1.0], (5, 1))
    assert np.all(prediction.log_density(y)[:, 1] == -np.inf)
    assert np.all(prediction.cdf(y)[:, 1] == 0.0)
    assert np.all(prediction.log_density(y + 0.5)[:, 1] == -np.inf)
    assert np.all(prediction.log_probability(y - 2.0, y)[:, 1] == -np.inf)
    np.testing.assert_allclose(prediction.cdf(np.full((5, 2), np.inf)), 1.0)
    np.testing.assert_array_equal(prediction.cdf(np.full((5, 2), -np.inf)), 0.0)
    assert metrics.nlpd(prediction, y) == np.inf
    assert np.isfinite(metrics.nlpd(prediction, np.where(y < 0, np.nan, y)))


def test_units_only_change_the_unit(posterior, prediction):
    plain = Prediction(posterior, Units(np.zeros(2), np.ones(2)), NEW, NAMES)
    np.testing.assert_allclose(prediction.mean, UNITS.shift + UNITS.scale * plain.mean)
    np.testing.assert_allclose(prediction.std, UNITS.scale * plain.std)
    y = prediction.mean.round()
    shifted = plain.log_density((y - UNITS.shift) / UNITS.scale) - np.log(UNITS.scale)
    np.testing.assert_allclose(prediction.log_density(y), shifted)


def test_samples_have_the_moments(prediction):
    drawn = prediction.sample(4000, random_state=0)
    assert drawn.shape == (4000, 5, 2)
    error = prediction.std / np.sqrt(4000)
    np.testing.assert_array_less(np.abs(drawn.mean(axis=0) - prediction.mean), 5 * error)
    np.testing.assert_allclose(drawn.std(axis=0), prediction.std, rtol=0.15)
    np.testing.assert_array_equal(drawn[:, :, 1], drawn[:, :, 1].round())


def test_some_of_the_outputs_are_answered_as_all_of_them_are(prediction):
    alone = prediction.of_outputs([1])
    assert (alone.shape, alone.names, list(alone.discrete)) == ((5, 1), ("count",), [True])
    np.testing.assert_allclose(alone.mean, prediction.mean[:, [1]], rtol=1e-12)
    turned = prediction.of_outputs([1, 0])
    np.testing.assert_allclose(turned.quantile(0.3), prediction.quantile(0.3)[:, ::-1], rtol=1e-9)
    np.testing.assert_array_equal(turned.of_outputs([0]).mean, alone.mean)


def test_cells_drawn_on_their_own_have_the_moments_too(prediction, monkeypatch):
    count = 20_000
    monkeypatch.setattr("censored_gp.prediction.predictive.MOST_ROWS", 3)
    drawn = prediction.sample(count, 0)
    error = prediction.std / np.sqrt(count)
    assert np.all(np.abs(drawn.mean(axis=0) - prediction.mean) < 5 * error)
    np.testing.assert_allclose(drawn.std(axis=0), prediction.std, rtol=0.05)


def test_many_draws_are_made_part_by_part(prediction, monkeypatch):
    monkeypatch.setattr(predictive, "MOST_DRAWN", 50)
    sizes, honest = [], prediction._sample
    monkeypatch.setattr(
        prediction, "_sample", lambda count, *own: (sizes.append(count), honest(count, *own))[1]
    )
    drawn = prediction.sample(12, 0)
    assert drawn.shape == (12, 5, 2)
    assert sizes == [4, 4, 4]
    assert len(set(drawn[:, 0, 0])) == 12
    parts = list(prediction.sample_in_chunks(11, 0))
    assert [len(part) for part in parts] == [4, 4, 3]
    np.testing.assert_array_equal(np.concatenate(parts), drawn[:11])


@pytest.mark.parametrize("count", [0, -1, 2.5])
def test_a_number_of_draws_that_is_none_is_refused(prediction, count):
    with pytest.raises(ValueError, match="positive integer"):
        prediction.sample(count)


def test_samples_follow_their_seed(prediction):
    first, again, other = (prediction.sample(4000, random_state=s) for s in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_parameters_and_latent_functions(prediction, posterior):
    """The mean role's parameter is the mean of the output; a Poisson has no scale."""
    found: Any = prediction.parameters()
    np.testing.assert_allclose(found["mean"], prediction.mean, rtol=1e-6)
    assert np.all(np.isnan(found["scale"][:, 1]))
    mean, deviation = prediction.latent()
    np.testing.assert_allclose(10.0 + 2.0 * mean["mean"][:, 0], found["mean"][:, 0], atol=1e-9)
    assert np.all(deviation["mean"] > 0)
    # Its scale is a standard deviation in the output's own unit, half of it for half the unit.
    half = Units(UNITS.shift, UNITS.scale / 2)
    other: Any = Prediction(posterior, half, NEW, NAMES).parameters()
    np.testing.assert_allclose(found["scale"][:, 0], 2.0 * other["scale"][:, 0])
    np.testing.assert_allclose(found["mean"][:, 1], other["mean"][:, 1])


def test_latent_functions_do_not_depend_on_the_other_rows(prediction, posterior, monkeypatch):
    monkeypatch.setattr("censored_gp.prediction.predictive.MOST_ROWS", 3)
    whole, _ = prediction.latent()
    alone, _ = Prediction(posterior, UNITS, NEW[:4], NAMES).latent()
    np.testing.assert_allclose(alone["mean"], whole["mean"][:4], rtol=1e-9)


def test_imputation_stays_within_its_bounds(imputation):
    _, imputed, lower, upper = imputation
    drawn = imputed.sample(500, random_state=0)
    for found in (imputed.mean, imputed.quantile(0.01), imputed.quantile(0.99), *drawn):
        assert np.all(found >= lower - 1e-9)
        assert np.all(found <= upper + 1e-9)
    exact = lower == upper
    np.testing.assert_allclose(imputed.mean[exact], lower[exact])
    np.testing.assert_allclose(imputed.std[exact], 0.0, atol=1e-6)
    error = imputed.std / np.sqrt(500)
    np.testing.assert_array_less(np.abs(drawn.mean(axis=0) - imputed.mean), 5 * error + 1e-9)


def test_imputation_without_bounds_is_prediction(imputation):
    plain, imputed, _, _ = imputation
    np.testing.assert_allclose(imputed.mean[4], plain.mean[4], rtol=1e-6)
    np.testing.assert_allclose(imputed.std[4], plain.std[4], rtol=1e-3)


def test_imputed_cdf_rises_from_nought_to_one_over_the_bounds(imputation):
    _, imputed, lower, upper = imputation
    has_lower, has_upper = np.isfinite(lower), np.isfinite(upper)
    np.testing.assert_allclose(imputed.cdf(np.where(has_upper, upper, 1e9)), 1.0, atol=1e-9)
    np.testing.assert_allclose(imputed.cdf(np.where(has_lower, lower - 1, -1e9)), 0.0, atol=1e-12)
    if not imputed.discrete[0]:
        # A bound is a point: it has no mass, though it has a density.
        at_lower = imputed.cdf(np.where(has_lower, lower, -1e9))[lower < upper]
        np.testing.assert_allclose(at_lower, 0.0, atol=1e-12)
        np.testing.assert_allclose(imputed.cdf(imputed.quantile(0.5))[:3], 0.5, rtol=1e-6)


def test_imputation_is_the_truncated_mixture():
    """Weights of the components stay, as the posterior has seen the bounds: checked by draws."""
    plain, imputed, lower, upper = impute(Gaussian())
    (mean, deviation), rng, place = plain.latent(), np.random.default_rng(0), 2
    f = mean["mean"][place] + deviation["mean"][place] * rng.normal(size=200_000)
    s = np.exp(mean["scale"][place])
    low, high = ((bound[place] - 10.0) / 2.0 for bound in (lower, upper))
    a, b = (low - f) / s, (high - f) / s
    each = f + s * (stats.norm.pdf(a) - stats.norm.pdf(b)) / (stats.norm.cdf(b) - stats.norm.cdf(a))
    np.testing.assert_allclose((imputed.mean[place] - 10.0) / 2.0, each.mean(), atol=2e-3)


def test_rows_are_computed_in_chunks_alike(prediction, posterior, monkeypatch):
    monkeypatch.setattr("censored_gp.prediction.predictive.MOST_ROWS", 3)
    monkeypatch.setattr("censored_gp.prediction.mixture.MOST_COMPONENTS", 2 * 256)
    chunked = Prediction(posterior, UNITS, NEW, NAMES)
    np.testing.assert_allclose(chunked.mean, prediction.mean, rtol=1e-12)


@pytest.mark.parametrize(
    ("most_rows", "most_kept", "times"), [(64, 2**20, 1), (3, 2**20, 6), (64, 9, 3)]
)
def test_nodes_of_few_rows_are_computed_once_for_all_questions(
    posterior, prediction, monkeypatch, most_rows, most_kept, times
):
    monkeypatch.setattr("censored_gp.prediction.predictive.MOST_ROWS", most_rows)
    monkeypatch.setattr("censored_gp.prediction.predictive.MOST_KEPT", most_kept)
    calls, compute = [], Posterior.nodes
    monkeypatch.setattr(Posterior, "nodes", lambda *own: calls.append(1) or compute(*own))
    asked = Prediction(posterior, UNITS, NEW, NAMES)
    mean, above, again = asked.mean, asked.cdf(asked.mean), asked.cdf(asked.mean + 1.0)
    # Those of counts, and those of Gaussian outputs, in which the location is held.
    assert len(calls) == 2 * times
    assert bool(asked._nodes) is (times == 1), "what is not used again is not kept"
    np.testing.assert_allclose(mean, prediction.mean, rtol=1e-12)
    np.testing.assert_allclose(above, prediction.cdf(mean), rtol=1e-12)
    assert np.all(again > above)


def test_outputs_of_one_family_are_found_again_in_their_order():
    """Gaussian, Poisson, Gaussian: answers are computed by family and put back in place."""
    families = (Gaussian(), Poisson(), Gaussian())
    kernels = {"mean": (small.RBF(1.5),), "scale": ()}
    task = small.make_task(families, kernels, rows=8, censored=0.0)
    fitted, _ = natural.fit(task, NaturalSettings(learn=False, max_iterations=2))
    units = Units(np.zeros(3), np.ones(3))
    found = Prediction(fitted, units, task.inputs, ("a", "b", "c"))
    mean, _ = found.latent()
    np.testing.assert_allclose(found.mean[:, [0, 2]], mean["mean"][:, [0, 2]], atol=1e-9)
    assert np.array_equal(found.discrete, [False, True, False])
    assert found.shape == (8, 3)


def test_draws_within_bounds_leave_what_was_seen_as_it_was():
    _, imputed, lower, upper = impute(Gaussian())
    drawn = imputed.sample(50, 0)
    seen = lower == upper
    np.testing.assert_allclose(drawn[:, seen], np.broadcast_to(lower[seen], (50, seen.sum())))
    assert np.all((drawn >= lower - 1e-9) & (drawn <= upper + 1e-9))
    assert np.all(np.ptp(drawn[:, ~seen], axis=0) > 0)


@pytest.mark.parametrize("family", ["gaussian", "log_normal"])
@pytest.mark.parametrize("hyperparameters", ["fixed", "mixed"])
@pytest.mark.parametrize("heteroscedastic", [False, True])
def test_far_from_little_noise_the_predictive_is_the_mixture_of_normals(
    family, hyperparameters, heteroscedastic
):
    # Between nodes of the location there would be gaps: it is 100 times as wide as the noise.
    from censored_gp import CensoredGP
    from censored_gp.kernels import RBF

    rng = np.random.default_rng(0)
    x = np.linspace(0.0, 6.0, 25)
    y = np.sin(x) + 0.01 * rng.normal(size=25)
    y[3] = np.nan
    model = CensoredGP(
        family,
        {"mean": RBF(1.0), "scale": RBF(9.0)},
        heteroscedastic=heteroscedastic,
        hyperparameters=hyperparameters,
    )
    model.fit(x[:, None], np.exp(y) if family == "log_normal" else y, rounded=0)
    found = model.predict_distribution([[20.0]])
    parts = [q for q, _ in found._posterior._parts()] if hyperparameters == "mixed" else None
    nodes, mass = np.polynomial.hermite_e.hermegauss(40)
    weight, centre, spread = [], [], []
    for q in parts or [found._posterior]:
        mean, variance = q.latent(found._inputs)
        scale = mean["scale"][0, 0] + np.sqrt(variance["scale"][0, 0]) * nodes
        centre += [np.full(40, mean["mean"][0, 0])]
        spread += [np.sqrt(variance["mean"][0, 0] + np.exp(2 * scale))]
        weight += [mass / mass.sum()]
    weight, centre, spread = (np.concatenate(a) for a in (weight, centre, spread))
    weight /= weight.sum()
    at = np.linspace(-1.5, 1.5, 31)[:, None]
    density = (weight * stats.norm.pdf(at, centre, spread)).sum(axis=1)
    cdf = (weight * stats.norm.cdf(at, centre, spread)).sum(axis=1)
    unit = found._units
    if family == "log_normal":
        values, size = unit.scale * np.exp(at), unit.scale * np.exp(at[:, 0])
    else:
        values, size = unit.shift + unit.scale * at, unit.scale
    many = model.predict_distribution(np.full((31, 1), 20.0))
    np.testing.assert_allclose(many.cdf(values)[:, 0], cdf, atol=1e-4)
    got = many.log_density(values)[:, 0]
    np.testing.assert_allclose(got, np.log(density / size), atol=2e-3)
    levels = found.quantile([0.05, 0.3, 0.9])[:, 0]
    np.testing.assert_allclose(found.cdf(levels[1]), 0.3, atol=1e-9)
    # A training cell of which nothing is known has its prediction.
    missing, predicted = model.imputation([3]), model.predict_distribution(x[3:4, None])
    np.testing.assert_allclose(missing.quantile(0.9), predicted.quantile(0.9), rtol=1e-6)


@pytest.mark.filterwarnings("ignore:The fit ran out of iterations")
def test_a_normal_family_with_a_nugget_has_predictions_for_cells_of_which_nothing_is_known():
    from censored_gp import CensoredGP

    class Scattered(Gaussian, register=False):
        nugget = True

    x = np.arange(12.0)[:, None]
    y = np.sin(x[:, 0]) + 0.3 * np.random.default_rng(0).normal(size=12)
    y[5] = np.nan
    model = CensoredGP(Scattered(), heteroscedastic=False, hyperparameters="fixed").fit(x, y)
    assert model.posterior_.sites
    missing, predicted = model.imputation([5]), model.predict_distribution(x[5:6])
    np.testing.assert_allclose(missing.mean, predicted.mean, rtol=1e-6)
    np.testing.assert_allclose(missing.quantile(0.9), predicted.quantile(0.9), rtol=1e-6)
