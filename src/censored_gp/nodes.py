"""A posterior's nodes at given inputs, and how questions are put to them, family by family.

The nodes are computed by a program for each shape of posterior, what is asked of them by a program
for each likelihood and question alone: it is these, with their tails, that take long to compile,
and all models of a family share them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Bool, Float

from censored_gp.chunks import coarse, slices
from censored_gp.likelihoods import Likelihood
from censored_gp.likelihoods.shares import given_share
from censored_gp.mixture import answers, weighed
from censored_gp.model import Units
from censored_gp.observations import Observations
from censored_gp.posterior import Latent, Posterior, Seen
from censored_gp.runtime import AnyArray, compiled, in_float64

__all__ = ["Bounds", "Nodes", "pad"]

Cells = Float[np.ndarray, "N D"]
Bounds = tuple[Float[np.ndarray, " K"], ...]
"""Both bounds of cells, then log odds if there are any; or nothing."""
MOST_ROWS = 4096
"""Rows whose nodes are computed at once: what bounds the memory."""
MOST_KEPT = 2**20
"""Latent values that are kept for the next question: what is asked once is asked again."""


@compiled
def _nodes(
    posterior: Posterior, inputs: Float[AnyArray, "N C"], seen: Seen
) -> tuple[Latent, Float[Array, "S"]]:
    """Return latent values at the inputs by role, and the weights of the nodes."""
    return posterior.nodes(inputs, seen)


class Nodes:
    """Rows of inputs at which a posterior is asked, bounds of their cells if there are any."""

    def __init__(
        self,
        posterior: Posterior,
        units: Units,
        inputs: Float[np.ndarray, "N C"],
        names: tuple[str, ...],
        bounds: Observations | None = None,
        seen: Seen | None = None,
    ) -> None:
        # How many rows there were in training must not decide what is compiled.
        self._posterior = dataclasses.replace(posterior, sites={})
        self._units, self._inputs = units, inputs
        self.names = names
        self._bounds, self._seen = bounds, seen or {}
        self._outputs = tuple(range(len(names)))
        self._kept: tuple[slice | None, Any] = None, None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and outputs.

        >>> from censored_gp import CGP
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> model.predict_distribution([[2.5], [3.5]]).shape
        (2, 1)
        """
        return len(self._inputs), len(self.names)

    @property
    def _likelihoods(self) -> list[Likelihood]:
        return [self._posterior.model.likelihoods[output] for output in self._outputs]

    def _to_units(self, y: Cells) -> Cells:
        return (np.asarray(y, dtype=float) - self._units.shift) / self._units.scale

    def _open_cells(self) -> Bool[np.ndarray, "N D"]:
        """Return which cells are not known exactly."""
        if self._bounds is None:
            return np.ones(self.shape, dtype=bool)
        return ~self._bounds.is_exact

    def _by_kind(
        self, likelihood: Likelihood, outputs: list[int], rows: slice = slice(None)
    ) -> Iterator[tuple[Likelihood, Bool[np.ndarray, " K"], Bounds]]:
        """Yield what the cells of a likelihood are drawn from, which they are, and all bounds.

        Shares are apart, and so is what may be a limit instead: its log odds are a third bound.
        """
        known = self._bounds
        if known is None:
            yield likelihood, np.ones(len(self._inputs[rows]) * len(outputs), dtype=bool), ()
            return
        cells = (known.lower, known.upper, known.limit_odds, known.is_share)
        lower, upper, odds, share = (each[rows][:, outputs].ravel() for each in cells)
        either = odds > 0
        if not share.all():
            yield likelihood, ~share, (lower, upper)
        if np.any(share & ~either):
            yield given_share(likelihood), share & ~either, (lower, upper)
        if either.any():
            log_odds = np.log(odds, out=np.full(odds.shape, -np.inf), where=either)
            yield given_share(likelihood), either, (lower, upper, log_odds)

    def _by_likelihood(
        self, latent: Mapping[str, Float[AnyArray, "S N O"]], size: int
    ) -> Iterator[tuple[Likelihood, list[int], tuple[Float[np.ndarray, "S K"], ...]]]:
        """Yield each likelihood with its outputs and the latent values of their cells, flat."""
        own = self._likelihoods
        for likelihood in dict.fromkeys(own):
            outputs = [place for place, other in enumerate(own) if other == likelihood]
            roles = [parameter.role for parameter in likelihood.parameters]
            yield (
                likelihood,
                outputs,
                tuple(self._of_role(latent[role], role, outputs, size) for role in roles),
            )

    def _of_role(
        self, values: Float[AnyArray, "S N O"], role: str, outputs: list[int], size: int
    ) -> Float[np.ndarray, "S K"]:
        """Return the latent values of a role, of the cells of some outputs, flat."""
        among = self._posterior.model.priors[role].outputs
        place = [among.index(self._outputs[d]) for d in outputs]
        return np.asarray(values)[:, :size][:, :, place].reshape(len(values), -1)

    def _alone(self, likelihood: Likelihood) -> bool:
        """Whether the nodes of cells know nothing yet of what was seen of the cells themselves."""
        return likelihood.nugget and bool(self._seen)

    def _weighed_nodes(
        self, family: Likelihood, outputs: list[int], place: Bool[np.ndarray, " K"], bounds: Bounds
    ) -> tuple[Float[np.ndarray, "S K"], Float[np.ndarray, "S K"]]:
        """Return nodes of the means of some cells, and their weights after the cells were seen."""
        found, roles = [], [parameter.role for parameter in family.parameters]
        for rows in self._chunks():
            size = rows.stop - rows.start
            own, *cut = (a.reshape(-1, len(outputs))[rows].ravel() for a in (place, *bounds))
            if own.any():
                latent, mass = self._nodes_of(rows)
                gamma = [self._of_role(latent[role], role, outputs, size)[:, own] for role in roles]
                share = weighed(family, tuple(gamma), mass[:, None], tuple(b[own] for b in cut))
                found.append((gamma[roles.index("mean")], share))
        nodes, shares = (np.concatenate(part, axis=1) for part in zip(*found, strict=True))
        return nodes, shares

    def _draw_nodes(self, random: np.random.Generator, count: int) -> Latent:
        """Draw latent values of every row among its nodes, by their weights."""
        parts = []
        for rows in self._chunks():
            size = rows.stop - rows.start
            latent, mass = self._nodes_of(rows)
            chosen = random.choice(len(mass), size=(count, size), p=mass / np.sum(mass))
            parts.append({r: v[chosen, np.arange(size)] for r, v in latent.items()})
        return jax.tree.map(lambda *each: np.concatenate(each, axis=1), *parts)

    @in_float64
    def _answer(
        self,
        question: Callable[..., Any],
        arguments: tuple[Cells, ...] = (),
        of_seen: tuple[Callable[[Cells], Cells], ...] = (),
    ) -> tuple[Cells, ...]:
        """Ask a question about all cells, chunk by chunk of rows.

        `of_seen` has the answers for values that were seen exactly, of which it is not asked.
        """
        arguments = tuple(np.broadcast_to(a, self.shape) for a in arguments)
        seen = self._bounds.lower if self._bounds is not None and of_seen else None
        known = () if seen is None else tuple(answer(seen) for answer in of_seen)
        parts = [self._answer_rows(rows, question, arguments, known) for rows in self._chunks()]
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))

    def _answer_rows(
        self,
        rows: slice,
        question: Callable[..., Any],
        arguments: tuple[Cells, ...],
        known: tuple[Cells, ...],
    ) -> list[Cells]:
        """Ask a question about the cells of some rows, but for those of which all is known."""
        size = rows.stop - rows.start
        latent, mass = self._nodes_of(rows)
        asked = self._open_cells()[rows] if known else np.ones((size, self.shape[1]), dtype=bool)
        found = [answer[rows].copy() for answer in known]
        for likelihood, outputs, gamma in self._by_likelihood(latent, size):
            own = tuple(a[rows][:, outputs].ravel() for a in arguments)
            for family, kind, cut in self._by_kind(likelihood, outputs, rows):
                place = kind & asked[:, outputs].ravel()
                if not place.any():
                    continue
                some, bounds, about = (
                    tuple(a[..., place] for a in each) for each in (gamma, cut, own)
                )
                share = mass[:, None]
                if self._alone(likelihood):
                    share = weighed(family, some, share, bounds)
                each = answers(family, some, share, bounds, question, about)
                found = found or [np.empty((size, self.shape[1])) for _ in each]
                for answer, part in zip(found, each, strict=True):
                    cells = answer[:, outputs].ravel()
                    cells[place] = part
                    answer[:, outputs] = cells.reshape(size, -1)
        return found

    def _nodes_of(
        self, rows: slice
    ) -> tuple[dict[str, Float[np.ndarray, "S P O"]], Float[np.ndarray, " S"]]:
        """Return latent values of some rows by role, and the weights of the nodes.

        Those of all rows, if they are few, are kept: a mean, an interval and a score are questions
        about the same.
        """
        kept, found = self._kept
        if kept == rows:
            return found
        inputs, _ = self._padded(rows)
        found = jax.tree.map(
            np.asarray, _nodes(self._posterior, inputs, self._seen_of(rows, len(inputs)))
        )
        whole = rows == slice(0, len(self._inputs))
        if whole and sum(values.size for values in found[0].values()) <= MOST_KEPT:
            self._kept = rows, found
        return found

    def _padded(self, rows: slice) -> tuple[Float[np.ndarray, "P C"], int]:
        """Return the inputs of some rows, their number rounded up, and how many they are."""
        size = rows.stop - rows.start
        return pad(self._inputs[rows], coarse(size) - size), size

    def _seen_of(self, rows: slice, room: int) -> Seen:
        """Return what was seen of the cells of some rows, and nothing of those that pad them."""

        def padded(part: Float[AnyArray, "B N D"]) -> Float[np.ndarray, "B P D"]:
            own = np.asarray(part)[:, rows]
            return np.pad(own, ((0, 0), (0, room - own.shape[1]), (0, 0)))

        return jax.tree.map(padded, dict(self._seen))

    def _chunks(self) -> list[slice]:
        """Return the rows in parts whose nodes the memory has room for."""
        return list(slices(len(self._inputs), MOST_ROWS))


def pad(rows: Float[np.ndarray, "N C"], room: int) -> Float[np.ndarray, "P C"]:
    """Repeat the last row, so that predictions of similar size share a program."""
    return np.pad(rows, ((0, room), (0, 0)), "edge")
