"""The fit itself: how the bound rose, and how outputs move together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from censored_gp.data.errors import listed
from censored_gp.plotting.parts import words_of
from censored_gp.plotting.style import colours_on, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_coregionalization", "plot_elbo"]


def plot_elbo(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the evidence lower bound after every step: it rises, and settles.

    >>> from matplotlib.figure import Figure
    >>> from censored_gp import CensoredGP
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> model = CensoredGP(heteroscedastic=False).fit(X, np.sin(X[:, 0]).round(1))
    >>> len(plot_elbo(model, ax=Figure().subplots()).lines)
    1
    """
    ax, trace = new_axes(ax), np.asarray(model.report_.trace, dtype=float)
    line = {"color": colours_on(ax)["prediction"], "marker": ".", "linewidth": 1.4}
    ax.plot(np.arange(1, len(trace) + 1), trace, **line)
    known = trace[np.isfinite(trace)]
    if len(known) > 4:
        # The first steps may start so low that nothing else would be seen.
        low = np.quantile(known, 0.1)
        ax.set_ylim(low - 0.05 * (known.max() - low + 1e-9), None)
    ax.set(xlabel="evaluation", ylabel="evidence lower bound")
    ax.set_title(f"ELBO {model.elbo_:,.1f}, {model.report_.status}")
    return ax


def plot_coregionalization(
    model: Any, role: str = "mean", kernel: int | None = None, *, ax: Axes | None = None
) -> Axes:
    """Draw how far the outputs of a role move together, as correlations: over all kernels, or one.

    `kernel` is the position of a kernel among those of the role; None: all of them together.

    >>> from matplotlib.figure import Figure
    >>> from censored_gp import CensoredGP
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> y = np.column_stack([np.sin(X[:, 0]), np.cos(X[:, 0])]) + 0.1 * np.cos(37 * X)
    >>> model = CensoredGP(heteroscedastic=False).fit(X, y)
    >>> ax = plot_coregionalization(model, ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['y0', 'y1']
    """
    ax, (matrix, names, title) = new_axes(ax), _matrix(model, role, kernel)
    # Both ends of this scale are told apart by everybody, and its middle is pale.
    image = ax.imshow(matrix, cmap="PuOr", vmin=-1, vmax=1)
    if len(names) <= 12:
        for row, column in np.ndindex(*matrix.shape):
            ink = "white" if abs(matrix[row, column]) > 0.6 else "black"
            text = f"{matrix[row, column]:.2f}"
            ax.text(column, row, text, ha="center", va="center", color=ink, fontsize="small")
    places = np.arange(len(names))
    turned = max(map(len, names)) > 4
    ax.set_xticks(places, names, rotation=45 if turned else 0, ha="right" if turned else "center")
    ax.set_yticks(places, names)
    ax.grid(visible=False)
    ax.set_title(title)
    ax.figure.colorbar(image, ax=ax, shrink=0.8, label="correlation")
    return ax


def _matrix(
    model: Any, role: str, kernel: int | None
) -> tuple[Float[np.ndarray, "D D"], tuple[str, ...], str]:
    """Return correlations, names of the outputs, and a title."""
    from censored_gp.estimator.summary import prior_correlation

    prior, names = model.posterior_.model, model.output_names_
    if kernel is None:
        matrix = prior_correlation(prior, role)
        return matrix, tuple(names[d] for d in prior.priors[role].outputs), f"{role}: all kernels"
    lmc = prior.priors.get(role)
    count = 0 if lmc is None else len(lmc.kernels)
    if lmc is None or kernel not in range(count):
        words = words_of(lmc.kernels if lmc else (), model.columns_)
        raise ValueError(
            f"kernel: found {kernel!r} of role {role!r}. Accepted is a position from 0 to "
            f"{count - 1}: {listed(words)}."
        )
    total = np.zeros((len(lmc.outputs), len(lmc.outputs)))
    size = lmc.mean.shape[1]
    for block, part in enumerate(np.asarray(lmc.coregionalization[kernel])):
        place = slice(block * size, (block + 1) * size)
        total[place, place] = part
    scale = np.sqrt(np.maximum(np.diagonal(total), 1e-300))
    words = words_of(lmc.kernels, model.columns_)[kernel]
    return total / np.outer(scale, scale), tuple(names[d] for d in lmc.outputs), f"{role}: {words}"
