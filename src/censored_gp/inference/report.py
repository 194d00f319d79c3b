"""How an inference went, in words and figures."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

Progress = Callable[[str, int, int, float], None]
"""Called with what is being done, steps done, steps at most, and the bound so far."""


def silent(stage: str, done: int, most: int, bound: float) -> None:
    """Say nothing: the progress function of quiet work."""


@dataclasses.dataclass(frozen=True)
class Report:
    """Outcome of an inference."""

    status: str
    """``converged``, ``out of iterations``, ``stuck``, ``interrupted`` or ``diverged``."""
    message: str
    """The status as a sentence, with advice where something can be done."""
    elbo: float
    trace: tuple[float, ...]
    """The bound after every evaluation, in the outputs' own units."""
    site_steps: int = 0
    hyper_steps: int = 0
    notes: tuple[str, ...] = ()
    """Other things worth knowing, such as a raised jitter."""

    @property
    def converged(self) -> bool:
        """Whether the bound settled before the iterations ran out."""
        return self.status == "converged"

    def __str__(self) -> str:
        return " ".join([f"{self.message} ELBO {self.elbo:.2f}.", *self.notes])
