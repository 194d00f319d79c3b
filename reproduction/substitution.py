"""Own demand from records with substitution: `python -m reproduction substitution FILE.csv`.

A file has the input x, the role of a row (train or test) and for each output d `truth_d`, and of
training rows `limit_d`, `seen_d` and `full_d` (whether it was at its limit). The sets are those of
Rodrigues (2025), Diffusion-aware censored Gaussian processes. Scored is `predict` against the truth
of test rows. The truth of training rows tells what the known shares are, and nothing else.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.optimize import nnls

from reproduction.models import build

Matrix = Float[np.ndarray, "D D"]


def known_shares(train: pd.DataFrame, outputs: list[str]) -> Matrix:
    """Return the shares by which a set was made: V_j - d_j = sum_i T_ij e_i where j is not full."""
    truth, limit, seen, full = (
        train[[f"{what}_{d}" for d in outputs]].to_numpy(float)
        for what in ("truth", "limit", "seen", "full")
    )
    excess, shares = np.maximum(truth - limit, 0.0), np.zeros((len(outputs), len(outputs)))
    for j in range(len(outputs)):
        rows, others = full[:, j] == 0, np.arange(len(outputs)) != j
        shares[others, j] = nnls(excess[rows][:, others], (seen - truth)[rows, j])[0]
    # Records are rounded to six digits.
    shares = shares.round(4)
    return shares / np.maximum(1.0, shares.sum(axis=1, keepdims=True))


def run(path: Path) -> str:
    """Fit models with known, learned and no substitution; print each, and return their errors.

    Each is fitted twice, as the first fit may have programs to compile.
    """
    table = pd.read_csv(path)
    outputs = [name.removeprefix("truth_") for name in table if name.startswith("truth_")]
    train, test = (table[table["role"] == role] for role in ("train", "test"))
    truth = test[[f"truth_{d}" for d in outputs]].to_numpy()
    seen, full = (train[[f"{what}_{d}" for d in outputs]].to_numpy() for what in ("seen", "full"))
    shares, errors = known_shares(train, outputs), []
    print("shares by which the set was made:", shares.tolist())
    given: dict[str, Any] = {"known": shares, "learned": "learned", "censored": None}
    for name, substitution in given.items():
        seconds = []
        for _ in range(2):
            start = time.perf_counter()
            model = build("MOCGP", substitution=substitution)
            model.fit(train[["x"]], seen, censored=full)
            predicted = model.predict(test[["x"]])
            seconds.append(time.perf_counter() - start)
        low, high = model.interval(test[["x"]])
        error = float(np.sqrt(np.mean((predicted - truth) ** 2)))
        r2 = 1.0 - float(np.mean(np.mean((predicted - truth) ** 2, 0) / np.var(truth, 0)))
        held = float(np.mean((low <= truth) & (truth <= high)))
        found = "" if substitution is None else f", shares {model.substitution_.round(3).tolist()}"
        print(f"{name}: RMSE {error:.4f}, R² {r2:.3f}, 90 % intervals hold {held:.3f}, "
              f"{seconds[0]:.1f} s, again {seconds[1]:.1f} s{found}")  # fmt: skip
        errors.append(f"{name} {error:.3f}")
    return f"RMSE {' '.join(errors)}"
