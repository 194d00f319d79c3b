"""The table of models: the best one first, and fair to all."""

import numpy as np
import pandas as pd
import pytest

import censored_gp
from censored_gp.data.observations import Observations
from censored_gp.estimator.analysis import compare
from censored_gp.estimator.presets import MODELS
from censored_gp.kernels import RBF

N = 60


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(1)
    x = np.linspace(0, 12, N)
    wanted = np.stack([rng.poisson(np.exp(1.2 + np.sin(x))) for _ in range(2)], axis=1)
    seen = np.minimum(wanted, [4, 5])
    return pd.DataFrame({"x": x, "a": seen[:, 0], "b": seen[:, 1]})


@pytest.mark.slow
def test_the_best_is_first_and_marked():
    rng = np.random.default_rng(0)
    x = np.linspace(0, 12, N)
    table = {"x": x, "y": np.minimum(np.sin(x) + 0.2 * rng.normal(size=N), 0.5)}
    found = censored_gp.compare(
        table, outputs="y", inputs="x", capacity=0.5, models=["NCGP", "CGP"], folds=3,
        settings={"kernels": RBF(1.0)},
    )  # fmt: skip
    assert isinstance(found, dict)
    assert found["model"].tolist() == ["CGP", "NCGP"]
    assert found["best"].tolist() == [True, False]
    assert found["nlpd"][0] < found["nlpd"][1]
    assert np.all(np.isfinite(found["elbo"]))


@pytest.mark.slow
def test_counts_and_densities_are_compared_on_one_scale(frame):
    """A probability of a count and one of y ± 1/2 are alike where both families fit alike."""
    table = censored_gp.compare(
        frame, outputs=["a", "b"], inputs="x", capacity={"a": 4, "b": 5},
        models=["MONCGP", "MOCGP"], likelihoods=["poisson", "gaussian"], folds=2,
        settings={"kernels": RBF(1.0)},
    )  # fmt: skip
    assert isinstance(table, pd.DataFrame)
    assert table.loc[0, "model"] == "MOCGP"
    nlpd = table[table["model"] == "MOCGP"].set_index("likelihood")["nlpd"]
    assert abs(nlpd["poisson"] - nlpd["gaussian"]) < 0.5
    assert set(zip(table["model"], table["likelihood"], strict=True)) == {
        (model, family) for model in ("MONCGP", "MOCGP") for family in ("poisson", "gaussian")
    }


class Uniform:
    """Uniform cells on [0, 10]."""

    discrete = np.array([False])

    def log_probability(self, lower, upper):
        return np.log((np.minimum(upper, 10) - np.maximum(lower, 0)) / 10)


def test_a_whole_number_of_a_continuous_family_is_its_neighbourhood():
    known = Observations.from_flags([[3.0], [8.0], [np.nan]], [[0], [1], [0]])
    expected = -np.log([[0.1], [0.25], [np.nan]])
    np.testing.assert_allclose(compare.nlpd_of_counts(Uniform(), known), expected)


@pytest.mark.parametrize("models", [["GP"], []])
def test_unknown_models_are_refused(frame, models):
    with pytest.raises(ValueError, match="`models` must be among 'NCGP', 'MONCGP'"):
        censored_gp.compare(frame, outputs="a", inputs="x", models=models)
    with pytest.raises(ValueError, match="`likelihoods`"):
        censored_gp.compare(frame, outputs="a", inputs="x", likelihoods=[])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_all_six_models_of_the_paper(frame):
    found = censored_gp.compare(
        frame, outputs=["a", "b"], inputs="x", capacity={"a": 4, "b": 5}, likelihoods="poisson",
        folds=2, settings={"kernels": RBF(1.0)},
    )  # fmt: skip
    assert sorted(found["model"]) == sorted(MODELS)
    assert not found.loc[0, "model"].endswith("NCGP")


def test_data_that_one_family_cannot_take_are_refused_before_any_fit(frame, monkeypatch):
    monkeypatch.setattr(compare, "_fit", lambda *_: pytest.fail("fitted"))
    flags = (frame[["a"]] == 4).to_numpy()
    with pytest.raises(ValueError, match="exposure"):
        censored_gp.compare(
            frame[["x"]], frame[["a"]], censored=flags, exposure="unknown",
            models="CGP", likelihoods=["poisson", "gaussian"],
        )  # fmt: skip
