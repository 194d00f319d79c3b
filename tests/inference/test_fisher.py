"""The curvature in the hyper-parameters against the textbook's formula over rows."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from censored_gp.inference import fisher, lookup
from censored_gp.inference.elbo import evaluate
from censored_gp.inference.fisher import fisher_information, from_vector, to_dense, to_vector
from censored_gp.inference.natural import (
    LEAST_DAMPING,
    LONGEST_STEP,
    damping_after,
    newton_step,
    starting_sites,
)
from censored_gp.kernels import RBF, Periodic, RationalQuadratic
from censored_gp.likelihoods import Gaussian, Poisson
from censored_gp.model.lmc import from_free, grams
from support import small
from support.quick import quick

JITTER = np.asarray(1e-10)
TWO = {"mean": (RBF(1.5), Periodic(4.0, 0.8)), "scale": (RationalQuadratic(2.0, 1.5),)}
CASES = {
    "coupled": lambda: small.make_task((Gaussian(), Poisson()), TWO, rows=9, censored=(0.25, 0)),
    "separate": lambda: small.separate(rows=9),
    "rank one": lambda: small.deficient(rows=9),
}


def covariance_and_mean(lmc, inputs):
    """Covariance and mean of gamma over all rows and outputs of a role, straight from Eq. (5)."""
    lmc = from_free(lmc)
    blocks, outputs = lmc.mean.shape
    size = len(inputs) * outputs
    total = jnp.zeros((blocks, size, size))
    for kernel, b in zip(lmc.kernels, lmc.coregionalization, strict=True):
        gram = grams(kernel, inputs, blocks)
        total += jnp.einsum("bde,bnm->bdnem", b, gram).reshape(blocks, size, size)
    if lmc.nugget is not None:
        own = jnp.swapaxes(lmc.nugget.variance(inputs), 1, 2).reshape(blocks, size)
        total += own[:, :, None] * jnp.eye(size)
    return total, jnp.repeat(lmc.mean, len(inputs), axis=1)


def textbook(task, free, sites):
    """tr(S^-1 dS_i S^-1 dS_j) / 2 + dm_i' S^-1 dm_j, with derivatives taken by JAX."""
    vector = to_vector(free)
    rows, total = len(task.inputs), np.zeros((len(vector), len(vector)))
    for role, site in sites.items():

        def both(v, role=role):
            return covariance_and_mean(from_vector_jax(v, free)[role], jnp.asarray(task.inputs))

        (cov, _), (d_cov, d_mean) = quick(lambda v: (both(v), jax.jacfwd(both)(v)))(vector)
        for block, precision in enumerate(np.asarray(site.precision)):
            noise = 1.0 / np.swapaxes(precision[:rows], 0, 1).ravel()
            inner = np.linalg.inv(np.asarray(cov[block]) + np.diag(noise))
            turned = np.einsum("ab,bcp->pac", inner, d_cov[block])
            total += 0.5 * np.einsum("pac,qca->pq", turned, turned)
            total += np.einsum("ap,ab,bq->pq", d_mean[block], inner, d_mean[block])
    return total


def from_vector_jax(vector, like):
    leaves, structure = jax.tree.flatten(like)
    ends = np.cumsum([np.size(leaf) for leaf in leaves])[:-1]
    parts = jnp.split(vector, ends)
    shaped = [part.reshape(np.shape(leaf)) for part, leaf in zip(parts, leaves, strict=True)]
    return jax.tree.unflatten(structure, shaped)


def found_and_expected(task):
    problem = task.problem(task.model)
    free = jax.tree.map(np.asarray, small.free_parameters(task))
    sites = starting_sites(free, problem)
    _, matrix = gradient_and_information(free, sites, problem)
    return free, matrix, textbook(task, free, sites)


def gradient_and_information(free, sites, problem):
    found = evaluate(free, sites, problem, JITTER)
    gradient = to_vector(found.gradient)
    return gradient, to_dense(fisher_information(free, found), len(gradient))


@pytest.mark.parametrize(
    "case",
    ["coupled", *(pytest.param(c, marks=pytest.mark.slow) for c in ("rank one", "separate"))],
)
def test_information_is_that_of_the_textbook(case):
    free, found, expected = found_and_expected(CASES[case]())
    # A role that is constant has no sites, and its information is empirical.
    varying = to_vector(
        {r: jax.tree.map(lambda a, m=m: a * 0 + m.varies, m) for r, m in free.items()}
    )
    kept = np.ix_(varying > 0, varying > 0)
    np.testing.assert_allclose(found[kept], expected[kept], rtol=1e-5, atol=1e-6 * expected.max())


@pytest.mark.slow
def test_information_about_nuggets_is_that_of_rows_which_share_little():
    """It leaves out what rows have in common: then it is the textbook's, and never more."""
    task = small.scattered(rows=9, missing=0.0)
    for scale, tolerance in ((1e-3, 1e-4), (1.0, None)):
        lmc = task.model.priors["mean"]
        mixing = tuple(scale * a for a in lmc.mixing)
        priors = task.model.priors | {"mean": dataclasses.replace(lmc, mixing=mixing)}
        other = dataclasses.replace(task, model=task.with_priors(priors))
        free, found, expected = found_and_expected(other)
        places = from_vector(np.arange(len(found)), free)["mean"].nugget.size.astype(int)
        # The Gaussian asks for none.
        assert not found[places[0, 0]].any()
        own = np.ix_(places[0, 1], places[0, 1])
        if tolerance:
            np.testing.assert_allclose(found[own], expected[own], rtol=tolerance)
        else:
            assert np.all(expected[own] >= found[own])


@pytest.mark.slow
def test_many_lengthscales_share_the_curvature_along_all_of_them():
    task = small.separate(rows=9)
    wide = np.concatenate([task.inputs, np.cos(task.inputs), task.inputs**2 / 10], axis=1)
    kernel = RBF(np.tile([1.5, 1.0, 2.0], (2, 1)), columns=(0, 1, 2))
    priors = task.model.priors | {
        "mean": dataclasses.replace(task.model.priors["mean"], kernels=(kernel,))
    }
    task = dataclasses.replace(task, inputs=wide, model=task.with_priors(priors))
    free, found, expected = found_and_expected(task)
    places = from_vector(np.arange(len(found)), free)
    for own in np.asarray(jax.tree.leaves(places["mean"].kernels)[0]).astype(int):
        together = expected[np.ix_(own, own)].sum()
        np.testing.assert_allclose(found[np.ix_(own, own)], together * np.eye(3), rtol=1e-5)


def test_of_many_outputs_kernels_have_the_information_of_few(monkeypatch):
    """And the coefficients of one output that of a regression on the latent functions."""
    task = small.many(rank=1)
    problem, free = task.problem(task.model), small.free_parameters(task)
    found = evaluate(free, starting_sites(free, problem), problem, JITTER)
    count = len(to_vector(free))
    blockwise = to_dense(fisher_information(free, found), count)
    places = from_vector(np.arange(count), free)["mean"]
    block = found.states["mean"].blocks[0]
    assert not block.by_output
    whole = dense_information(free, found, problem, monkeypatch)
    own = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(places.kernels)]).astype(int)
    kernels = np.ix_(own, own)
    np.testing.assert_allclose(blockwise[kernels], whole[kernels], rtol=1e-6)
    rows, precision = slice(0, len(problem.inputs)), starting_sites(free, problem)["mean"].precision
    means = np.hstack([*block.latent(rows), np.ones((rows.stop, 1))])
    for d in range(6):
        index = np.array([*(a[0, d, 0] for a in places.mixing), places.mean[0, d]]).astype(int)
        least = means.T @ (precision[0, :, d, None] * means)
        own = blockwise[np.ix_(index, index)]
        np.testing.assert_allclose(own[-1], least[-1], rtol=1e-8)
        # The latent functions are uncertain: their second moments exceed the squared means.
        assert np.all(np.linalg.eigvalsh(own - least) > -1e-8)


def dense_information(free, found, problem, monkeypatch):
    """The information with that of pairs of outputs, however many."""
    monkeypatch.setattr(fisher, "MOST_BY_OUTPUT", 10)
    monkeypatch.setattr(lookup, "MOST_BY_OUTPUT", 10)
    again = evaluate(free, starting_sites(free, problem), problem, JITTER)
    return to_dense(fisher_information(free, again), len(to_vector(free)))


def test_a_step_goes_uphill_and_not_too_far():
    task = CASES["coupled"]()
    problem, free = task.problem(task.model), jax.tree.map(np.asarray, small.free_parameters(task))
    found = evaluate(free, starting_sites(free, problem), problem, JITTER)
    gradient, known = to_vector(found.gradient), fisher_information(free, found)
    step = newton_step(free, gradient, known, LEAST_DAMPING)
    assert gradient @ step.change > step.promised > 0
    assert np.abs(step.change).max() <= LONGEST_STEP
    cautious = damping_after(LEAST_DAMPING, step.promised, gain=-1.0)
    shorter = newton_step(free, gradient, known, cautious)
    assert np.linalg.norm(shorter.change) < np.linalg.norm(step.change)


@pytest.mark.parametrize(("gain", "after"), [(-1.0, 16.0), (0.5, 4.0), (1.9, 2.0), (np.nan, 16.0)])
def test_damping_follows_what_steps_gained(gain, after):
    """A step promised two nats: it brought none of them, some, nearly all, or no number."""
    assert damping_after(4.0, 2.0, gain) == after
    assert damping_after(LEAST_DAMPING, 2.0, 2.0) == LEAST_DAMPING
