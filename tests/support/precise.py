"""Log likelihoods of every family in 45-digit arithmetic.

Each case is a family, its parameters and values y from one end of the tails to the other, to
probabilities of 1e-300 and below and to 40 standard deviations. Every y is tried as an exact
value, as a lower and as an upper bound, and as the end of intervals narrow and wide.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import mpmath as mp
import numpy as np

from censored_gp.likelihoods import as_likelihood

DIGITS = 45
INF = np.inf


def fraction(a, b, x):
    """The even and odd continued fraction of the incomplete beta function (DLMF 8.17.22)."""
    tiny = mp.mpf(10) ** -100
    total, c, d = mp.mpf(1), mp.mpf(1), mp.mpf(1) / (1 - (a + b) * x / (a + 1))
    total, m = d, 0
    while True:
        m += 1
        before = total
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + numerator * d or tiny)
            c = 1 + numerator / c or tiny
            total *= c * d
        if abs(total - before) < abs(total) * mp.mpf(10) ** (-DIGITS + 5):
            return total


@functools.cache
def beta_tails(a, b, x, y):
    """log I_x(a, b) and log I_y(b, a), y = 1 - x."""
    log_beta = mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)
    kernel = a * mp.log(x) + b * mp.log(y) - log_beta
    if x < (a + 1) / (a + b + 2):
        smaller = mp.exp(kernel) / a * fraction(a, b, x)
        return mp.log(smaller), mp.log1p(-smaller)
    smaller = mp.exp(kernel) / b * fraction(b, a, y)
    return mp.log1p(-smaller), mp.log(smaller)


@functools.cache
def gamma_tails(a, x):
    """log P(a, x) and log Q(a, x), by the power series or the integral's own routine."""
    if x < a + 1 or x < 20:
        term = total = mp.mpf(1)
        n = 0
        while term > total * mp.mpf(10) ** -DIGITS:
            n += 1
            term *= x / (a + n)
            total += term
        lower = mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1)) * total
        return mp.log(lower), mp.log1p(-lower)
    f, n = mp.mpf(0), int(200 + 40 * mp.sqrt(a))
    for k in range(n, 0, -1):
        f = k * (a - k) / (x - a + 2 * k + 1 + f)
    upper = mp.exp(a * mp.log(x) - x - mp.loggamma(a)) / (x + 1 - a + f)
    return mp.log1p(-upper), mp.log(upper)


def normal_tails(z):
    smaller = mp.erfc(abs(z) / mp.sqrt(2)) / 2
    tails = mp.log(smaller), mp.log1p(-smaller)
    return tails if z < 0 else tails[::-1]


def exponential_tails(h):
    return mp.log(-mp.expm1(-h)) if h < 1 else mp.log1p(-mp.exp(-h)), -h


def normal_density(z):
    return -z * z / 2 - mp.log(2 * mp.pi) / 2


def student_tails(t, df):
    _, outside = beta_tails(mp.mpf(1) / 2, df / 2, t * t / (df + t * t), df / (df + t * t))
    outside, rest = outside - mp.log(2), mp.log1p(-mp.exp(outside) / 2)
    return (outside, rest) if t < 0 else (rest, outside)


def student_density(t, df):
    constant = mp.loggamma((df + 1) / 2) - mp.loggamma(df / 2) - mp.log(mp.pi * df) / 2
    return constant - (df + 1) / 2 * mp.log1p(t * t / df)


def gamma_density(y, mean, shape):
    x = shape * y / mean
    return shape * mp.log(x) - x - mp.loggamma(shape) - mp.log(y)


def beta_shapes(odds, precision):
    return precision * odds / (1 + odds), precision / (1 + odds)


def beta_density(y, odds, precision):
    a, b = beta_shapes(odds, precision)
    log_beta = mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)
    return (a - 1) * mp.log(y) + (b - 1) * mp.log1p(-y) - log_beta


def count_tails(tails):
    """The tails of a count from (P(Y > k), P(Y <= k)), given that k may be -1."""
    return lambda k, *theta: (-mp.inf, mp.mpf(0)) if k < 0 else tails(k, *theta)[::-1]


def binomial_density(k, r, p, q):
    choose = mp.loggamma(k + r) - mp.loggamma(k + 1) - mp.loggamma(r)
    return choose + r * mp.log(p) + k * mp.log(q)


def mean_and_dispersion(mean, alpha):
    return 1 / alpha, 1 / (1 + alpha * mean), alpha * mean / (1 + alpha * mean)


def papers_own(mu, alpha):
    odds = mp.exp(mu * alpha)
    return 1 / alpha, odds / (1 + odds), 1 / (1 + odds)


def jumps(mean, phi, p):
    """How many amounts a Tweedie variable is the sum of, and their shape and scale."""
    return mean ** (2 - p) / (phi * (2 - p)), (2 - p) / (p - 1), phi * (p - 1) * mean ** (p - 1)


def likely_jumps(y, rate, shape, scale):
    """Every number of amounts that matters for the density and for the tails at y."""
    likeliest = (rate * (y / scale / shape) ** shape) ** (1 / (1 + shape))
    low, high = min(rate, likeliest), max(rate, likeliest)
    first = max(1, int(low - 12 * mp.sqrt(low)))
    return range(first, int(high + 12 * mp.sqrt(high)) + 30)


def tweedie_density(y, *theta):
    rate, shape, scale = jumps(*theta)
    if y == 0:
        return -rate
    numbers = likely_jumps(y, rate, shape, scale)
    log_z = mp.log(rate) + shape * mp.log(y / scale)
    logs = [j * log_z - mp.loggamma(j + 1) - mp.loggamma(j * shape) for j in numbers]
    return mp.log(mp.fsum(map(mp.exp, logs))) - rate - y / scale - mp.log(y)


@functools.cache
def tweedie_tails(y, *theta):
    rate, shape, scale = jumps(*theta)
    if y == 0:
        return -rate, mp.log(-mp.expm1(-rate))
    lower, upper = mp.exp(-rate), mp.mpf(0)
    for j in likely_jumps(y, rate, shape, scale):
        below, above = gamma_tails(j * shape, y / scale)
        number = j * mp.log(rate) - rate - mp.loggamma(j + 1)
        lower, upper = lower + mp.exp(number + below), upper + mp.exp(number + above)
    if lower < upper:
        return mp.log(lower), mp.log1p(-lower)
    return mp.log1p(-upper), mp.log(upper)


class Case(NamedTuple):
    """A family's log density and log tails in mpmath, and where to look."""

    density: Callable
    tails: Callable
    points: list[tuple[tuple[float, ...], list[float]]]


def standardised(theta, zs):
    return theta, [theta[0] + theta[1] * z for z in zs]


def binomial_case(parameters, points):
    return Case(
        lambda y, *t: binomial_density(y, *parameters(*t)),
        count_tails(
            lambda k, *t: beta_tails(k + 1, parameters(*t)[0], parameters(*t)[2], parameters(*t)[1])
        ),
        points,
    )


CASES = {
    "gaussian": Case(
        lambda y, m, s: normal_density((y - m) / s) - mp.log(s),
        lambda y, m, s: normal_tails((y - m) / s),
        [
            standardised((1.5, 0.5), [-40, -37.7, -14, -3, -0.2, 0.3, 4, 12, 40]),
            standardised((-1e3, 20.0), [-25, 1e-3, 25]),
        ],
    ),
    "student_t": Case(
        lambda y, m, s, v: student_density((y - m) / s, v) - mp.log(s),
        lambda y, m, s, v: student_tails((y - m) / s, v),
        [
            ((0.5, 2.0, 0.7), [-1e10, -40.0, 0.6, 80.0]),
            ((0.0, 1.0, 30.0), [-1e10, -2.0, 1e-3, 40.0]),
            ((0.0, 1.0, 300.0), [-40.0, 0.5, 300.0]),
            ((0.0, 1.0, 1e8), [-30.0, 0.5, 37.0]),
        ],
    ),
    "log_normal": Case(
        lambda y, m, s: normal_density((mp.log(y) - m) / s) - mp.log(s) - mp.log(y),
        lambda y, m, s: normal_tails((mp.log(y) - m) / s),
        [((0.3, 0.7), [float(np.exp(0.3 + 0.7 * z)) for z in (-40, -5, 0.1, 3, 40)])],
    ),
    "gamma": Case(
        gamma_density,
        lambda y, m, a: gamma_tails(a, a * y / m),
        [
            ((2.0, 0.3), [1e-200, 1e-3, 1.0, 60.0, 4000.0]),
            ((2.0, 3.0), [1e-100, 0.1, 2.1, 20.0, 460.0]),
            ((10.0, 50.0), [1e-5, 4.0, 9.9, 11.0, 30.0, 180.0]),
            ((1.0, 1e4), [0.68, 1.003, 1.4]),
        ],
    ),
    "tweedie": Case(
        tweedie_density,
        tweedie_tails,
        [
            ((4.0, 2.0, 1.5), [0.0, 1e-6, 0.1, 4.0, 100.0]),
            ((0.05, 3.0, 1.3), [0.0, 1.0]),
            ((2.0, 0.4, 1.1), [0.3, 2.1]),
            ((20.0, 0.8, 1.6), [1.0, 25.0]),
            ((1.0, 1.5, 1.9), [1e-6, 10.0]),
        ],
    ),
    "exponential": Case(
        lambda y, m: -y / m - mp.log(m),
        lambda y, m: exponential_tails(y / m),
        [((2.5,), [1e-290, 1e-3, 1.0, 10.0, 1700.0])],
    ),
    "weibull": Case(
        lambda y, s, k: mp.log(k / y) + k * mp.log(y / s) - (y / s) ** k,
        lambda y, s, k: exponential_tails((y / s) ** k),
        [((2.0, 1.7), [1e-250, 1e-5, 1.0, 3.0, 90.0]), ((0.5, 0.4), [1e-200, 0.1, 1e6])],
    ),
    "beta": Case(
        beta_density,
        lambda y, *t: beta_tails(*beta_shapes(*t), y, 1 - y),
        [
            ((0.7, 6.0), [1e-120, 0.1, 0.4, 0.9, 1 - 1e-9]),
            ((1e-3, 50.0), [1e-30, 1e-3, 0.5, 1 - 1e-6]),
            ((3.0, 0.5), [1e-200, 0.3, 0.999]),
            ((1.0, 1e4), [0.3, 0.497, 0.501, 0.55, 0.7]),
        ],
    ),
    "poisson": Case(
        lambda k, m: k * mp.log(m) - m - mp.loggamma(k + 1),
        count_tails(lambda k, m: gamma_tails(k + 1, m)),
        [
            ((1e-3,), [0, 1, 90]),
            ((3.0,), [0, 2, 20, 170]),
            ((60.0,), [0, 15, 59, 61, 110, 400]),
            ((1000.0,), [2, 700, 990, 1015, 2100]),
            ((2e4,), [16000, 20050]),
        ],
    ),
    "negative_binomial": binomial_case(
        mean_and_dispersion,
        [
            ((3.0, 0.5), [0, 2, 30, 1340]),
            ((50.0, 0.1), [0, 20, 50, 200, 1500]),
            ((50.0, 1e-8), [0, 20, 49, 90, 400]),
            ((1e3, 2.0), [0, 1, 800, 30000]),
            ((0.01, 30.0), [0, 3, 400]),
            ((1e4, 1e-6), [7000, 10020]),
        ],
    ),
    "paper_negative_binomial": binomial_case(
        papers_own, [((1.5, 0.4), [0, 2, 30, 500]), ((20.0, 0.05), [0, 3, 40])]
    ),
    "bernoulli": Case(
        lambda y, o: mp.log(o / (1 + o)) if y else -mp.log1p(o),
        count_tails(lambda k, o: (-mp.log1p(1 / o), -mp.log1p(o)) if k < 1 else (-mp.inf, 0)),
        [((0.3,), [0, 1]), ((1e-12,), [0, 1]), ((1e9,), [0, 1])],
    ),
}


def intervals(family):
    """Every y as a point, a lower bound, an upper bound, and an end of narrow and wide ones."""
    for theta, ys in CASES[family].points:
        yield from intervals_at(family, theta, ys)


def intervals_at(family, theta, ys):
    """Those of the values ys at one choice of parameters."""
    support = as_likelihood(family).support
    one_sided = family == "paper_negative_binomial"  # its intervals are those of the other
    for i, y in enumerate(ys):
        widths = [1, 7, 40] if support.discrete else [1e-9 * (abs(y) or 1.0), 1e-3 * abs(y)]
        bounds = [(y, y), (y, INF), (-INF, y)]
        # From an atom on, an interval is a lower tail.
        if not one_sided and not (support.atom and y == 0):
            bounds += [(y, end) for end in [y + w for w in widths] + ys[i + 1 : i + 2]]
        for lower, upper in bounds:
            if upper < support.upper or (upper == INF and lower > support.lower):
                yield (float(lower), float(upper), *theta)


def oracle(case, discrete, lower, upper, *theta):
    """log P(lower <= Y <= upper), or the log density at a point."""
    if lower == upper:
        return case.density(mp.mpf(lower), *theta)
    below = case.tails(mp.mpf(lower) - discrete, *theta) if lower > -INF else (-mp.inf, mp.mpf(0))
    above = case.tails(mp.mpf(upper), *theta) if upper < INF else (mp.mpf(0), -mp.inf)
    if lower == -INF or upper == INF:
        return above[0] if lower == -INF else below[1]
    outside = mp.exp(below[0]) + mp.exp(above[1])
    if outside < 0.5:
        return mp.log1p(-outside)
    if above[0] < below[1]:
        return mp.log(mp.exp(above[0]) - mp.exp(below[0]))
    return mp.log(mp.exp(below[1]) - mp.exp(above[1]))


def slope(function, theta, j):
    """The central difference in theta_j, exact to many more digits than are compared."""
    step = mp.mpf(10) ** -15 * max(abs(theta[j]), mp.mpf(10) ** -3)
    up, down = list(theta), list(theta)
    up[j], down[j] = theta[j] + step, theta[j] - step
    return (function(*up) - function(*down)) / (2 * step)
