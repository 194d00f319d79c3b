"""Links: from the latent line to a parameter's domain and back."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from censored_gp.likelihoods.links import LINKS, Identity, Link, Softplus, as_link

LATENT = np.array([-30.0, -3.0, -1e-3, 0.0, 0.5, 4.0, 30.0])


@pytest.mark.parametrize("name", LINKS)
def test_inverse_undoes_the_link(name):
    link = as_link(name)
    # Next to one a number has fewer digits left than next to nought.
    near_one = {"logistic": LATENT[:-1], "exp_above_one": LATENT[1:], "one_to_two": LATENT[1:-1]}
    latent = near_one.get(name, LATENT)
    np.testing.assert_allclose(link.inverse(link(latent)), latent, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", LINKS)
def test_links_lead_where_they_say(name):
    link = as_link(name)
    assert (link.reach.lower, link.reach.upper) == (link(-np.inf), link(np.inf))


@pytest.mark.parametrize("name", LINKS)
def test_increasing_with_a_finite_slope_everywhere(name):
    slopes = jax.vmap(jax.grad(as_link(name)))(np.array([-700.0, *LATENT, 700.0]))
    assert np.all(np.isfinite(slopes))
    assert np.all(np.asarray(slopes[1:-1]) > 0)


def test_softplus_is_exp_far_below_and_identity_far_above():
    softplus = Softplus()
    np.testing.assert_allclose(softplus(-40.0), np.exp(-40.0), rtol=1e-15)
    assert softplus(800.0) == 800.0
    np.testing.assert_allclose(softplus.inverse(1e-12), np.log(1e-12), rtol=1e-12)
    assert softplus.inverse(800.0) == 800.0


def test_links_are_equal_by_kind_and_can_be_static():
    assert as_link("exp") == as_link("exp")
    assert hash(as_link("exp")) == hash(as_link("exp"))

    doubled = jax.jit(lambda link, f: 2.0 * link(f), static_argnums=0)
    np.testing.assert_allclose(doubled(as_link("exp"), jnp.zeros(2)), 2.0)


def test_a_link_of_ones_own_is_taken_as_it_is():
    class Square(Link):
        name = "square"

    own = Square()
    assert as_link(own) is own
    assert isinstance(as_link("identity"), Identity)


@pytest.mark.parametrize("wrong", ["log", 3])
def test_unknown_link_says_what_is_accepted(wrong):
    with pytest.raises(ValueError, match="identity, exp, softplus, logistic"):
        as_link(wrong)
