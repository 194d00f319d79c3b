"""Scores against closed forms, limits and independent estimates."""

import numpy as np
import pytest
from scipy import integrate, stats

from censored_gp.data.observations import Observations
from censored_gp.prediction import metrics


class Frozen:
    """A predictive distribution made of scipy's frozen ones, one per output."""

    def __init__(self, *outputs, discrete=False):
        self.outputs = outputs
        self.names = tuple(f"y{d}" for d in range(len(outputs)))
        self.discrete = np.full(len(outputs), discrete)

    def _each(self, method, *arguments):
        columns = [
            getattr(o, method)(*(a[..., d] for a in arguments)) for d, o in enumerate(self.outputs)
        ]
        return np.stack(columns, axis=-1)

    @property
    def mean(self):
        return np.stack([np.atleast_1d(o.mean()) for o in self.outputs], axis=-1)

    def quantile(self, p):
        return np.stack([self._each("ppf", np.full((1, len(self.outputs)), q)) for q in p])

    def interval(self, probability):
        low = self._each("ppf", np.full((1, len(self.outputs)), (1 - probability) / 2))
        level = np.full(low.shape, (1 + probability) / 2)
        if self.discrete[0]:
            level = probability + self.cdf(low - 1.0)
        return low, self._each("ppf", level)

    def cdf(self, y):
        return self._each("cdf", y)

    def log_probability(self, lower, upper):
        start = lower - self.discrete
        with np.errstate(divide="ignore"):
            wide = np.log(self.cdf(upper) - self.cdf(start))
        point = self._each("logpmf" if self.discrete[0] else "logpdf", lower)
        return np.where(lower == upper, point, wide)


def gaussian(n=200, seed=0):
    rng = np.random.default_rng(seed)
    loc, scale = rng.normal(size=(2, n)), np.exp(rng.normal(size=(2, n)))
    prediction = Frozen(*(stats.norm(m, s) for m, s in zip(loc, scale, strict=True)))
    return prediction, loc.T, scale.T, (loc + scale * rng.normal(size=(2, n))).T


def poisson(rates, outputs=1):
    return Frozen(*[stats.poisson(np.asarray(rates, float))] * outputs, discrete=True)


def gaussian_crps(z):
    return z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi)


def right_censored(y):
    return Observations.from_bounds(y, np.full_like(y, np.inf))


def test_nlpd_is_the_sum_of_log_densities_and_per_point_their_mean():
    prediction, loc, scale, y = gaussian()
    log_density = stats.norm.logpdf(y, loc, scale)
    assert metrics.nlpd(prediction, y) == pytest.approx(-log_density.sum())
    assert metrics.nlpd(prediction, y, per_point=True) == pytest.approx(-log_density.mean())
    np.testing.assert_allclose(
        metrics.nlpd(prediction, y, per_output=True), -log_density.sum(axis=0)
    )


def test_nlpd_of_a_right_censored_cell_is_its_log_survival():
    prediction, loc, scale, y = gaussian()
    np.testing.assert_allclose(
        metrics.nlpd_cells(prediction, right_censored(y)), -stats.norm.logsf(y, loc, scale)
    )


def test_errors_are_those_of_the_appendix():
    y = np.array([[1.0], [2.0], [4.0], [9.0]])
    yhat = np.array([[1.5], [2.0], [3.0], [9.5]])
    assert metrics.mae(yhat, y) == pytest.approx(0.5)
    assert metrics.rmse(yhat, y) == pytest.approx(np.sqrt(1.5 / 4))
    assert metrics.r2(yhat, y) == pytest.approx(1 - 1.5 / 38.0)
    assert metrics.mae(yhat[:, 0], y[:, 0]) == pytest.approx(0.5)


def test_the_error_of_a_distribution_is_that_of_its_mean():
    prediction, loc, _, y = gaussian()
    for score in (metrics.mae, metrics.rmse, metrics.r2):
        assert score(prediction, y) == pytest.approx(score(loc, y))
    for score, power in ((metrics.mae, 1), (metrics.rmse, 2)):
        by_output = score(loc, y, per_output=True) ** power
        assert by_output.mean() == pytest.approx(score(loc, y) ** power)


def test_r2_is_nought_for_the_mean_one_for_the_truth_and_open_for_a_constant():
    y = np.random.default_rng(0).normal(size=(50, 1))
    assert metrics.r2(np.full_like(y, y.mean()), y) == pytest.approx(0.0)
    assert metrics.r2(y, y) == 1.0
    assert np.isnan(metrics.r2(y, np.ones_like(y)))


def test_unknown_truth_is_left_out_of_every_score():
    prediction, _, _, y = gaussian(n=30)
    holed = np.where(np.arange(30)[:, None] < 10, np.nan, y)
    part = Frozen(*(stats.norm(o.mean()[10:], o.std()[10:]) for o in prediction.outputs))
    whole, kept = metrics.scores(prediction, holed), metrics.scores(part, y[10:])
    for row in whole:
        assert whole[row] == pytest.approx(kept[row])
    assert whole["y0"]["cells"] == 20


def test_an_impossible_truth_counts():
    """A negative count, or a value above all that is possible: neither is left out."""
    y = np.array([[2.0], [-1.0], [np.nan]])
    table = metrics.scores(poisson([3.0, 3.0, 3.0]), y)["all"]
    assert table["cells"] == 2
    assert table["nlpd"] == table["nlpd_per_point"] == np.inf
    assert table["coverage"] == 0.5
    assert np.isfinite(table["crps"])
    never = Observations.from_bounds([[2.0]], [[3.0]])
    found = metrics.coverage(Frozen(stats.beta(2.0, 2.0)), never)
    assert (found.lower, found.upper, found.expected) == (0.0, 0.0, 0.0)


def test_a_prediction_that_is_not_there_shows():
    y = np.array([[1.0], [2.0], [4.0]])
    for score in (metrics.mae, metrics.rmse, metrics.r2):
        assert np.isnan(score(np.array([[1.0], [np.nan], [4.0]]), y))


def test_an_output_that_is_unknown_throughout_has_no_score():
    prediction, _, _, y = gaussian(n=5)
    table = metrics.scores(prediction, np.where([True, False], np.nan, y))
    assert table["y0"]["cells"] == 0
    assert all(np.isnan(v) for k, v in table["y0"].items() if k not in {"cells", "nlpd"})
    assert np.isfinite(table["y1"]["crps"])


def test_error_of_a_censored_cell_is_its_distance_from_the_interval():
    truth = Observations.from_bounds(
        [[3.0], [-np.inf], [1.0], [0.0]], [[np.inf], [5.0], [2.0], [9.0]]
    )
    assert metrics.mae(np.array([[1.0], [6.0], [4.0], [4.0]]), truth) == pytest.approx(5 / 4)


def test_shapes_that_disagree_are_named():
    with pytest.raises(ValueError, match=r"\(3, 1\).*\(200, 2\)"):
        metrics.crps(gaussian()[0], np.zeros(3))


def test_crps_equals_the_closed_form_of_the_gaussian_also_far_away():
    prediction, loc, scale, _ = gaussian()
    for z in (-30.0, -3.0, -0.4, 0.0, 1.7, 8.0):
        np.testing.assert_allclose(
            metrics.crps_cells(prediction, loc + scale * z), scale * gaussian_crps(z), rtol=2e-6
        )


@pytest.mark.parametrize(
    "family", [stats.t(3), stats.gamma(0.3), stats.lognorm(1.5), stats.expon(), stats.beta(0.5, 2)]
)
def test_crps_equals_the_energy_form_for_skewed_and_heavy_tails(family):
    # E|Y - y| - E|Y - Y'| / 2, by the midpoint rule over the quantile function; with
    # p = 3 v² - 2 v³ the nodes crowd at both ends, where the quantile is wild.
    y, v = float(family.ppf(0.8)), (np.arange(20_000) + 0.5) / 20_000
    p, dp = 3 * v**2 - 2 * v**3, 6 * (v - v**2) / 20_000
    q = family.ppf(p)
    energy = np.sum(dp * np.abs(q - y)) - np.sum(dp * q * (2 * p - 1))
    assert metrics.crps(Frozen(family), [[y]]) == pytest.approx(energy, rel=1e-4)


def test_crps_agrees_with_that_of_a_sample():
    family = stats.gamma(2.0)
    sample, y = family.rvs(20_000, random_state=1), 3.0
    ranked = np.sort(sample)
    spread = 2 * np.sum(ranked * (2 * np.arange(1, 20_001) - 20_001)) / 20_000**2
    estimate = np.abs(sample - y).mean() - spread / 2
    assert metrics.crps(Frozen(family), [[y]]) == pytest.approx(estimate, rel=0.02)


@pytest.mark.parametrize("rate", [0.05, 1.0, 12.0, 300.0, 40_000.0])
def test_crps_of_counts_is_the_sum_over_counts(rate):
    family = stats.poisson(rate)
    k = np.arange(family.ppf(1 - 1e-12) + 50)
    for y in family.ppf([0.02, 0.5, 0.9999]):
        expected = np.sum((family.cdf(k) - (k >= y)) ** 2)
        assert metrics.crps(poisson([rate]), [[y]]) == pytest.approx(expected, rel=2e-5)


@pytest.mark.parametrize(("dispersion", "tolerance"), [(1.0, 1e-5), (5.0, 1e-4), (20.0, 1e-3)])
def test_crps_of_overdispersed_counts_is_the_sum_over_counts(dispersion, tolerance):
    family = stats.nbinom(1 / dispersion, 1 / (1 + 50.0 * dispersion))
    k = np.arange(60_000)
    for y in (0.0, 7.0, 400.0):
        expected = np.sum((family.cdf(k) - (k >= y)) ** 2)
        found = metrics.crps(Frozen(family, discrete=True), [[y]])
        assert found == pytest.approx(expected, rel=tolerance)


def test_crps_of_a_censored_cell_integrates_what_is_known():
    prediction = Frozen(stats.norm(1.0, 2.0))
    below = integrate.quad(lambda x: stats.norm.cdf(x, 1.0, 2.0) ** 2, -20, 2.5)[0]
    above = integrate.quad(lambda x: stats.norm.sf(x, 1.0, 2.0) ** 2, 4.0, 25)[0]
    cases = {(2.5, np.inf): below, (-np.inf, 4.0): above, (2.5, 4.0): below + above}
    for (lower, upper), expected in cases.items():
        truth = Observations.from_bounds([[lower]], [[upper]])
        assert metrics.crps(prediction, truth) == pytest.approx(expected, rel=2e-6)


def test_crps_of_an_interval_shrinks_to_that_of_a_point():
    prediction = Frozen(stats.norm())
    truth = Observations.from_bounds([[0.7 - 1e-9]], [[0.7 + 1e-9]])
    assert metrics.crps(prediction, truth) == pytest.approx(gaussian_crps(0.7), rel=1e-7)


def test_threshold_weighted_crps_prefers_the_truth_and_the_plain_one_need_not():
    # Y ~ N(0, 1), hidden above a limit of 0: the mean score over many draws, for N(m, s).
    y = stats.norm.ppf((np.arange(4000) + 0.5) / 4000)[:, None]
    truth = Observations.from_capacity(np.minimum(y, 0.0), 0.0)
    candidates = [(0.0, 1.0), (-0.2, 1.0), (0.2, 1.0), (0.0, 0.8), (0.0, 1.2), (-0.3, 0.6)]

    def ranking(**options):
        predictions = [Frozen(stats.norm(np.full(4000, m), s)) for m, s in candidates]
        return int(np.argmin([metrics.crps(p, truth, **options) for p in predictions]))

    assert ranking(within=(-np.inf, 0.0)) == 0
    assert ranking() != 0


def test_coverage_of_the_right_prediction_is_its_level():
    prediction, _, _, y = gaussian(n=4000)
    found = metrics.coverage(prediction, y, 0.8)
    assert found.lower == found.upper == found.expected == pytest.approx(0.8, abs=0.02)


def test_expected_coverage_of_censored_truth_is_the_level_and_lies_between_the_bounds():
    prediction, loc, scale, y = gaussian(n=4000)
    limit = loc + 0.3 * scale
    truth = Observations.from_capacity(np.minimum(y, limit), limit)
    found = metrics.coverage(prediction, truth, 0.8)
    assert found.lower < 0.8 < found.upper
    assert found.expected == pytest.approx(0.8, abs=0.02)


def test_coverage_of_counts_is_that_of_their_own_intervals():
    """From 0 to 0 and from 1 to 6: the 95 % quantile of the first would be 1."""
    prediction = poisson([0.1, 0.1, 3.1, 3.1, 3.1, 3.1])
    truth = np.array([[0.0], [1.0], [0.0], [1.0], [6.0], [7.0]])
    assert metrics.coverage(prediction, truth).expected == pytest.approx(3 / 6)


def test_coverage_says_what_is_sure():
    prediction = Frozen(stats.norm(np.zeros(5)))
    # The 90 % interval is ±1.645: inside, outside, open, outside, open.
    lower = [[-1.0], [2.0], [0.0], [-9.0], [-np.inf]]
    upper = [[1.0], [np.inf], [np.inf], [-2.0], [0.0]]
    found = metrics.coverage(prediction, Observations.from_bounds(lower, upper))
    assert (found.lower, found.upper) == (0.2, 0.6)
    assert found.expected == pytest.approx((1 + 2 * 0.45 / 0.5) / 5)


def test_pit_of_the_right_prediction_is_uniform_however_it_was_censored():
    prediction, loc, scale, y = gaussian(n=4000)
    hidden = Observations.from_capacity(np.minimum(y, loc), loc)
    for truth in (y, hidden, Observations.from_rounding(np.round(2 * y) / 2, 0.5)):
        transform = metrics.pit(prediction, truth)
        assert np.all(transform.lower <= transform.upper)
        assert transform.deviation() < 0.02
        assert stats.kstest(transform.randomised(0).ravel(), "uniform").pvalue > 1e-3
    assert metrics.pit(Frozen(stats.norm(loc[:, 0] + 1, scale[:, 0])), y[:, 0]).deviation() > 0.1


def test_pit_of_counts_has_two_ends_and_is_uniform_between():
    rates = np.full(5000, 1.3)
    y = np.random.default_rng(0).poisson(1.3, (5000, 1)).astype(float)
    transform = metrics.pit(poisson(rates), y)
    np.testing.assert_allclose(transform.lower, stats.poisson.cdf(y - 1, 1.3))
    np.testing.assert_allclose(transform.upper, stats.poisson.cdf(y, 1.3))
    np.testing.assert_allclose(transform.mid(), (transform.lower + transform.upper) / 2)
    assert transform.deviation() < 0.02


def test_pit_of_a_right_censored_count_reaches_to_one():
    transform = metrics.pit(poisson([4.0]), right_censored(np.array([[3.0]])))
    assert transform.lower.item() == pytest.approx(stats.poisson.cdf(2, 4.0))
    assert transform.upper.item() == 1.0


def test_scores_have_a_row_per_output_and_one_for_all():
    prediction, _, _, y = gaussian(n=100)
    table = metrics.scores(prediction, y)
    assert list(table) == ["y0", "y1", "all"]
    assert table["all"]["nlpd"] == pytest.approx(table["y0"]["nlpd"] + table["y1"]["nlpd"])
    assert table["all"]["crps"] == pytest.approx(metrics.crps(prediction, y))
    assert table["y1"]["rmse"] == pytest.approx(metrics.rmse(prediction, y, per_output=True)[1])
    assert len({tuple(row) for row in table.values()}) == 1


def test_r2_by_likelihood_is_the_usual_one_of_exact_cells_with_the_variance_of_the_errors():
    rng = np.random.default_rng(3)
    mean = 1e3 * rng.normal(size=80)
    y = mean + 400 * rng.normal(size=80)
    weight = rng.uniform(0.5, 2, size=80)
    for w in (None, weight):
        error = np.sqrt(np.average((y - mean) ** 2, weights=w))
        spread = np.average((y - np.average(y, weights=w)) ** 2, weights=w)
        found = metrics.likelihood_r2(Frozen(stats.norm(mean, error)), Observations.exact(y), w)
        assert found == pytest.approx(1 - error**2 / spread, abs=1e-6)


def test_the_null_of_r2_by_likelihood_has_no_r2_and_the_truth_has_the_best():
    rng = np.random.default_rng(4)
    mean, noise = rng.normal(size=(2, 4000))
    y, limit = 5 + mean + 0.5 * noise, 5.2
    seen = Observations.from_capacity(np.minimum(y, limit), limit)
    kept, hidden = y[y < limit], int((y >= limit).sum())
    best = stats.norm(*stats.norm.fit(stats.CensoredData(kept, right=np.full(hidden, limit))))
    assert metrics.likelihood_r2(
        Frozen(stats.norm(np.full(4000, best.mean()), best.std())), seen
    ) == (pytest.approx(0.0, abs=1e-3))
    true, low = (Frozen(stats.norm(5 + shift + mean, 0.5)) for shift in (0.0, -0.1))
    # Between bounds nothing is known but half of the cells; 1 - noise / total variance is 0.8.
    assert 0.5 < metrics.likelihood_r2(true, seen)[0] < 0.8
    assert metrics.likelihood_r2(low, seen) < metrics.likelihood_r2(true, seen)
    # Exact cells alone prefer the model that is too low.
    exact = np.where(seen.is_exact, seen.lower, np.nan)
    assert metrics.r2(low.mean, exact) > metrics.r2(true.mean, exact)
    both = Observations.from_bounds(np.floor(y), np.floor(y) + 1)
    assert 0.3 < metrics.likelihood_r2(true, both)[0] < 0.8
    far = Observations([0.0, 1e12], [np.inf, 1e12 + 1.0])
    assert np.isfinite(metrics.likelihood_r2(Frozen(stats.norm(np.zeros(2), 1e12)), far)).all()
