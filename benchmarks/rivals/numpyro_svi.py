"""NumPyro: the same model in the weights of the kernels' features, by stochastic variational q."""

from __future__ import annotations

import os

# Its threads wait for each other for ever on a busy machine.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from common import Clock, arguments, write
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoLowRankMultivariateNormal

MOST = 168
"""Most inducing inputs of a kernel: the hours of a week."""
AVERAGED = 10
"""The bound is noisy: one of the trace is the mean of so many steps."""
WORDS = "exact q: one Gaussian of low rank, hyper-parameters included; steps are stochastic"


def main() -> None:
    """Fit by Adam; write moments of draws at the test rows."""
    numpyro.enable_x64()
    task, result, budget = arguments()
    y, flags = jnp.asarray(task.y), jnp.asarray(task.censored > 0)
    inputs = np.column_stack([task.hours, task.rain])
    new = np.column_stack([task.test_hours, task.test_rain])
    kernels, start = task.kernels, task.mixing
    # Distinct inputs of each kernel, and which of them each row has.
    found = []
    for smooth, column, period, _ in kernels:
        own, later = inputs[:, int(column)], new[:, int(column)]
        both = np.concatenate([own, later])
        distinct, index = np.unique(both if smooth else both % period, return_inverse=True)
        picked = np.linspace(0, len(distinct) - 1, min(MOST, len(distinct))).astype(int)
        found.append((distinct, distinct[picked], index[: len(own)], index[len(own) :]))

    def features(q, length):
        smooth, _, period, _ = kernels[q]
        distinct, inducing = found[q][:2]

        def covariance(a, b):
            apart = a[:, None] - b[None]
            wave = apart if smooth else jnp.sin(jnp.pi * apart / period)
            return jnp.exp((-0.5 if smooth else -2.0) * (wave / length) ** 2)

        gram = covariance(inducing, inducing) + 1e-6 * jnp.eye(len(inducing))
        factor = jnp.linalg.cholesky(gram)
        cross = covariance(inducing, distinct)
        return jax.scipy.linalg.solve_triangular(factor, cross, lower=True).T

    def model(y, flags):
        mean = numpyro.sample("mean", dist.Normal(jnp.asarray(task.mean), 1.0).to_event(1))
        total = {"train": mean, "test": mean}
        for q in range(len(kernels)):
            log = np.log(kernels[q, 3])
            length = jnp.exp(numpyro.sample(f"length {q}", dist.Normal(log, 1.0)))
            mixing = numpyro.sample(f"mixing {q}", dist.Normal(start[q], 0.5).to_event(2))
            size = (len(found[q][1]), start.shape[2])
            weights = numpyro.sample(f"weights {q}", dist.Normal(jnp.zeros(size), 1.0).to_event(2))
            values = features(q, length) @ weights @ mixing.T
            total = {
                "train": total["train"] + values[found[q][2]],
                "test": total["test"] + values[found[q][3]],
            }
        numpyro.deterministic("test", total["test"])
        rate = jnp.exp(total["train"])
        density = dist.Poisson(rate).log_prob(y)
        above = jnp.log(jax.scipy.special.gammainc(jnp.maximum(y, 1.0), rate) + 1e-300)
        cells = jnp.where(flags, jnp.where(y > 0, above, 0.0), density)
        numpyro.factor("cells", cells.sum())

    guide = AutoLowRankMultivariateNormal(model, rank=20, init_scale=0.05)
    svi = SVI(model, guide, numpyro.optim.Adam(0.01), Trace_ELBO())
    state = svi.init(jax.random.key(0), y, flags)

    step = jax.jit(lambda state: svi.update(state, y, flags))
    step(state)
    clock, going = Clock(budget), True
    while going:
        losses = []
        for _ in range(AVERAGED):
            state, loss = step(state)
            losses.append(float(loss))
        going = clock.tick(-float(np.mean(losses)))
    draws = guide.sample_posterior(jax.random.key(1), svi.get_params(state), sample_shape=(500,))
    predictive = numpyro.infer.Predictive(model, draws, return_sites=["test"])
    values = np.asarray(predictive(jax.random.key(2), y, flags)["test"])
    write(result, values.mean(axis=0), values.std(axis=0), clock.trace, 0.0, WORDS)


if __name__ == "__main__":
    main()
