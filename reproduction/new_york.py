"""Table 4: true demand on later days at New York's bike stations, from censored training data.

Beside the paper's rows there are simple methods, the same models trained on the truth, censoring by
limits that are independent of demand, and twelve further stations.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import time
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from censored_gp import Observations
from reproduction.models import (
    IGNORING,
    NATURAL,
    build,
    coverage,
    expected_coverage,
    paper_kernels,
    paper_likelihood,
    point_scores,
    scores,
    training_data,
)
from reproduction.protocol import CensoredDemand, new_york
from reproduction.stations import new_york_2016, station_pairs, two_stations
from reproduction.study import Settings, Study
from reproduction.trips import FOUR_STATIONS, four_stations

DRAWS = 10
FEW = 3
"""Draws of what stands beside the rows: station 366 corrected, and independent limits."""
STATIONS = {"3711": "366", "379": "523", "3386": "393"}
"""Stations and their partners."""
KERNELS = ("paper", "default")
"""The paper's kernels, links and rain only; or the package's defaults."""
PAPER_INDUCING = 128
"""Most inducing inputs of each of the paper's kernels. Its 1 h kernel would take one for every
hour; what these leave out is hardly correlated between hours, and is kept as variance."""
ROWS = (
    *(("gaussian", m) for m in ("NCGP", "MONCGP", "CGP", "HCGP", "MOCGP", "HMOCGP")),
    *(("poisson", m) for m in ("NCGP", "MONCGP", "CGP", "MOCGP")),
    *(("negative_binomial", m) for m in ("NCGP", "MONCGP", "CGP", "HMOCGP")),
)
"""The 13 rows of the paper and Gaussian MOCGP."""
CHAMPIONS = {"gaussian": "HMOCGP", "poisson": "MOCGP", "negative_binomial": "HMOCGP"}
"""The paper's best model of each family."""
TWINS = {"gaussian": IGNORING, "poisson": "MONCGP", "negative_binomial": IGNORING}
"""The champion of each family, ignoring censoring."""
REFERENCES = tuple(itertools.product(("hour-of-week mean", "boosting"),
                                     ("observed", "uncensored", "truth")))  # fmt: skip
MORE_STATIONS = 12
KNOWN_STATIONS = ("3711", "366", "379", "523", "3386", "393", "487")
"""Stations that are not among the further ones."""
MOST_SUPPLY = 1.2
"""Most of a limit that is independent of demand, as a share of another day's demand."""


@functools.lru_cache(maxsize=64)
def demand(station: str, partner: str, draw: int, limits: bool = False) -> CensoredDemand:
    """Return a station with its partner and one draw of the censoring."""
    if partner == "downloaded":
        return four_stations(draw)[station]
    if partner not in ("published", "corrected"):
        data = two_stations((station, partner), draw)
    elif station == "3711":
        data = new_york(draw, corrected=partner == "corrected")
    else:
        data = new_york_2016(station, draw)
    return with_independent_limits(data, draw) if limits else data


def with_independent_limits(data: CensoredDemand, seed: int) -> CensoredDemand:
    """Return the same demand with limits that are independent of it, in the same hours.

    The paper's rule shows a share of the truth: a low record tells of low demand. Here the limit of
    an hour is a share (up to 1.2) of the demand at the same hour of another training day, and the
    hour is censored if that is less than the truth.
    """
    rng = np.random.default_rng([seed, 1])
    rows = np.arange(len(data.truth))
    hour = data.time.astype("datetime64[h]").astype(int) % 24
    limit = np.empty_like(data.truth)
    for row in rows:
        # Training days only: a limit must not tell what is to be predicted.
        alike = (hour == hour[row]) & (rows != row) & (rows < data.train.stop)
        other = rng.choice(rows[alike])
        limit[row] = np.floor(rng.uniform(0.0, MOST_SUPPLY) * data.truth[other])
    censored = data.censored & (limit < data.truth)
    observed = np.where(censored, limit, data.truth)
    return dataclasses.replace(data, observed=observed, censored=censored)


def run(settings: Settings) -> dict[str, float]:
    """Fit one row to one draw; score the true demand of the test hours and of censored ones."""
    data = demand(settings["station"], settings["partner"], int(settings["draw"]),
                  settings["data"] == "limits")  # fmt: skip
    if settings["family"] == "-":
        return _reference(settings, data)
    weather = _weather(settings)
    start = time.perf_counter()
    model = _model(settings, data, weather)
    model.fit(data.inputs(*weather, rows=data.train), fitted_to(settings, data))
    seconds = time.perf_counter() - start
    prediction = model.predict_distribution(data.inputs(*weather, rows=data.test)).of_outputs([0])
    truth = data.truth[data.test, 0]
    return scores(prediction, truth) | {
        "coverage_expected": expected_coverage(prediction, truth),
        "ratio": float(prediction.mean[:, 0].sum() / truth.sum()),
        **_of_censored_hours(model, data, weather),
        "elbo": model.elbo_,
        "converged": float(model.report_.converged),
        "fit_seconds": seconds,
    }


def fitted_to(settings: Settings, data: CensoredDemand) -> Observations:
    """Return the training data of a run: the records, or the truth for an oracle."""
    seen = data.observations(data.train)
    if settings["data"] == "truth":
        truth = data.truth[data.train]
        seen = Observations(truth, truth, data.names)
    return training_data(settings["model"], seen)


def _weather(settings: Settings) -> tuple[str, ...]:
    """Return the weather that is used; trip files have none, and the paper used rain alone."""
    if settings["partner"] == "downloaded":
        return ()
    if settings["station"] == "3711":
        return ("rain",)
    return () if settings["kernels"] == "paper" else ("temperature",)


def _model(settings: Settings, data: CensoredDemand, weather: tuple[str, ...]) -> Any:
    extra: dict[str, Any] = {"engine": settings["engine"], "random_state": int(settings["draw"])}
    if settings["engine"] == "natural":
        extra["engine_settings"] = NATURAL
    else:
        # The paper stops early by the likelihood of the validation hours, as they were observed.
        held_out = training_data(settings["model"], data.observations(data.validation))
        inputs = data.inputs(*weather, rows=data.validation)
        extra["engine_settings"] = {"validation": (inputs, held_out)}
    if settings["kernels"] == "default":
        return build(settings["model"], settings["family"], **extra)
    likelihood, kernels = paper_likelihood(settings["family"]), paper_kernels("rain" in weather)
    return build(settings["model"], likelihood, kernels, max_inducing=PAPER_INDUCING, **extra)


def _of_censored_hours(
    model: Any, data: CensoredDemand, weather: tuple[str, ...]
) -> dict[str, float]:
    """Return scores of the true demand in training hours; of censored ones given their bounds.

    `ratio_train` is the demand that the model expects in all training hours, over the true one.
    """
    hours = np.flatnonzero(data.censored[data.train, 0])
    truth = data.truth[data.train, 0]
    inputs = data.inputs(*weather, rows=data.train)
    fitted = model.predict_distribution(inputs).of_outputs([0])
    if model.use_censoring and model.observations_.is_right[hours, 0].any():
        hidden = model.imputation(hours).of_outputs([0])
    else:
        hidden = model.predict_distribution({name: c[hours] for name, c in inputs.items()})
        hidden = hidden.of_outputs([0])
    return {
        "ratio_train": float(fitted.mean[:, 0].sum() / truth.sum()),
        "coverage_censored": coverage(hidden, truth[hours]),
        "coverage_censored_expected": expected_coverage(hidden, truth[hours]),
        "mae_censored": point_scores(hidden.mean[:, 0], truth[hours])["mae"],
    }


def _reference(settings: Settings, data: CensoredDemand) -> dict[str, float]:
    """Score a simple method, trained on the records, the uncensored ones or the truth."""
    values = (data.truth if settings["data"] == "truth" else data.observed)[:, 0]
    use = np.arange(len(values)) < data.train.stop
    if settings["data"] == "uncensored":
        use &= ~data.censored[:, 0]
    predict = hour_of_week_mean if settings["model"] == "hour-of-week mean" else boosting
    start = time.perf_counter()
    predicted = predict(data, values, use)[data.test]
    seconds = time.perf_counter() - start
    return point_scores(predicted, data.truth[data.test, 0]) | {"fit_seconds": seconds}


def hour_of_week_mean(
    data: CensoredDemand, values: Float[np.ndarray, " N"], use: Bool[np.ndarray, " N"]
) -> Float[np.ndarray, " N"]:
    """Predict the mean of the same hour of the week, else of the same hour of the day."""
    hour = data.time.astype("datetime64[h]").astype(int)
    predicted = np.full(len(hour), values[use].mean())
    for cycle in (24, 168):
        for phase in range(cycle):
            alike = hour % cycle == phase
            if (use & alike).any():
                predicted[alike] = values[use & alike].mean()
    return predicted


def boosting(
    data: CensoredDemand, values: Float[np.ndarray, " N"], use: Bool[np.ndarray, " N"]
) -> Float[np.ndarray, " N"]:
    """Predict by scikit-learn's histogram gradient boosting from hour, weekday and rain."""
    hour = data.time.astype("datetime64[h]").astype(int)
    rain = [data.weather["rain"]] if "rain" in data.weather else []
    table = np.stack([hour % 24, (hour // 24 + 4) % 7, *rain], axis=1)
    # Its threads wait for each other on a busy machine.
    with threadpool_limits(1):
        booster = HistGradientBoostingRegressor(random_state=0).fit(table[use], values[use])
        return booster.predict(table)


STUDY = Study(
    "table4",
    ("station", "partner", "draw", "kernels", "family", "model", "data", "engine"),
    (
        *("r2", "mae", "nlpd", "nlpd_per_point", "coverage", "coverage_expected"),
        *("coverage_censored", "coverage_censored_expected", "mae_censored"),
        *("ratio", "ratio_train", "elbo", "converged", "fit_seconds"),
    ),
    run,
)


def _runs(
    stations: Any, draws: int, kernels: tuple[str, ...], rows: Any, **more: str
) -> list[Settings]:
    """Return the runs of all rows (family, model), kernels, stations and draws."""
    return [
        {"station": s, "partner": "published", "draw": draw, "kernels": k, "family": family,
         "model": model, "data": "observed", "engine": "natural"} | more
        for family, model in rows for k in kernels for s in stations for draw in range(draws)
    ]  # fmt: skip


def rows_of_paper(draws: int, engine: str = "natural") -> list[Settings]:
    """Return the runs of the paper's rows."""
    return _runs(STATIONS, draws, KERNELS, ROWS, engine=engine)


def runs(draws: int = DRAWS) -> list[Settings]:
    """Return all runs of table 4."""
    best, twins, few = CHAMPIONS.items(), TWINS.items(), min(draws, FEW)
    both = [*best, *twins]
    wanted = rows_of_paper(draws)
    for method, data in REFERENCES:
        wanted += _runs(STATIONS, draws, ("-",), [("-", method)], data=data, engine="-")
    wanted += _runs(["3711"], few, KERNELS, best, partner="corrected")
    wanted += _runs(STATIONS, draws, ("default",), twins)
    # The truth is the same in all draws: one run serves all.
    wanted += _runs(STATIONS, 1, KERNELS, ROWS, data="truth")
    wanted += _runs(STATIONS, few, ("default",), both, data="limits")
    for station, partner in station_pairs(MORE_STATIONS, without=KNOWN_STATIONS):
        for data, rows in {"observed": both, "limits": both, "truth": best}.items():
            wanted += _runs([station], 1, ("default",), rows, data=data, partner=partner)
    return list({STUDY.key(run): run for run in wanted}.values())


def downloaded_runs(draws: int = DRAWS) -> list[Settings]:
    """Return the runs of the paper's own four stations, from trip files that are downloaded."""
    # Before workers start, or each of them would download the files.
    four_stations(0)
    wanted = _runs(FOUR_STATIONS, draws, KERNELS, ROWS, partner="downloaded")
    for method, data in REFERENCES:
        wanted += _runs(FOUR_STATIONS, draws, ("-",), [("-", method)], data=data, engine="-",
                        partner="downloaded")  # fmt: skip
    return wanted
