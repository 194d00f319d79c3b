"""The paper's engine beside ours: the same runs by stochastic and by natural gradients."""

from __future__ import annotations

import pandas as pd

from reproduction import new_york, synthetic
from reproduction.study import Settings, Study

DRAWS = 3
ENGINES = ("natural", "svi")


def runs(draws: int = DRAWS) -> list[tuple[Study, list[Settings]]]:
    """Return the runs of both engines, by study.

    On New York's data, where svi takes many minutes for one output and hours for two, one draw of
    CGP at station 3711.
    """
    table1 = [r for e in ENGINES for r in synthetic.runs(draws, [synthetic.TABLE_1], e)]
    real = pd.DataFrame([r for e in ENGINES for r in new_york.rows_of_paper(1, e)])
    return [(synthetic.STUDY, table1), (new_york.STUDY, compared(real).to_dict("records"))]


def compared(rows: pd.DataFrame) -> pd.DataFrame:
    """Return those runs of table 4 by which engines are compared."""
    wanted = {"station": "3711", "partner": "published", "kernels": "paper", "data": "observed",
              "model": "CGP"}  # fmt: skip
    return rows[(rows[list(wanted)] == pd.Series(wanted)).all(axis=1)]
