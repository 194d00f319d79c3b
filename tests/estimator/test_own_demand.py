"""Models of outputs whose excess moves to others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from censored_gp import MOCGP, MONCGP, load
from censored_gp.estimator.training import read_substitution

SHARES = np.array([[0.0, 0.8], [0.6, 0.0]])
FIXED = {"hyperparameters": "fixed"}


class World:
    """Two outputs over time; where one is at its limit, part of its excess takes the other."""

    x = np.linspace(0.0, 20.0, 120)[:, None]
    random = np.random.default_rng(3)
    own = np.stack([np.sin(x[:, 0]), np.cos(0.7 * x[:, 0])], axis=1)
    own = own + random.normal(0.0, 0.1, size=own.shape)
    limit = random.uniform(0.0, 1.0, size=own.shape)
    wanted = own + np.maximum(own - limit, 0.0) @ SHARES
    full = wanted >= limit
    seen = np.minimum(wanted, limit)


def fitted(substitution: Any) -> MOCGP:
    model = MOCGP(substitution=substitution, **FIXED)
    return model.fit(World.x, World.seen, censored=World.full)


@pytest.fixture(scope="module")
def model() -> MOCGP:
    return fitted(SHARES)


@pytest.fixture(scope="module")
def plain() -> MOCGP:
    return fitted(None)


def test_own_demand_is_recovered(model: MOCGP, plain: MOCGP) -> None:
    def error(found: MOCGP) -> float:
        return float(np.sqrt(np.mean((found.impute() - World.own) ** 2)))

    assert error(model) < 0.6 * error(plain)
    assert error(model) < 0.08
    low, high = model.impute_interval(0.9)
    unsure = low < high
    inside = (low <= World.own) & (World.own <= high)
    assert inside[unsure].mean() > 0.75


def test_no_share_is_no_substitution(plain: MOCGP) -> None:
    np.testing.assert_array_equal(fitted(np.zeros((2, 2))).impute(), plain.impute())


def test_total_demand_is_counted_once(model: MOCGP) -> None:
    total = model.lost_demand(samples=300)[0]
    rows = model.lost_demand(by="output", samples=300)
    truth = (World.own - World.seen).sum()
    assert total["lost_low"] < truth < total["lost_high"]
    for name in ("observed", "lost", "demand"):
        np.testing.assert_allclose(sum(row[name] for row in rows), total[name])
    np.testing.assert_allclose(total["demand"], total["observed"] + total["lost"])
    own = [row["demand"] for row in rows]
    np.testing.assert_allclose(own, World.own.sum(axis=0), atol=1.5)


def test_the_diagnosis_scores_rows_in_which_nothing_moved(model: MOCGP) -> None:
    found = model.diagnose(folds=4)
    held_out = ~found.truth.is_missing
    assert np.all(held_out.all(axis=1) | ~held_out.any(axis=1))
    untouched = ~World.full.any(axis=1)
    assert found.scores["all"]["cells"] == np.sum(held_out[untouched])
    own = found.rows[2]
    assert own["lost"] == pytest.approx(model.lost_demand(samples=200)[0]["lost"], rel=0.1)
    assert own["error"] < found.rows[-1]["error"] + 1


def test_shares_are_given_by_name_and_by_distance(plain: MOCGP) -> None:
    def shares(given: Any) -> np.ndarray:
        return read_substitution(MOCGP(substitution=given), plain.training_).shares

    np.testing.assert_array_equal(shares({"y0": {"y1": 0.8}, "y1": {"y0": 0.6}}), SHARES)
    apart = {"distances": [[0, 2], [2, 0]], "decay": 1.0, "moving": 0.7}
    np.testing.assert_allclose(shares(apart), [[0, 0.7], [0.7, 0]])


def test_a_saved_model_keeps_its_shares(model: MOCGP, tmp_path: Path) -> None:
    again = load(model.save(tmp_path / "model.cgp"))
    np.testing.assert_array_equal(again.substitution_, SHARES)
    np.testing.assert_array_equal(again.impute(), model.impute())
    assert "y0 to y1 0.80" in again.summary()


def test_shares_are_learned() -> None:
    found = fitted("learned")
    off = ~np.eye(2, dtype=bool)
    error = np.abs(found.substitution_ - SHARES)[off] / found.substitution_error_[off]
    assert error.max() < 3.5


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([[0.0, 1.2], [0.0, 0.0]], "sum to at most 1"),
        ([[0.1, 0.2], [0.0, 0.0]], "none from an output to itself"),
        ([[0.0, -0.2], [0.0, 0.0]], "0 or more"),
        ([[0.0, 0.2]], "must be a matrix"),
        ("guess", "must be a matrix"),
        ({"y0": {"z": 0.5}}, "got the name 'z'"),
        ({"y0": [0.0, 0.5], "y1": {"y0": 0.5}}, "must be a matrix"),
        ({"y0": 0.5}, "must be a matrix"),
        ({"distances": [[0, 1], [1, 0]], "decay": -1.0}, "'decay' parameter"),
        ({"distances": [[0, 1], [1, 0]], "length": 1.0}, "got 'length'"),
    ],
)
def test_impossible_shares_are_refused(given: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        fitted(given)


def test_models_that_cannot_divide_demand_are_refused() -> None:
    counts = np.round(np.abs(World.seen) * 10)
    with pytest.raises(ValueError, match="needs Gaussian outputs"):
        MOCGP("poisson", substitution="learned").fit(World.x, counts, censored=World.full)
    with pytest.raises(ValueError, match="uses the bounds"):
        MONCGP(substitution="learned").fit(World.x, World.seen, censored=World.full)
    with pytest.raises(ValueError, match="several outputs"):
        MOCGP(substitution="learned").fit(World.x, World.seen[:, 0], censored=World.full[:, 0])
    with pytest.raises(ValueError, match="exact or at least a bound"):
        MOCGP(substitution="learned").fit(World.x, World.seen, censored=-World.full.astype(int))
