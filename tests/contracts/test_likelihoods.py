"""What every family must pass: against SciPy, against 45 digits, and identities.

A family that is defined in the package without a case here fails the first test.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
import scipy.stats as st

from censored_gp.likelihoods import FAMILIES, Likelihood, as_likelihood
from support import precise
from support.quick import quick

INF = np.inf
CELLS = 9
"""The number of cells of which a likelihood is evaluated at once."""
U = np.array([1e-8, 0.01, 0.3, 0.5, 0.9, 1 - 1e-8])


class TweedieOracle:
    """The sum of a Poisson number of gamma amounts: sums of SciPy's own functions."""

    def __init__(self, mean, phi, p):
        self.rate, self.shape = mean ** (2 - p) / (phi * (2 - p)), (2 - p) / (p - 1)
        self.scale, self.moments = phi * (p - 1) * mean ** (p - 1), (mean, phi * mean**p)

    def _sum(self, function, y):
        j = np.arange(1, 60)[:, None]
        parts = st.poisson.pmf(j, self.rate) * function(np.ravel(y), self.shape * j, 0, self.scale)
        return parts.sum(axis=0).reshape(np.shape(y))

    def pdf(self, y):
        return np.where(np.equal(y, 0), np.exp(-self.rate), self._sum(st.gamma.pdf, y))

    def logpdf(self, y):
        return np.log(self.pdf(y))

    def cdf(self, y):
        return np.where(np.less(y, 0), 0.0, np.exp(-self.rate) + self._sum(st.gamma.cdf, y))

    def logcdf(self, y):
        return np.log(self.cdf(y))

    def sf(self, y):
        return self._sum(st.gamma.sf, y)

    def ppf(self, u):
        grid = np.concatenate([[0.0], np.geomspace(1e-9, 100.0, 4000) * self.scale])
        u = np.asarray(u)
        y = np.interp(1 - u, self.sf(grid)[::-1], grid[::-1])
        for _ in range(5 if np.size(u) < 1000 else 0):
            y = np.maximum(y + (self.sf(y) - (1 - u)) / self.pdf(np.maximum(y, 1e-9)), 0.0)
        return np.where(u <= np.exp(-self.rate), 0.0, y)

    def mean(self):
        return self.moments[0]

    def var(self):
        return self.moments[1]

    def std(self):
        return np.sqrt(self.var())

    def rvs(self, count, random_state):
        rng = np.random.default_rng(random_state)
        return rng.gamma(self.shape * rng.poisson(self.rate, count)) * self.scale


CASES: dict[str, tuple[tuple[float, ...], Any]] = {
    "gaussian": ((1.3, 0.7), st.norm(1.3, 0.7)),
    "student_t": ((1.3, 0.7, 4.5), st.t(4.5, 1.3, 0.7)),
    "log_normal": ((0.3, 0.7), st.lognorm(0.7, scale=np.exp(0.3))),
    "gamma": ((2.0, 3.0), st.gamma(3.0, scale=2.0 / 3.0)),
    "tweedie": ((4.0, 2.0, 1.5), TweedieOracle(4.0, 2.0, 1.5)),
    "exponential": ((2.0,), st.expon(scale=2.0)),
    "weibull": ((2.0, 1.7), st.weibull_min(1.7, scale=2.0)),
    "beta": ((0.7, 6.0), st.beta(6.0 * 0.7 / 1.7, 6.0 / 1.7)),
    "poisson": ((4.2,), st.poisson(4.2)),
    "negative_binomial": ((4.2, 0.4), st.nbinom(2.5, 1.0 / (1.0 + 0.4 * 4.2))),
    "paper_negative_binomial": ((1.5, 0.4), st.nbinom(2.5, 1.0 / (1.0 + np.exp(-0.6)))),
    "bernoulli": ((0.6,), st.bernoulli(0.6 / 1.6)),
}

ODD = {
    "zeros": np.zeros(4),
    "one value": np.array([0.7]),
    "constant": np.full(5, 1.0),
    "nothing seen": np.array([np.nan, np.inf]),
    "huge": np.array([1e6, 3e6]),
    "tiny": np.array([1e-6, 3e-6]),
}


def test_every_family_has_a_case():
    built_in = {n for n, c in FAMILIES.items() if c.__module__.startswith("censored_gp.")}
    assert set(CASES) == set(precise.CASES) == built_in


# What follows is compiled once per family, whatever the test: shapes are the same.
log_likelihood = quick(lambda family, *args: family.log_likelihood(*args), static_argnums=0)
log_density = quick(lambda family, *args: family.log_density(*args), static_argnums=0)
moments_within = quick(lambda family, *args: family.moments_within(*args), static_argnums=0)


def evaluate(family, lower, upper, *theta):
    """Log likelihoods of at most `CELLS` cells of any kind."""
    cells = len(lower)
    bounds = [np.resize(np.asarray(each, float), CELLS) for each in (lower, upper)]
    return np.asarray(log_likelihood(family, *bounds, *map(np.float64, theta)))[:cells]


def density(family, y, *theta):
    """Log densities at up to 4096 points."""
    padded = np.resize(np.asarray(y, float), 4096)
    found = np.asarray(log_density(family, padded, *map(np.float64, theta)))
    return found[: np.size(y)].reshape(np.shape(y))


@functools.partial(quick, static_argnums=0)
def everything(family, y, u, *theta):
    """Tails anywhere, mean, variance and quantiles."""
    moments = family.mean(*theta), family.variance(*theta)
    return family.log_tails_anywhere(y, *theta), moments, family.quantile(u, *theta)


@pytest.fixture(params=CASES)
def case(request):
    theta, oracle = CASES[request.param]
    return as_likelihood(request.param), theta, oracle


# The paper's own negative binomial passes draws and moments on to the other.
@pytest.fixture(params=[name for name in CASES if name != "paper_negative_binomial"])
def distinct(request):
    theta, oracle = CASES[request.param]
    return as_likelihood(request.param), theta, oracle


def test_the_name_finds_the_family(case):
    family, _, _ = case
    assert FAMILIES[family.name] is type(family)


def test_density_tails_moments_and_quantiles_are_those_of_scipy(case):
    family, theta, oracle = case

    y = oracle.ppf(U)
    tails, moments, quantiles = everything(family, y, U, *theta)
    expected = oracle.logpmf(y) if family.support.discrete else oracle.logpdf(y)
    np.testing.assert_allclose(density(family, y, *theta), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.exp(tails[0]), oracle.cdf(y), rtol=1e-9)
    np.testing.assert_allclose(np.exp(tails[1]), oracle.sf(y), rtol=1e-7, atol=1e-15)
    np.testing.assert_allclose(moments, [oracle.mean(), oracle.var()], rtol=1e-9)
    np.testing.assert_allclose(quantiles, oracle.ppf(U), rtol=1e-9)


def test_the_density_integrates_to_one(case):
    family, theta, oracle = case
    if family.support.discrete:
        y, weight = np.arange(2.0 if family.support.upper == 1 else 500.0), 1.0
    else:
        levels = np.concatenate([np.geomspace(1e-9, 0.5, 25), 1 - np.geomspace(0.5, 1e-9, 25)[1:]])
        nodes, weights = np.polynomial.legendre.leggauss(12)
        edges = oracle.ppf(levels)[:, None]
        half = 0.5 * np.diff(edges, axis=0)
        y, weight = edges[:-1] + half * (1 + nodes), half * weights
    total = np.sum(weight * np.exp(density(family, y, *theta)))
    atom = oracle.cdf(0.0) if family.support.atom else 0.0
    np.testing.assert_allclose(total + atom, 1.0, atol=1e-7)


def cells_of_each_kind(name):
    """Bounds of one cell of every kind; the last three share out all there is."""
    family, (_, oracle) = as_likelihood(name), CASES[name]
    if name == "bernoulli":  # there is nothing between 0 and 1
        return {"exact": (0.0, 0.0), "left": (-INF, 0.0), "right": (1.0, INF)}
    low, high = oracle.ppf([0.3, 0.8])
    gap = 1.0 if family.support.discrete else 0.0
    bounds = {"exact": (low, low), "left": (-INF, low)}
    return bounds | {"interval": (low + gap, high), "right": (high + gap, INF)}


@pytest.mark.parametrize("name", CASES)
def test_kinds_add_up_to_one_and_a_missing_cell_contributes_nothing(name):
    bounds = np.array([*cells_of_each_kind(name).values(), (-INF, INF)])
    found = evaluate(as_likelihood(name), *bounds.T, *CASES[name][0])
    np.testing.assert_allclose(np.exp(found[1:-1]).sum(), 1.0, rtol=1e-12)
    assert found[-1] == 0.0


# One without and two with a rule of their own for intervals, one with an atom, two discrete ones.
@pytest.mark.parametrize(
    "name", ["exponential", "gaussian", "log_normal", "tweedie", "poisson", "bernoulli"]
)
def test_a_cell_of_a_known_kind_is_the_same_among_cells_of_any_kind(name):
    family, theta, bounds = as_likelihood(name), CASES[name][0], cells_of_each_kind(name)

    @quick
    def by_kind(*theta):
        return jnp.stack(
            [family.log_likelihood(*pair, *theta, kind=kind) for kind, pair in bounds.items()]
        )

    together = evaluate(family, *np.array([*bounds.values()]).T, *theta)
    np.testing.assert_allclose(together, by_kind(*theta), rtol=1e-12, atol=1e-15)


def test_an_interval_without_width_is_its_density(distinct):
    family, theta, oracle = distinct
    y = oracle.ppf(np.array([0.2, 0.4, 0.9]))
    if family.support.discrete:
        # Of Bernoulli there is one interval.
        y = np.zeros(3) if family.support.upper == 1 else y
        both = [density(family, y + k, *theta) for k in (0.0, 1.0)]
        expected, width, unit = np.logaddexp(*both), 1.0, 0.0
    else:
        width = 1e-8 * oracle.std()
        expected, unit = density(family, y, *theta), np.log((y + width) - y)
    found = evaluate(family, y, y + width, *theta) - unit
    np.testing.assert_allclose(found, expected, atol=1e-12 if family.support.discrete else 1e-6)


@pytest.mark.parametrize("name", CASES)
def test_what_cannot_be_has_no_density_and_no_mass(name):
    """Points and intervals outside the support, its ends, and points between counts."""
    family, (theta, _) = as_likelihood(name), CASES[name]
    support = family.support
    bounds = [(-INF, -INF), (INF, INF), (2.5, 2.5)] if support.discrete else []
    bounds += [] if support.discrete or support.atom else [(support.lower,) * 2]
    bounds += [] if support.discrete else [(support.upper,) * 2]
    bounds += [(-1.0, -1.0), (-3.0, -1.0), (-INF, -1.0)] if np.isfinite(support.lower) else []
    bounds += [(2.0, 2.0), (2.0, 3.0), (2.0, INF)] if np.isfinite(support.upper) else []
    assert np.all(evaluate(family, *np.array(bounds).T, *theta) == -INF)


@pytest.mark.parametrize("name", CASES)
def test_tails_are_nought_and_one_outside_the_support(name):
    family, (theta, _) = as_likelihood(name), CASES[name]
    below, above = family.support.lower, family.support.upper
    y = np.array([-INF, below - 1.0, family.support.inside[0], above + 1.0, INF, INF])
    (cdf, survival), *_ = everything(family, y, U, *theta)
    np.testing.assert_allclose(np.exp(cdf) + np.exp(survival), 1.0, rtol=1e-12)
    assert (cdf[0], cdf[-1]) == (-INF, 0.0)
    assert (cdf[1], cdf[3]) == (-INF, 0.0)
    assert np.isfinite(cdf[2])


@pytest.mark.parametrize("name", ["gaussian", "log_normal", "exponential", "weibull"])
def test_the_default_quantile_is_the_closed_one(name):
    theta, oracle = CASES[name]
    family = as_likelihood(name)
    found = quick(lambda u: Likelihood.quantile(family, u, *theta))(U)
    np.testing.assert_allclose(found, oracle.ppf(U), rtol=1e-9)


def test_draws_have_the_mean_and_spread(distinct):
    family, theta, oracle = distinct
    draws = quick(lambda key: family.sample(key, (4000,), *theta))(jax.random.key(3))
    assert np.all(family.support.contains(np.asarray(draws)))
    assert abs(np.mean(draws) - oracle.mean()) < 5 * oracle.std() / np.sqrt(4000)
    np.testing.assert_allclose(np.std(draws), oracle.std(), rtol=0.25)


@pytest.mark.parametrize("rate", [9e3, 1.1e4, 1e8, 1e12])
def test_draws_of_large_counts_follow_their_law(rate):
    """In single precision, as JAX draws, their spread is wrong by a fifth and more."""
    draws = quick(lambda key: as_likelihood("poisson").sample(key, (20_000,), rate))
    share = st.poisson(rate).cdf(np.asarray(draws(jax.random.key(0))))
    assert st.kstest(share, "uniform").pvalue > 1e-3


def test_draws_of_many_amounts_do_not_overflow():
    """Of 6e21 amounts on average, more than integers can count."""
    family = as_likelihood("tweedie")
    draws = quick(lambda key: family.sample(key, (100,), 1e3, 1e-20, 1.5))(jax.random.key(0))
    np.testing.assert_allclose(draws, 1e3, rtol=1e-9)


def test_moments_between_bounds_are_those_of_numerical_integration(distinct):
    family, theta, oracle = distinct
    lower = np.array([oracle.ppf(0.3), -np.inf, oracle.ppf(0.2), -np.inf])
    upper = np.array([np.inf, oracle.ppf(0.6), oracle.ppf(0.8), np.inf])

    mean, variance = moments_within(family, lower, upper, *theta)
    u = (np.arange(100_000) + 0.5) / 100_000
    for i in range(4):
        start, end = oracle.cdf(lower[i] - family.support.discrete), oracle.cdf(upper[i])
        draws = oracle.ppf(start + u * (end - start))
        np.testing.assert_allclose(mean[i], draws.mean(), rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(variance[i], draws.var(), rtol=2e-2, atol=1e-4)


@pytest.mark.parametrize("name", ["gaussian", "gamma", "poisson"])
def test_moments_beyond_one_bound_are_those_among_any_bounds(name):
    """Without a bound that no cell has there is less to compile, and the same to find."""
    family, (theta, oracle) = as_likelihood(name), CASES[name]
    lower, upper = np.full(4, oracle.ppf(0.3)), np.full(4, INF)
    found = quick(functools.partial(family.moments_within, kind="right"))(lower, upper, *theta)
    np.testing.assert_allclose(found, moments_within(family, lower, upper, *theta), rtol=1e-7)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("values", ODD.values(), ids=ODD.keys())
def test_starts_are_inside_the_domain_whatever_was_seen(name, values):
    family = as_likelihood(name)
    latent = [link.inverse(t) for link, t in zip(family.links, family.start(values), strict=True)]
    assert np.isfinite(latent).all()
    assert 0 < family.latent_spread(values) < np.inf


def test_starts_are_near_the_truth(case):
    family, theta, oracle = case
    values = oracle.rvs(4000, random_state=1)
    loss = density(family, values, *theta) - density(family, values, *family.start(values))
    assert loss.mean() < 0.2
    spread = family.latent_spread(values)
    assert 0.05 < spread < 5.0


def test_parameters_move_along_with_the_unit(case):
    """shift + scale Y has the density of Y, spread over the unit."""
    family, theta, oracle = case
    shift = 3.0 if family.rescale == "affine" else 0.0
    scale = 1.0 if family.rescale == "none" else 2.5
    y = oracle.ppf([0.2, 0.7])
    moved = family.rescaled(shift, scale, *theta)
    expected = density(family, y, *theta) - np.log(scale)
    found = density(family, shift + scale * y, *moved)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


SLOW = ("beta", "student_t", "paper_negative_binomial", "tweedie")
"""The tails of the first are those of the negative binomial in other clothes, and take as long to
compile; the last has sums of sums in 45 digits.
"""


@pytest.mark.parametrize(
    "family", [pytest.param(f, marks=pytest.mark.slow) if f in SLOW else f for f in CASES]
)
def test_values_and_derivatives_are_those_of_45_digits(family):
    """Values to 1e-10, derivatives in every parameter to 1e-6."""
    rows = list(precise.intervals(family))

    def total(lower, upper, *theta):
        values = as_likelihood(family).log_likelihood(lower, upper, *theta)
        return values.sum(), values

    assert not wrong(family, rows, total)


OWN_RULE = [f for f in CASES if type(as_likelihood(f)).log_interval is not Likelihood.log_interval]


@pytest.mark.parametrize("family", OWN_RULE)
def test_a_rule_of_its_own_for_intervals_is_right_to_45_digits(family):
    assert {"gaussian", "log_normal"} <= set(OWN_RULE)
    case = precise.CASES[family]
    rows = [r for r in precise.intervals(family) if r[0] < r[1] and np.isfinite(r[:2]).all()]
    # From next to nothing on, and to very much; what is more mpmath does not know.
    far = [(np.finfo(float).tiny, 5.0), (1e-300, 1e10), (2.0, 1e100), (3.0, 3.0 + 1e-12)]
    rows += [(*ends, *case.points[0][0]) for ends in far]

    def total(*arguments):
        values = as_likelihood(family).log_likelihood(*arguments, kind="interval")
        return values.sum(), values

    assert not wrong(family, rows, total)


def wrong(family, rows, total):
    """Return what is not right of values and of their slopes, each on a line."""
    case, discrete = precise.CASES[family], as_likelihood(family).support.discrete
    lower, upper, *theta = np.array(rows).T
    places = range(len(theta))
    gradient = quick(jax.grad(total, argnums=tuple(2 + j for j in places), has_aux=True))
    slopes, values = jax.tree.map(np.asarray, gradient(lower, upper, *theta))
    found_wrong = []
    with mp.workdps(precise.DIGITS):
        for i, (low, high, *parameters) in enumerate(rows):
            point = [mp.mpf(t) for t in parameters]
            function = functools.partial(precise.oracle, case, discrete, low, high)
            # A log density near zero means nothing; a log tail near zero is the other tail, and
            # must keep its digits.
            absolute = 1e-12 if low == high else 1e-290
            pairs = [("value", values[i], function(*point), 1e-10)]
            pairs += [(j, slopes[j][i], precise.slope(function, point, j), 1e-6) for j in places]
            for what, found, expected, relative in pairs:
                expected = float(expected)
                if not abs(found - expected) <= absolute + relative * abs(expected):
                    found_wrong.append((what, low, high, parameters, float(found), expected))
    return "\n".join(map(str, found_wrong))
