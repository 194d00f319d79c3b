"""What holds for a datum of any family: bounds, missing values, gradients, refusals."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from censored_gp.likelihoods import (
    COUNTS,
    FAMILIES,
    POSITIVE,
    UNIT,
    Exponential,
    Gaussian,
    Likelihood,
    Parameter,
    Poisson,
    StudentT,
    as_likelihood,
)
from censored_gp.likelihoods.links import Link
from censored_gp.likelihoods.quadrature import gauss_hermite
from support.quick import quick

INF = np.inf
THETA = {1: (1.2,), 2: (1.2, 0.8), 3: (1.2, 0.8, 3.0)}


# Compiled once per family and shape, whatever the test.
evaluate = quick(lambda family, *args: family.log_likelihood(*args), static_argnums=0)


def theta_of(family):
    return THETA[len(family.parameters)]


@pytest.mark.parametrize("family", [Gaussian(), Poisson(), Exponential()])
def test_missing_rows_and_infinite_bounds_leave_gradients_finite(family):
    lower, upper = np.array([-INF, 1.0, -INF, 1.0]), np.array([INF, INF, 1.0, 1.0])

    @quick
    @jax.grad
    def gradient(latent):
        return family.log_likelihood(lower, upper, *family.theta(*latent)).sum()

    for value in (-700.0, -30.0, 0.0, 30.0, 700.0):
        latent = np.zeros((len(family.parameters), 4))
        latent[0, 0] = value
        slopes = gradient(latent)
        assert np.isfinite(slopes).all()
        assert np.all(slopes[:, 0] == 0.0)


def test_an_endless_parameter_of_a_missing_row_does_no_harm():
    @quick
    @functools.partial(jax.grad, argnums=(0, 1))
    def gradient(mean, scale):
        return Gaussian().log_likelihood(-INF, INF, mean, scale)

    assert gradient(INF, INF) == gradient(0.0, 0.0) == (0.0, 0.0)


def test_at_least_includes_the_count_itself():
    family, k, rate = Poisson(), np.array([0.0, 1.0, 7.0]), 3.0
    survival, at_least, density = quick(
        lambda *a: (family.log_survival(*a), family.log_at_least(*a), family.log_density(*a))
    )(k, rate)
    expected = np.logaddexp(survival, density)
    np.testing.assert_allclose(at_least, expected, rtol=1e-10, atol=1e-14)
    beyond = evaluate(family, k + 1.0, np.full(3, INF), rate)
    np.testing.assert_allclose(beyond, survival, rtol=1e-13)


def test_bounds_between_counts_move_to_the_counts_inside():
    lower, upper = np.array([2.5, 2.5, 2.0]), np.array([4.5, 3.2, 2.0])
    inside = np.ceil(lower), np.floor(upper)
    found, expected = (evaluate(Poisson(), *bounds, 3.0) for bounds in ((lower, upper), inside))
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_a_bound_that_excludes_nothing_is_no_bound():
    family = Exponential()
    lower, upper = np.array([-3.0, 0.0, 0.0]), np.array([2.0, 2.0, INF])
    below = quick(family.log_cdf)(2.0, 1.5)
    expected = np.array([below, below, 0.0])
    np.testing.assert_allclose(evaluate(family, lower, upper, 1.5), expected, rtol=1e-14)


def test_what_cannot_be_leaves_the_gradients_of_the_others_finite():
    y = np.array([-1.0, 0.0, 1.0])
    for name in ("log_normal", "weibull", "exponential"):
        family = as_likelihood(name)
        known = np.where(y == 1.0, family.support.inside[0], y)

        def total(theta, family=family, known=known):
            values = family.log_likelihood(known, known, *theta)
            return jnp.sum(jnp.where(jnp.isfinite(values), values, 0.0))

        slopes = np.array(quick(jax.grad(total))(theta_of(family)))
        assert np.all(np.isfinite(slopes) & (slopes != 0.0))


def test_tails_of_a_count_are_those_of_the_count_below():
    between, at = (quick(Poisson().log_tails_anywhere)(np.array(y), 3.0) for y in (2.7, 2.0))
    assert between == at


def test_rows_broadcast_against_nodes():
    lower, upper = np.array([[1.0], [0.5]]), np.array([[INF], [2.0]])
    nodes = np.linspace(-1.0, 1.0, 5)
    family = Gaussian()
    table = evaluate(family, lower, upper, nodes, 0.7)
    assert table.shape == (2, 5)
    one = [evaluate(family, lower[:, 0], upper[:, 0], m, 0.7) for m in nodes]
    np.testing.assert_allclose(np.stack(one, axis=1), table, rtol=1e-14)


def test_a_likelihood_is_static_and_equal_by_its_links():
    assert Gaussian() == Gaussian()
    assert Gaussian(scale="softplus") != Gaussian()
    assert repr(Gaussian(scale="softplus")) == "Gaussian(scale='softplus')"
    assert repr(Poisson()) == "Poisson()"
    assert jax.tree.leaves(StudentT()) == []


def test_refusals_say_what_is_accepted():
    with pytest.raises(ValueError, match=r"Gaussian.*mean, scale.*'sd'"):
        Gaussian(sd="exp")
    with pytest.raises(ValueError, match=r"identity, exp.*'log'"):
        Gaussian(scale="log")
    with pytest.raises(ValueError, match=r"gaussian.*'normal'"):
        as_likelihood("normal")
    with pytest.raises(TypeError, match="log_cdf, log_survival or log_tails"):
        type("Nothing", (Likelihood,), {"parameters": (), "support": POSITIVE})
    with pytest.raises(ValueError, match=r"kind.*exact, right, left, interval.*'share'"):
        Gaussian().log_likelihood(0.0, INF, 0.0, 1.0, kind="share")


@pytest.fixture
def registry():
    """Forget the families that a test defines."""
    before = dict(FAMILIES)
    yield FAMILIES
    FAMILIES.clear()
    FAMILIES.update(before)


def test_a_family_is_registered_by_being_defined(registry):
    class HalfNormal(Gaussian):
        """Named by its class."""

    class Other(Gaussian):
        """Named by hand."""

        name = "my_own"

    assert isinstance(as_likelihood("half_normal"), HalfNormal)
    assert isinstance(as_likelihood("my_own"), Other)
    assert (Gaussian.name, Other.name) == ("gaussian", "my_own")
    with pytest.raises(TypeError, match=r"'poisson'.*built-in"):
        type("Poisson", (Gaussian,), {"__module__": __name__})


def test_bounds_are_rounded_inward_in_numpy_and_in_jax():
    lower, upper = np.array([2.5, 2.0, -INF, 2.2]), np.array([4.5, INF, 3.0, 2.8])
    for bounds in ((lower, upper), (jnp.asarray(lower), jnp.asarray(upper))):
        low, high = COUNTS.round_inward(*bounds)
        assert type(low) is type(bounds[0])
        np.testing.assert_array_equal(low, [3.0, 2.0, -INF, 3.0])
        np.testing.assert_array_equal(high, [4.0, INF, 3.0, 2.0])
        np.testing.assert_array_equal(COUNTS.is_empty(low, high), [False, False, False, True])
        assert POSITIVE.round_inward(*bounds) == bounds


def make_family(*parameters):
    """A family with these parameters, made as a user's would be."""
    methods = {"log_cdf": lambda self, y, *theta: y, "log_density": lambda self, y, *theta: y}
    fields = {"__module__": __name__, "parameters": parameters, "support": POSITIVE}
    return type("Own", (Likelihood,), fields | methods)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Poisson(rate="identity"), r"Poisson: .*rate.*greater than 0.*'exp'.*'identity'"),
        (lambda: Gaussian(scale="identity"), r"scale.*greater than 0.*'softplus'"),
        (lambda: StudentT(df="exp"), r"df.*greater than 1.*'exp_above_one'"),
        (lambda: make_family(Parameter("a", "exp", "mean"))(a="identity"), r"Own: .*`a` .*than 0"),
        (lambda: make_family(Parameter("a", "logistic", "mean"))(a="exp"), "between 0 and 1"),
        (
            lambda: make_family(Parameter("a", "exp", "mean", UNIT))(),
            r"between 0 and 1.*'logistic'",
        ),
    ],
)
def test_links_that_leave_the_domain_are_refused(make, says):
    with pytest.raises(ValueError, match=says):
        make()


def test_links_that_stay_in_the_domain_are_taken():
    class Cube(Link):
        """A link of one's own that says nothing of where it leads."""

        name = "cube"

    for family in (Gaussian(mean="softplus"), Poisson(rate="logistic"), Poisson(rate=Cube())):
        assert len(family.links) == len(family.parameters)
    paper = as_likelihood("paper_negative_binomial")
    assert type(paper)(mu="identity").links[0].name == "identity"  # log-odds are any number


def test_roles_that_the_model_could_not_tell_apart_are_refused():
    twice = Parameter("a", "exp", "scale"), Parameter("b", "exp", "scale")
    with pytest.raises(TypeError, match=r"Own: .*mean, scale, shape.*scale, scale"):
        make_family(Parameter("m", "identity", "mean"), *twice)
    unheard: Any = "spread"
    with pytest.raises(TypeError, match=r"got spread"):
        make_family(Parameter("a", "exp", unheard))


def test_a_likelihood_is_taken_as_it_is():
    own = Poisson(rate="softplus")
    assert as_likelihood(own) is own
    assert isinstance(as_likelihood("poisson"), Poisson)


def test_supports_say_what_they_contain():
    values = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, INF, np.nan])
    expected = {
        "gaussian": [True, True, True, True, True, False, False],
        "gamma": [False, False, True, True, True, False, False],
        "beta": [False, False, True, False, False, False, False],
        "poisson": [False, True, False, True, True, False, False],
        "bernoulli": [False, True, False, True, False, False, False],
    }
    for name, inside in expected.items():
        support = as_likelihood(name).support
        np.testing.assert_array_equal(support.contains(values), inside)
        assert support.words


def test_derivatives_in_the_latent_are_those_of_the_link_times_the_parameter():
    family = Gaussian(scale="softplus")
    latent = jnp.array([0.2, -0.4])

    @quick
    @jax.grad
    def gradient(latent):
        return family.log_likelihood(1.0, INF, *family.theta(*latent), kind="right")

    mean, scale = family.theta(*latent)
    outer = quick(jax.grad(family.log_survival, argnums=2))(1.0, mean, scale)
    np.testing.assert_allclose(gradient(latent)[1], outer * jax.nn.sigmoid(-0.4), rtol=1e-12)


@pytest.mark.parametrize("varying", [1, 2])
def test_closed_forms_of_the_expected_log_density_are_the_quadrature(varying):
    """With the derivatives in means and variances, of which a fit makes its sites."""
    mean, variance = np.array([-1.0, 0.3, 2.0]), np.maximum([0.0, 0.2, 1.0], 1e-6)
    points, mass = gauss_hermite(60)
    nodes = [part.reshape(-1, 1) for part in np.meshgrid(*[points] * varying)]
    mass = np.prod(np.meshgrid(*[mass] * varying), axis=0).reshape(-1, 1)
    found = []
    # Other tests define families of their own.
    built_in = (k for k in FAMILIES.values() if k.__module__.startswith("censored_gp."))
    for family in (kind() for kind in built_in):
        count = len(family.parameters)
        if count < varying:
            continue
        y = np.array([0.0, 1.0, 7.0]) + 0.5 * (family.support.lower == 0.0)
        constant = [jnp.full(3, 0.4)] * (count - varying)

        def closed(m, v, family=family, constant=constant, y=y):
            spread = [*v, *[None] * len(constant)]
            return family.expected_log_density(y, [*m, *constant], spread)

        def summed(m, v, family=family, constant=constant, y=y):
            at = [own + jnp.sqrt(s) * z for own, s, z in zip(m, v, nodes, strict=True)]
            return jnp.sum(mass * family.log_density(y, *family.theta(*at, *constant)), axis=0)

        at = (
            tuple(scale * mean for scale in (1.0, 0.5)[:varying]),
            (variance, 0.2 * variance)[:varying],
        )
        if closed(*at) is None:
            continue
        found.append(family.name)
        for way in (lambda f: f, lambda f: jax.jacfwd(f, (0, 1))):
            both = (quick(way(f))(*at) for f in (closed, summed))
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-7), *both)
    assert {1: {"gaussian", "log_normal", "gamma", "poisson"}, 2: {"gaussian", "log_normal"}}[
        varying
    ] <= set(found)


def test_another_density_or_link_has_no_closed_form_of_its_parents():
    class Doubled(Poisson, register=False):
        def log_density(self, y, rate):
            return 2.0 * super().log_density(y, rate)

    one = np.ones(1)
    assert Poisson().expected_log_density(one, [one], [one]) is not None
    for family in (Doubled(), Poisson(rate="softplus")):
        assert family.expected_log_density(one, [one], [one]) is None
    softplus = Gaussian(scale="softplus")
    assert softplus.expected_log_density(one, [one, one], [one, one]) is None
