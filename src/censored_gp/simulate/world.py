"""What worlds whose truth is known tell of it: a table, and bounds."""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

import numpy as np
from jaxtyping import Bool, Shaped

from censored_gp.data.observations import Observations
from censored_gp.simulate.common import Cells

Table: TypeAlias = dict[str, Shaped[np.ndarray, " N"]]


class PartlySeen:
    """A mix-in: outputs that were seen as they are, or as less where they are censored."""

    names: tuple[str, ...]
    truth: Cells
    observed: Cells
    censored: Bool[np.ndarray, "N D"]

    def observations(self, rows: Any = slice(None)) -> Observations:
        """Return what is known of the outputs (of some rows), as bounds."""
        upper = np.where(self.censored, np.inf, self.observed)
        return Observations(self.observed, upper, self.names).rows(rows)


class World(PartlySeen):
    """A mix-in: outputs with the inputs that explain them, as a table."""

    mark: ClassVar[str] = "censored"
    """Ending of the columns that tell where an output is censored."""

    def inputs(self) -> Table:
        """Return the columns that explain the outputs."""
        raise NotImplementedError

    def marks(self) -> Shaped[np.ndarray, "N D"]:
        """Return what tells where an output is censored: flags, if nothing else is said."""
        return self.censored

    def table(self, truth: bool = False) -> Table:
        """Return what somebody has who records the outputs, and the truth only if asked for.

        After the inputs there is a column for each output, and one that tells where it is
        censored; that of the truth ends in `_truth`.

        >>> from censored_gp import simulate
        >>> list(simulate.shop(days=3, products=1).table(truth=True))
        ['time', 'promotion', 'product_1', 'product_1_sold_out', 'product_1_truth']
        """
        parts = {"seen": self.observed, self.mark: self.marks()}
        parts |= {"truth": self.truth} if truth else {}
        return self.inputs() | side_by_side(self.names, **parts)


class Demand(World):
    """A mix-in: outputs whose truth is what people wanted."""

    demand: Cells

    @property
    def truth(self) -> Cells:
        """The demand."""
        return self.demand


def side_by_side(names: tuple[str, ...], **parts: Shaped[np.ndarray, "N D"]) -> Table:
    """Return a column for each output and part; the first part bears the output's own name.

    >>> cells = np.array([[1.0, 2.0]])
    >>> list(side_by_side(("a", "b"), seen=cells, truth=cells))
    ['a', 'a_truth', 'b', 'b_truth']
    """
    ends = dict(zip(parts, ("", *(f"_{part}" for part in list(parts)[1:])), strict=True))
    return {
        f"{name}{ends[part]}": cells[:, d]
        for d, name in enumerate(names)
        for part, cells in parts.items()
    }
