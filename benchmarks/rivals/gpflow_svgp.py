"""GPflow: the same model by SVGP over (input, output) with natural gradients."""

from __future__ import annotations

import math
import os

os.environ |= {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "CUDA_VISIBLE_DEVICES": "-1",
    "TF_USE_LEGACY_KERAS": "1",
}

import gpflow
import numpy as np
import tensorflow as tf
from common import INDUCING, NODES, Clock, arguments, stacked, write

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)


class Coregionalised(gpflow.kernels.Kernel):
    """sum_q (A_q A_q')[d, d'] k_q(x, x') over rows (hours, rain, d)."""

    def __init__(self, kernels: np.ndarray, mixing: np.ndarray) -> None:
        super().__init__()
        self.form = kernels[:, :3]
        self.lengths = gpflow.Parameter(
            kernels[:, 3], transform=gpflow.utilities.positive(base="exp")
        )
        self.mixing = gpflow.Parameter(mixing)

    def K(self, X, X2=None):
        """Return the covariance of two sets of rows."""
        X2 = X if X2 is None else X2
        first, last = tf.cast(X[:, 2], tf.int32), tf.cast(X2[:, 2], tf.int32)
        total = 0.0
        for q, (smooth, column, period) in enumerate(self.form):
            apart = X[:, None, int(column)] - X2[None, :, int(column)]
            wave = apart if smooth else tf.sin(math.pi * apart / period)
            own = tf.exp((-0.5 if smooth else -2.0) * tf.square(wave / self.lengths[q]))
            coupling = tf.matmul(self.mixing[q], self.mixing[q], transpose_b=True)
            total += tf.gather(tf.gather(coupling, first), last, axis=1) * own
        return total

    def K_diag(self, X):
        """Return prior variances."""
        by_output = tf.reduce_sum(tf.square(self.mixing), axis=(0, 2))
        return tf.gather(by_output, tf.cast(X[:, 2], tf.int32))


class Constants(gpflow.functions.MeanFunction):
    """One mean for each output."""

    def __init__(self, mean: np.ndarray) -> None:
        super().__init__()
        self.mean = gpflow.Parameter(mean)

    def __call__(self, X):
        return tf.gather(self.mean, tf.cast(X[:, 2], tf.int32))[:, None]


class CensoredPoisson(gpflow.likelihoods.ScalarLikelihood):
    """Counts (value, flag), log link."""

    def __init__(self) -> None:
        super().__init__()
        self.num_gauss_hermite_points = NODES

    def _scalar_log_prob(self, X, F, Y):
        value, flag = Y[..., :1], Y[..., 1:]
        density = value * F - tf.exp(F) - tf.math.lgamma(value + 1.0)
        above = tf.math.log(tf.math.igamma(tf.maximum(value, 1.0), tf.exp(F)) + 1e-300)
        return tf.where(flag > 0, tf.where(value > 0, above, 0.0 * F), density)

    def _variational_expectations(self, X, Fmu, Fvar, Y):
        points, weights = np.polynomial.hermite_e.hermegauss(NODES)
        F = Fmu + tf.sqrt(Fvar) * points
        return tf.linalg.matvec(self._scalar_log_prob(X, F, Y), weights / weights.sum())

    def _conditional_mean(self, X, F):
        return tf.exp(F)

    def _conditional_variance(self, X, F):
        return tf.exp(F)


def main() -> None:
    """Fit by turns of natural gradients and Adam; write moments at the test rows."""
    task, result, budget = arguments()
    rows, y, flags = stacked(task)
    outputs, hours = task.y.shape[1], len(task.hours)
    chosen = np.linspace(0, hours - 1, INDUCING).astype(int)
    inducing = rows[np.concatenate([chosen + d * hours for d in range(outputs)])]
    model = gpflow.models.SVGP(
        Coregionalised(task.kernels, task.mixing),
        CensoredPoisson(),
        inducing,
        mean_function=Constants(task.mean),
        num_data=len(rows),
    )
    gpflow.set_trainable(model.inducing_variable, False)
    gpflow.set_trainable(model.q_mu, False)
    gpflow.set_trainable(model.q_sqrt, False)
    data = tf.constant(rows), tf.constant(np.column_stack([y, flags]).astype(float))
    natural = gpflow.optimizers.NaturalGradient(gamma=0.2)
    adam = tf.keras.optimizers.Adam(0.05)
    loss = model.training_loss_closure(data, compile=False)

    @tf.function
    def step():
        natural.minimize(loss, [(model.q_mu, model.q_sqrt)])
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(model.trainable_variables)
            value = loss()
        gradients = tape.gradient(value, model.trainable_variables)
        adam.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return -value

    step()
    clock = Clock(budget)
    while clock.tick(float(step())):
        pass
    new = np.column_stack([task.test_hours, task.test_rain])
    found = [model.predict_f(np.column_stack([new, np.full(len(new), d)])) for d in range(outputs)]
    mean, variance = (np.concatenate([q[i].numpy() for q in found], axis=1) for i in (0, 1))
    words = (
        f"exact q ({INDUCING} inducing hours for each output); censoring without code of our own"
    )
    write(result, mean, np.sqrt(variance), clock.trace, 0.0, words)


if __name__ == "__main__":
    main()
