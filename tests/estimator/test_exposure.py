"""Outputs that were seen for a share of their period, known or not, from table to answer."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from censored_gp import NCGP, CensoredGP, DataError, Observations, load
from censored_gp.data.layout import columns_used, read_training
from censored_gp.inference.elbo import collect_terms
from censored_gp.kernels import RBF, Periodic
from censored_gp.likelihoods import Gaussian, NegativeBinomial, Poisson
from censored_gp.likelihoods.quadrature import gauss_legendre
from censored_gp.prediction import metrics
from support import quick as compiler

pytestmark = pytest.mark.usefixtures("quickly")
HOURS = 24 * 7
X = np.arange(HOURS)[:, None] / 24.0


def counted(seed=0):
    """Demand that peaks every day, counted in part in most of the busy hours."""
    rng = np.random.default_rng(seed)
    rate = np.exp(1.6 + 1.1 * np.sin(2 * np.pi * X[:, 0]))
    truth = rng.poisson(rate).astype(float)
    stopped = (rate > 8) & (rng.uniform(size=HOURS) < 0.8)
    seen = np.where(stopped, np.floor(rng.uniform(size=HOURS) * (truth + 1)), truth)
    return truth, seen, stopped


def model(**settings):
    kernels = Periodic(1.0, columns=0)
    return CensoredGP("poisson", kernels=kernels, random_state=0, **settings)


@pytest.fixture(scope="module")
def fitted():
    truth, seen, stopped = counted()
    shares = {"right": None, "unknown": "unknown"}
    known = {k: model().fit(X, seen, censored=stopped, exposure=e) for k, e in shares.items()}
    return truth, seen, stopped, known


def test_a_random_share_is_not_taken_for_a_limit(fitted):
    """A limit says nothing of what is above it, so taking a share for one overestimates."""
    truth, _, stopped, known = fitted
    total = truth[stopped].sum()
    ratio = {side: each.impute()[stopped].sum() / total for side, each in known.items()}
    assert ratio["right"] > 1.2
    assert ratio["unknown"] == pytest.approx(1.0, abs=0.15)


def test_intervals_of_what_was_counted_in_part_hold_the_truth(fitted):
    truth, seen, stopped, known = fitted
    low, high = known["unknown"].impute_interval(0.9)
    assert (low[stopped] >= seen[stopped]).all()
    inside = (low <= truth) & (truth <= high)
    assert inside[stopped].mean() > 0.8
    np.testing.assert_array_equal(low[~stopped], truth[~stopped])


@pytest.mark.slow
def test_draws_and_probabilities_agree_with_the_moments(fitted):
    _, seen, stopped, known = fitted
    found = known["unknown"].imputation(stopped)
    drawn = found.sample(600, 0)
    assert (drawn[:, :, 0] >= seen[stopped]).all()
    error = 5 * found.std / np.sqrt(600)
    assert np.mean(np.abs(drawn.mean(axis=0) - found.mean) < error) > 0.95
    upto = found.cdf(found.quantile(0.5))
    assert (upto >= 0.5 - 1e-9).all()


def test_the_lost_demand_is_what_was_not_counted(fitted):
    truth, seen, stopped, known = fitted
    total = known["unknown"].lost_demand(samples=200, random_state=0)[0]
    assert total["lost_low"] <= (truth - seen)[stopped].sum() <= total["lost_high"]


def test_none_seen_is_told_from_nothing_known():
    seen = Observations.from_flags([0.0, 0.0], [True, True], exposure="unknown")
    (terms,) = collect_terms(seen, (Poisson(),), {"mean": (0,)})
    assert terms.kind == "unknown"
    bound = Observations.from_flags([0.0, 0.0], [True, True])
    assert collect_terms(bound, (Poisson(),), {"mean": (0,)}) == ()


def test_a_model_that_takes_records_at_their_word_knows_no_shares():
    _, seen, stopped = counted()
    naive = NCGP("gaussian", max_iterations=1)
    with pytest.warns(ConvergenceWarning):
        naive.fit(X, seen, censored=stopped, exposure="unknown")
    assert naive.training_.seen.is_exact.all()
    assert not naive.training_.seen.is_partial.any()


@pytest.mark.slow
def test_overdispersed_counts_know_shares_too():
    rng = np.random.default_rng(1)
    truth = rng.negative_binomial(2.0, 2.0 / 14.0, size=HOURS).astype(float)
    stopped = np.arange(HOURS) % 2 == 0
    seen = np.where(stopped, np.floor(rng.uniform(size=HOURS) * (truth + 1)), truth)
    counts = CensoredGP("negative_binomial", heteroscedastic=False, random_state=0)
    filled = counts.fit(X, seen, censored=stopped, exposure="unknown").impute()
    assert (filled[stopped] >= seen[stopped]).all()
    assert filled[stopped].sum() == pytest.approx(truth[stopped].sum(), rel=0.15)


def test_families_that_cannot_have_an_exposure_refuse_it():
    two, flags = [1.0, 2.0], [0, 1]
    with pytest.raises(ValueError, match=r"Output 'y', row 1.*unknown.*Gaussian.*poisson"):
        CensoredGP("gaussian").fit([[0.0], [1.0]], two, censored=flags, exposure="unknown")
    with pytest.raises(ValueError, match=r"Output 'y', row 1.*0\.5.*StudentT.*no sum.*poisson"):
        CensoredGP("student_t").fit([[0.0], [1.0]], two, exposure=[1.0, 0.5])
    with pytest.raises(ValueError, match=r"row 1.*2\.5"):
        model().fit([[0.0], [1.0]], [1.0, 2.5], censored=flags, exposure="unknown")


def test_tables_say_the_same_as_arrays(fitted):
    _, seen, stopped, known = fitted
    wide = {"day": X[:, 0], "rides": seen, "stopped": stopped}
    table = model().fit(wide, outputs="rides", time="day", censored="stopped", exposure="unknown")
    np.testing.assert_array_equal(table.observations_.is_partial[:, 0], stopped)
    np.testing.assert_allclose(table.impute()["rides"], known["unknown"].impute(), rtol=1e-6)
    long = {key: np.concatenate([column, column]) for key, column in wide.items()}
    long["place"] = np.repeat(["a", "b"], HOURS)
    both = model(max_iterations=1)
    with pytest.warns(ConvergenceWarning):
        both.fit(
            long, outputs="rides", by="place", time="day", censored="stopped", exposure="unknown"
        )
    np.testing.assert_array_equal(both.observations_.is_partial, np.stack([stopped] * 2, axis=1))


def test_a_saved_model_knows_its_shares(fitted, tmp_path):
    share = fitted[-1]["unknown"]
    again = load(share.save(tmp_path / "model.cgp"))
    np.testing.assert_array_equal(again.observations_.is_partial, share.observations_.is_partial)
    np.testing.assert_array_equal(again.impute(), share.impute())


def test_scores_leave_shares_out(fitted):
    truth, _, stopped, known = fitted
    prediction = known["unknown"].predict_distribution(X)
    exact = np.where(stopped, np.nan, truth)
    scored = metrics.nlpd(prediction, known["unknown"].observations_)
    assert scored == pytest.approx(metrics.nlpd(prediction, exact))


def test_shares_go_with_their_rows():
    seen = Observations.from_flags([[1, 5], [2, 6]], [[0, 1], [0, 0]], exposure="unknown")
    assert seen.is_partial.tolist() == [[False, True], [False, False]]
    assert seen.rows([0]).is_partial.tolist() == [[False, True]]
    assert "1 seen for a part of the period" in seen.summary()
    missing = Observations.from_flags([np.nan], [1], exposure="unknown")
    assert missing.is_missing.all()
    assert not missing.is_partial.any()


def test_an_unknown_exposure_needs_a_flag_and_a_count():
    with pytest.raises(ValueError, match=r"Output 'y', row 0.*no flag"):
        model().fit([[0.0], [1.0]], [1.0, 2.0], capacity=2, exposure="unknown")
    with pytest.warns(UserWarning, match=r"'y' is missing in row 1"):
        found = Observations.exact([1.0, 2.0], exposure=[0.5, np.nan])
    assert found.is_missing[:, 0].tolist() == [False, True]
    with pytest.raises(ValueError, match=r"Output 'y', row 0.*lower 1 and upper 2"):
        Observations([[1.0]], [[2.0]], exposure=np.nan)
    with pytest.raises(ValueError, match=r"side.*'share'.*exposure=\"unknown\""):
        Observations.from_flags([1.0], [1], side="share")


def test_flags_and_exposures_say_one_thing():
    """An exposure below 1 replaces the bound; 1 leaves it; unknown is for flagged cells."""
    nan = np.nan
    seen = Observations.from_flags(
        [5, 5, 5, 5, 5, 0], [1, 1, 1, 0, 0, 0], exposure=[0.5, 1.0, nan, nan, 0.5, 0.0]
    )
    assert seen.is_partial[:, 0].tolist() == [True, False, True, False, True, False]
    assert seen.is_right[:, 0].tolist() == [False, True, False, False, False, False]
    assert seen.is_exact[:, 0].tolist() == [False, False, False, True, False, False]
    assert seen.is_missing[:, 0].tolist() == [False] * 5 + [True]
    assert seen.falls_short[:, 0].tolist() == [True, True, True, False, True, True]
    np.testing.assert_array_equal(seen.lower[:5], seen.values()[:5])


# ---- exposures that are known ----

ROWS = 48
INPUTS = np.linspace(0.0, 6.0, ROWS)[:, None]
RATE = np.exp(2.0 + np.sin(INPUTS[:, 0]))
SHARE = np.where(np.arange(ROWS) % 2 == 0, np.random.default_rng(2).uniform(0.1, 0.9, ROWS), 1.0)
FAMILIES = {"poisson": Poisson, "negative_binomial": NegativeBinomial, "gaussian": Gaussian}


def parts(family, seed=0):
    """What was seen in the share of the period, and what came in all of it."""
    rng = np.random.default_rng(seed)
    rate = RATE * (rng.gamma(4.0, 0.25, ROWS) if family == "negative_binomial" else 1.0)
    if family == "gaussian":
        noise = rng.standard_normal((2, ROWS))
        first = SHARE * rate + np.sqrt(SHARE) * noise[0]
        return first, first + (1 - SHARE) * rate + np.sqrt(1 - SHARE) * noise[1]
    first, rest = (rng.poisson(s * rate).astype(float) for s in (SHARE, 1 - SHARE))
    return first, first + rest


def quick(family, **settings):
    """A model that takes its hyper-parameters for certain, and has one kernel."""
    certain = {"heteroscedastic": False, "hyperparameters": "fixed", "kernels": RBF(1.0)}
    return CensoredGP(family, **(certain | settings))


# What is left of a Poisson count does not depend on what was seen: it is the simplest of the three.
@pytest.fixture(
    scope="module",
    params=["negative_binomial", "gaussian", pytest.param("poisson", marks=pytest.mark.slow)],
)
def exposed(request):
    seen, whole = parts(request.param)
    return quick(request.param).fit(INPUTS, seen, exposure=SHARE), seen, whole


def test_what_was_seen_in_a_share_is_scaled_up(exposed):
    """Predictions are of whole periods, and so are estimates; taken as they are, they are low."""
    model, seen, whole = exposed
    assert (SHARE * model.predict(INPUTS)).sum() == pytest.approx(seen.sum(), rel=0.05)
    partial = SHARE < 1
    assert model.impute()[partial].sum() == pytest.approx(whole[partial].sum(), rel=0.12)
    np.testing.assert_array_equal(model.impute()[~partial], seen[~partial])
    low, high = model.impute_interval(0.9)
    assert np.mean(((low <= whole) & (whole <= high))[partial]) > 0.7
    total = model.lost_demand(samples=300, random_state=0)[0]
    assert total["censored"] == partial.sum()
    assert total["lost"] == pytest.approx((model.impute() - seen).sum(), rel=0.05)


def test_the_answers_about_a_partial_cell_are_of_one_distribution(exposed):
    """Draws, moments, quantiles and probabilities agree."""
    model, seen, _ = exposed
    found = model.imputation(SHARE < 1)
    drawn = found.sample(2000, 0)
    error = found.std / np.sqrt(2000)
    assert np.all(np.abs(drawn.mean(axis=0) - found.mean) < 5 * error)
    np.testing.assert_allclose(drawn.std(axis=0), found.std, rtol=0.15)
    y = found.quantile(0.7)
    assert np.all(found.cdf(y) >= 0.7 - 1e-9)
    assert np.all(np.abs((drawn <= y).mean(axis=0) - found.cdf(y)) < 0.05)
    above = found.log_probability(y, np.full(y.shape, np.inf))
    assert np.all(np.abs((drawn >= y).mean(axis=0) - np.exp(above)) < 0.05)
    if found.discrete.all():
        assert np.all(drawn[:, :, 0] >= seen[SHARE < 1])
        mean = sum(k * np.exp(found.log_density(np.full(found.shape, k))) for k in range(90))
        np.testing.assert_allclose(mean, found.mean, rtol=1e-3)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_seen_and_the_rest_make_the_whole(family):
    """sum_v P(V = v) P(Y - V = y - v | V = v) = P(Y = y)."""
    likelihood, share = FAMILIES[family](), 0.3
    theta = {"poisson": (5.0,), "negative_binomial": (5.0, 0.4), "gaussian": (5.0, 1.5)}[family]
    v = np.arange(12.0) if likelihood.support.discrete else np.linspace(-20.0, 30.0, 4001)
    step = 1.0 if likelihood.support.discrete else v[1] - v[0]

    @compiler.quick
    def both(v, *theta):
        first = likelihood.log_density(v, *likelihood.exposed(share, *theta))
        rest = likelihood.log_density(11.0 - v, *likelihood.unseen(share, v, *theta))
        return first + rest, likelihood.log_density(11.0, *theta)

    of_parts, whole = both(v, *theta)
    np.testing.assert_allclose(np.exp(of_parts).sum() * step, np.exp(whole), rtol=1e-9)


@pytest.mark.parametrize("likelihood", [Poisson(), NegativeBinomial()])
def test_an_unknown_exposure_is_the_average_over_known_ones(likelihood):
    theta, (nodes, weights) = (6.0, 0.5)[: len(likelihood.parameters)], gauss_legendre(60, 0)

    @compiler.quick
    def both(v):
        share = (nodes + 1) / 2
        known = likelihood.log_likelihood(v, v, *theta, kind="exact", exposure=share[:, None])
        return known, likelihood.log_likelihood(v, v, *theta, kind="unknown")

    known, unknown = both(np.array([0.0, 3.0, 9.0]))
    np.testing.assert_allclose(np.exp(unknown), weights @ np.exp(known) / 2, rtol=1e-8)


def test_an_exposure_of_one_changes_nothing_and_one_of_zero_is_missing():
    seen, _ = parts("poisson")
    plain, ones = (quick("poisson").fit(INPUTS, seen, exposure=e) for e in (None, np.ones(ROWS)))
    np.testing.assert_array_equal(plain.predict(INPUTS), ones.predict(INPUTS))
    gone = np.where(SHARE < 1, np.nan, seen)
    missing = quick("poisson").fit(INPUTS, gone)
    never = quick("poisson").fit(INPUTS, np.where(SHARE < 1, 0, seen), exposure=SHARE == 1)
    np.testing.assert_array_equal(missing.predict(INPUTS), never.predict(INPUTS))
    hardly = quick("poisson").fit(
        INPUTS, np.where(SHARE < 1, 0, seen), exposure=np.where(SHARE < 1, 1e-7, 1.0), start=missing
    )
    np.testing.assert_allclose(hardly.predict(INPUTS), missing.predict(INPUTS), rtol=5e-3)
    # But it is known that nothing was recorded, so that all of its demand was lost.
    assert missing.lost_demand()[0]["lost"] == 0
    lost = never.lost_demand(samples=300)[0]["lost"]
    assert lost == pytest.approx(never.predict(INPUTS)[SHARE < 1].sum(), rel=0.1)


@pytest.mark.parametrize("exposed", ["gaussian"], indirect=True)
def test_a_gaussian_has_no_unit(exposed):
    """Y -> a + b Y is V -> e a + b V, and changes the answers likewise."""
    model, seen, _ = exposed
    moved = quick("gaussian").fit(INPUTS, 700.0 * SHARE + 30.0 * seen, exposure=SHARE)
    np.testing.assert_allclose(moved.predict(INPUTS), 700 + 30 * model.predict(INPUTS), rtol=1e-5)
    np.testing.assert_allclose(moved.impute()[::2], 700 + 30 * model.impute()[::2], rtol=1e-5)
    change = ROWS * np.log(30.0)
    assert moved.report_.elbo == pytest.approx(model.report_.elbo - change, abs=1e-4)


def test_bounds_and_exposure_combine():
    """V is at least 4 in four tenths of the period; draws of V and of the rest say what Y is."""
    seen, _ = parts("poisson")
    capped = np.minimum(seen, 4.0)
    model = quick("poisson").fit(INPUTS, capped, capacity=4.0, exposure=np.where(SHARE < 1, 0.4, 1))
    both = model.observations_.is_partial[:, 0] & (capped == 4)
    found, rng = model.imputation(both), np.random.default_rng(0)
    gamma, deviation = (part["mean"][:, 0] for part in found.latent())
    rate = np.exp(gamma + deviation * rng.standard_normal((20_000, both.sum())))
    v = rng.poisson(0.4 * rate)
    whole = np.where(v >= 4, v + rng.poisson(0.6 * rate), np.nan)
    expected = np.stack([np.nanmean(whole, axis=0), np.nanstd(whole, axis=0)])
    answer = np.stack([found.mean[:, 0], found.std[:, 0]])
    np.testing.assert_allclose(answer, expected, rtol=0.12)
    drawn = found.sample(4000, 0)[:, :, 0]
    np.testing.assert_allclose(drawn.mean(axis=0), answer[0], rtol=0.04)
    np.testing.assert_allclose(drawn.std(axis=0), answer[1], rtol=0.1)
    assert np.all(drawn >= 4)


@pytest.mark.parametrize("told", ["share", "up/60", "1 - down/60", "1-down / 60"])
def test_a_table_has_shares_or_times_over_the_period(told):
    table = {"x": [0.0, 1, 2], "a": [3.0, 4, 5], "share": [1.0, 0.5, 0.25]}
    table |= {"up": [60, 30, 15], "down": [0, 30, 45]}
    found = read_training(table, "a", inputs="x", exposure=told)
    np.testing.assert_allclose(found.observations.exposure[:, 0], table["share"])
    assert found.layout.exposure == told
    named = columns_used({"outputs": ["a"], "exposure": told}, list(table))
    assert named[-1] in ("share", "up", "down")


def test_shares_outside_of_the_period_are_refused_with_advice():
    table = {"x": [0.0, 1], "a": [3.0, 4], "up": [60.0, 30], "part": [0.5, -0.1]}
    with pytest.raises(DataError, match=r"'up', row 0.*60.*\"up/60\".*\"1 - up/60\"") as caught:
        read_training(table, "a", inputs="x", exposure="up")
    assert (caught.value.column, caught.value.row) == ("up", 0)
    with pytest.raises(DataError, match=r"'part', row 1.*-0\.1"):
        read_training(table, "a", inputs="x", exposure="part")
    with pytest.raises(DataError, match=r"row 1.*1\.5"):
        Observations.exact([1.0, 2.0], exposure=[1.0, 1.5])
    with pytest.warns(UserWarning, match=r"is 0 in 1 cell.*row 1 \(2\)"):
        assert Observations.exact([1.0, 2.0], exposure=[1.0, 0.0]).is_missing[1, 0]
    with pytest.raises(DataError, match="down"):
        read_training(table, "a", inputs="x", exposure="1 - down/60")
