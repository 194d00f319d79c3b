"""GPyTorch: the same model by a variational GP over (input, output) with natural gradients."""

from __future__ import annotations

import math

import gpytorch
import numpy as np
import torch
from common import INDUCING, NODES, Clock, arguments, stacked, write

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


class Coregionalised(gpytorch.kernels.Kernel):
    """sum_q (A_q A_q')[d, d'] k_q(x, x') over rows (hours, rain, d)."""

    def __init__(self, kernels: np.ndarray, mixing: np.ndarray) -> None:
        super().__init__()
        self.smooth, self.column, self.period = (
            kernels[:, 0],
            kernels[:, 1].astype(int),
            kernels[:, 2],
        )
        self.lengths = torch.nn.Parameter(torch.tensor(np.log(kernels[:, 3])))
        self.mixing = torch.nn.Parameter(torch.tensor(mixing))

    def forward(self, x1, x2, diag=False, **_):
        """Return the covariance of two sets of rows."""
        first, last = x1[..., 2].long(), x2[..., 2].long()
        total = 0.0
        for q, length in enumerate(self.lengths.exp()):
            a, b = x1[..., self.column[q]], x2[..., self.column[q]]
            coupling = self.mixing[q] @ self.mixing[q].T
            if diag:
                total = total + coupling[first, last]
                continue
            apart = a[..., :, None] - b[..., None, :]
            if self.smooth[q]:
                own = torch.exp(-0.5 * (apart / length) ** 2)
            else:
                own = torch.exp(-2.0 * (torch.sin(math.pi * apart / self.period[q]) / length) ** 2)
            total = total + coupling[first[..., :, None], last[..., None, :]] * own
        return total


class Model(gpytorch.models.ApproximateGP):
    """The whitened variational GP."""

    def __init__(self, inducing, task) -> None:
        own = gpytorch.variational.NaturalVariationalDistribution(len(inducing))
        super().__init__(
            gpytorch.variational.VariationalStrategy(
                self, inducing, own, learn_inducing_locations=False
            )
        )
        self.constant = torch.nn.Parameter(torch.tensor(task.mean))
        self.kernel = Coregionalised(task.kernels, task.mixing)

    def forward(self, x):
        """Return the prior at some rows."""
        return gpytorch.distributions.MultivariateNormal(
            self.constant[x[..., 2].long()], self.kernel(x)
        )


def main() -> None:
    """Fit by turns of natural gradients and Adam; write moments at the test rows."""
    task, result, budget = arguments()
    rows, y, flags = (torch.tensor(array) for array in stacked(task))
    outputs, hours = task.y.shape[1], len(task.hours)
    chosen = np.linspace(0, hours - 1, INDUCING).astype(int)
    inducing = rows[np.concatenate([chosen + d * hours for d in range(outputs)])]
    points, weights = np.polynomial.hermite_e.hermegauss(NODES)
    points, weights = torch.tensor(points), torch.tensor(weights / weights.sum())
    model = Model(inducing, task)
    bound = flags & (y > 0)
    exact = ~flags

    def expected(mean, variance):
        rate = torch.exp(mean[:, None] + variance.sqrt()[:, None] * points)
        seen = y[exact, None]
        density = seen * rate[exact].log() - rate[exact] - torch.lgamma(seen + 1.0)
        above = torch.special.gammainc(y[bound, None], rate[bound]).clamp_min(1e-300).log()
        return (density @ weights).sum() + (above @ weights).sum()

    natural = gpytorch.optim.NGD(model.variational_parameters(), num_data=1, lr=0.1)
    adam = torch.optim.Adam(model.hyperparameters(), lr=0.05)
    model.train()
    with gpytorch.settings.cholesky_jitter(double_value=1e-6):
        model(rows)
        clock, going = Clock(budget), True
        while going:
            natural.zero_grad()
            adam.zero_grad()
            q = model(rows)
            elbo = expected(q.mean, q.variance) - model.variational_strategy.kl_divergence()
            (-elbo).backward()
            going = clock.tick(float(elbo.detach()))
            natural.step()
            adam.step()
        model.eval()
        with torch.no_grad():
            new = np.column_stack([task.test_hours, task.test_rain])
            found = [
                model(torch.tensor(np.column_stack([new, np.full(len(new), d)])))
                for d in range(outputs)
            ]
    mean, variance = (
        np.stack([getattr(q, name).numpy() for q in found], axis=1) for name in ("mean", "variance")
    )
    words = (
        f"exact q ({INDUCING} inducing hours for each output); censoring without code of our own"
    )
    write(result, mean, np.sqrt(variance), clock.trace, 0.0, words)


if __name__ == "__main__":
    main()
