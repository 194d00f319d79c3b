"""Real runs, small: a table is done twice and the second time costs nothing."""

import numpy as np
import pytest

from censored_gp.datasets import new_york
from censored_gp.paper import models, synthetic
from censored_gp.paper.new_york import _boosted, _training, _weekly
from censored_gp.paper.runs import complete


class Normal:
    """A prediction of independent normals, for scores that are known."""

    def __init__(self, mean, scale):
        from scipy.stats import norm

        self._made = norm(mean, scale)
        self.mean, self.shape, self.names = np.asarray(mean), np.shape(mean), ("a", "b")
        self.discrete = np.zeros(2, bool)

    def cdf(self, y):
        return self._made.cdf(y)

    def log_probability(self, lower, upper):
        return self._made.logpdf(lower)

    def sample(self, count, seed, joint=True):
        return self._made.rvs((count, *self.shape), random_state=seed)


@pytest.fixture(scope="module")
def normal():
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(4000, 2))
    return Normal(mean, 2.0), mean[:, 0] + 2.0 * rng.normal(size=4000)


def test_scores_are_those_of_the_first_output(normal):
    prediction, truth = normal
    found = models.scores(prediction, truth)
    # The mean of a quadratic form: log(2 sqrt(2 pi)) + 1/2.
    assert found["nlpd_per_point"] == pytest.approx(np.log(2 * np.sqrt(2 * np.pi)) + 0.5, abs=0.03)
    assert found["nlpd"] == pytest.approx(4000 * found["nlpd_per_point"])
    assert found["coverage"] == pytest.approx(0.9, abs=0.02)
    assert found["mae"] == pytest.approx(2 * np.sqrt(2 / np.pi), abs=0.05)


def test_sampled_crps_is_the_known_one(normal):
    prediction, truth = normal
    # E|X - Y| / 2 of two normals of scale 2.
    assert models.sampled_crps(prediction, truth) == pytest.approx(2 / np.sqrt(np.pi), abs=0.03)


def test_unknown_truth_is_not_counted(normal):
    prediction, truth = normal
    hidden = np.where(np.arange(4000) < 2000, truth, np.nan)
    assert models.scores(prediction, hidden)["nlpd"] < models.scores(prediction, truth)["nlpd"]
    assert np.isnan(models.coverage(prediction, np.full(4000, np.nan))["coverage"])


def test_single_outputs_see_one_output():
    pair = synthetic.world(0, "block")
    for name in models.MODELS:
        seen = models.seen_by(name, pair.observations())
        assert seen.names == (("y1",) if name in models.SINGLE else ("y1", "y2"))


def test_only_oracles_see_the_truth(data_folder):
    data = new_york(0)
    run = {"model": "HMOCGP", "data": "observed"}
    seen = _training(run, data)
    np.testing.assert_array_equal(seen.lower, data.observed[data.train])
    np.testing.assert_array_equal(np.isinf(seen.upper), data.censored[data.train])
    truth = _training(run | {"data": "truth"}, data)
    np.testing.assert_array_equal(truth.lower, data.truth[data.train])
    assert truth.is_exact.all()


def test_simple_methods_do_what_they_say(data_folder):
    data = new_york(0)
    use = np.arange(len(data.time)) < data.split[0]
    weekly = _weekly(data, data.truth[:, 0], use)
    assert models.point_scores(weekly[data.test], data.truth[data.test, 0])["r2"] == pytest.approx(
        0.605, abs=0.001
    )
    boosted = _boosted(data, data.truth[:, 0], use)
    assert models.point_scores(boosted[data.test], data.truth[data.test, 0])["r2"] > 0.6


def test_a_real_run_is_done_once_and_gives_sane_scores(tmp_path):
    wanted = synthetic.runs(1, [("block", "none")], "natural", ["NCGP", "CGP"])
    rows = complete(synthetic.STUDY, wanted, tmp_path, jobs=1)
    assert [row["error"] for row in rows] == ["", ""]
    ignoring, using = (row["nlpd"] for row in rows)
    assert rows[0]["nlpd_floor"] < using < ignoring
    again = complete(synthetic.STUDY, wanted, tmp_path, jobs=1)
    assert again == rows
