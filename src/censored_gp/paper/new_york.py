"""Runs on New York's bike stations: the rows of table 4, and simple methods beside them."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from threadpoolctl import threadpool_limits

from censored_gp.data.observations import Observations
from censored_gp.datasets import (
    CensoredDemand,
    four_stations,
    new_york,
    new_york_2016,
    two_stations,
    with_independent_limits,
)
from censored_gp.paper.models import (
    IGNORING,
    NATURAL,
    SINGLE,
    build,
    coverage,
    expected_coverage,
    imputed,
    paper_kernels,
    paper_likelihood,
    point_scores,
    sampled_crps,
    scores,
    seen_by,
)
from censored_gp.paper.runs import Settings, Study

__all__ = [
    "BLOCKS",
    "BLOCK_NAMES",
    "KNOWN",
    "REFERENCES",
    "ROWS",
    "STATIONS",
    "STUDY",
    "UNTOLD",
    "censoring",
    "demand",
    "downloaded_runs",
    "gap_runs",
    "own_run",
    "rule_runs",
    "runs",
    "stations",
]

PAPER_INDUCING = 128
"""Inducing inputs of each of the paper's kernels at most. Its 1 h kernel would take one for every
hour; what these leave out of it is hardly correlated between hours, and is kept as variance."""
HALF = 5
"""Draws of models with the paper's kernels that are told that a share was seen."""
STATIONS = ("3711", "379", "3386")
FOUR_STATIONS = ("3711", "379", "3386", "2002")
"""The paper's own, of which the files at hand have one."""
PARTNERS = {"3711": "366", "379": "523", "3386": "393"}
BLOCK_NAMES = {"paper": "the paper's kernels", "own": "the package's defaults"}
BLOCKS = tuple(BLOCK_NAMES)
"""The paper's kernels, links and rain only; or the package's defaults."""
OF_2016 = ("temperature",)
OWN_WEATHER = {"3711": ("rain",), "379": OF_2016, "3386": OF_2016}
PAPER_WEATHER = {"3711": ("rain",), "379": (), "3386": ()}
ROWS = (
    *(("gaussian", m) for m in ("NCGP", "MONCGP", "CGP", "HCGP", "MOCGP", "HMOCGP")),
    *(("poisson", m) for m in ("NCGP", "MONCGP", "CGP", "MOCGP")),
    *(("negative_binomial", m) for m in ("NCGP", "MONCGP", "CGP", "HMOCGP")),
)
"""The 13 rows of the paper and Gaussian MOCGP."""
CHAMPIONS = {"gaussian": "HMOCGP", "poisson": "MOCGP", "negative_binomial": "HMOCGP"}
IGNORED = {("gaussian", "HMOCGP"): IGNORING, ("negative_binomial", "HMOCGP"): IGNORING,
           ("gaussian", "MOCGP"): "MONCGP", ("poisson", "MOCGP"): "MONCGP"}  # fmt: skip
"""The same model taking records at their word."""
COUNTED = (("poisson", "MOCGP"), ("negative_binomial", "HMOCGP"))
"""Of the rows those that can be told that what an hour shows is a share of its demand."""
KNOWN = {
    "observed": "as observed",
    "either": "a share or a limit",
    "share": "told that a share was seen",
    "limits": "limits independent of demand",
    "limits either": "such limits, a share or a limit",
    "limits share": "such limits, taken for shares",
}
"""What censored hours show, and what models know of it."""
UNTOLD = {"either": "observed", "share": "observed",
          "limits either": "limits", "limits share": "limits"}  # fmt: skip
"""The same data for models that take them for limits; only those of counts can be told more."""
FEW = 3
"""Draws of what stands beside the rows: the partner corrected, limits independent of demand."""
SEEN = ("observed", "uncensored", "truth")
REFERENCES = tuple((method, seen) for method in ("hour-of-week mean", "boosting") for seen in SEEN)


def stations(settings: Settings) -> CensoredDemand:
    """Return the data of a run: a station with its partner and one draw of the censoring."""
    draw, limits = int(settings["draw"]), settings["data"].startswith("limits")
    return _stations(settings["station"], settings["partner"], draw, limits)


@functools.lru_cache(maxsize=64)
def _stations(station: str, partner: str, draw: int, limits: bool) -> CensoredDemand:
    """Return the same by what it depends on, read once: many rows are fitted to one draw."""
    if partner == "downloaded":
        return four_stations(draw, progress=False)[station]
    if partner not in ("published", "corrected"):
        found = two_stations((station, partner), draw)
    elif station == "3711":
        found = new_york(draw, corrected=partner == "corrected")
    else:
        found = new_york_2016(station, draw)
    return with_independent_limits(found, draw) if limits else found


def censoring(station: str, draws: Sequence[int]) -> tuple[float, float, float]:
    """Return how many training hours are censored, what they show, and how many show it all.

    The second is the share of their demand; the third is a share of the censored hours.
    """
    found = []
    for draw in draws:
        data = stations(_run(station, draw, "-", "-", "-"))
        hours = np.flatnonzero(data.censored[data.train, 0])
        truth, seen = data.truth[data.train, 0][hours], data.observed[data.train, 0][hours]
        share = len(hours) / (data.train.stop - data.train.start)
        found.append((share, seen.sum() / truth.sum(), np.mean(seen == truth)))
    many, shown, whole = np.mean(found, axis=0)
    return float(many), float(shown), float(whole)


def demand(station: str) -> tuple[float, float]:
    """Return the mean true demand of the training and of the test hours."""
    data = stations(_run(station, 0, "-", "-", "-"))
    return float(data.truth[data.train, 0].mean()), float(data.truth[data.test, 0].mean())


def run(settings: Settings) -> dict[str, float]:
    """Fit one row to one draw; score the true demand of the test hours and of censored ones."""
    data = stations(settings)
    if settings["family"] == "-":
        return _reference(settings, data)
    weather = _weather(settings)
    start = time.perf_counter()
    model = _model(settings, data, weather)
    model.fit(data.inputs(*weather, rows=data.train), _training(settings, data))
    seconds = time.perf_counter() - start
    prediction = model.predict_distribution(data.inputs(*weather, rows=data.test)).of_outputs([0])
    truth = data.truth[data.test, 0]
    return scores(prediction, truth) | {
        "crps": sampled_crps(prediction, truth, seed=int(settings["draw"])),
        "coverage_expected": expected_coverage(prediction, truth),
        "ratio": float(prediction.mean[:, 0].sum() / truth.sum()),
        **_of_censored_hours(model, data, weather),
        "elbo": model.elbo_,
        "converged": float(model.report_.converged),
        "fit_seconds": seconds,
    }


def _weather(settings: Settings) -> tuple[str, ...]:
    """Return the weather that is used; trip files have none."""
    if settings["partner"] == "downloaded":
        return ()
    if settings["block"] == "paper":
        return PAPER_WEATHER.get(settings["station"], ())
    return OWN_WEATHER.get(settings["station"], OF_2016)


def _model(settings: Settings, data: CensoredDemand, weather: tuple[str, ...]) -> Any:
    family, paper = settings["family"], settings["block"] == "paper"
    extra: dict[str, Any] = {"engine": settings["engine"], "random_state": int(settings["draw"])}
    if paper:
        extra["max_inducing"] = PAPER_INDUCING
    if settings["engine"] == "natural":
        extra["engine_settings"] = NATURAL
    if settings["engine"] == "svi":
        # The paper stops early by the likelihood of the validation hours, as they were observed.
        held_out = seen_by(settings["model"], _seen(settings, data, data.validation))
        inputs = data.inputs(*weather, rows=data.validation)
        extra["engine_settings"] = {"validation": (inputs, held_out)}
    return build(
        settings["model"],
        paper_likelihood(family) if paper else family,
        paper_kernels(rain="rain" in weather) if paper else None,
        **extra,
    )


def _training(settings: Settings, data: CensoredDemand) -> Observations:
    """Return what a model is fitted to: what was observed, or the truth (an oracle)."""
    seen = _seen(settings, data, data.train)
    if settings["data"] == "truth":
        truth = data.truth[data.train]
        seen = Observations(truth, truth, data.names)
    return seen_by(settings["model"], seen)


def _seen(settings: Settings, data: CensoredDemand, rows: slice) -> Observations:
    """Return what was observed, with what is known of the rule by which the rest was hidden."""
    seen = data.observations(rows)
    if settings["data"] not in UNTOLD:
        return seen
    return dataclasses.replace(seen, is_share=seen.is_right)


def _of_censored_hours(
    model: Any, data: CensoredDemand, weather: tuple[str, ...]
) -> dict[str, float]:
    """Return scores of the true demand in the training hours, of censored ones given their bounds.

    `ratio_train` is the demand that the model expects in all training hours, over the true one.
    """
    hours = np.flatnonzero(data.censored[data.train, 0])
    truth = data.truth[data.train, 0]
    inputs = data.inputs(*weather, rows=data.train)
    fitted = model.predict_distribution(inputs).of_outputs([0])
    if model.use_censoring and model.observations_.is_right[hours, 0].any():
        found = imputed(model, hours).of_outputs([0])
    else:
        found = model.predict_distribution({name: c[hours] for name, c in inputs.items()})
        found = found.of_outputs([0])
    held = coverage(found, truth[hours])
    return {
        "ratio_train": float(fitted.mean[:, 0].sum() / truth.sum()),
        "coverage_censored": held["coverage"],
        "coverage_censored_at_random": held["coverage_at_random"],
        "coverage_censored_expected": expected_coverage(found, truth[hours]),
        "mae_censored": point_scores(found.mean[:, 0], truth[hours])["mae"],
    }


def _reference(settings: Settings, data: CensoredDemand) -> dict[str, float]:
    """Score a simple method that knows the hour of the week (and the weather)."""
    values = data.truth if settings["data"] == "truth" else data.observed
    use = np.ones(len(values), bool)
    if settings["data"] == "uncensored":
        use = ~data.censored[:, 0]
    use[data.train.stop :] = False
    predict = _weekly if settings["model"] == "hour-of-week mean" else _boosted
    start = time.perf_counter()
    predicted = predict(data, values[:, 0], use)[data.test]
    seconds = time.perf_counter() - start
    return point_scores(predicted, data.truth[data.test, 0]) | {"fit_seconds": seconds}


def _weekly(
    data: CensoredDemand, values: Float[np.ndarray, " N"], use: Bool[np.ndarray, " N"]
) -> Float[np.ndarray, " N"]:
    """Predict the mean of the same hour of the week, else of the same hour of the day."""
    hour = data.time.astype("datetime64[h]").astype(int)
    predicted = np.full(len(hour), values[use].mean())
    for cycle in (24, 168):
        for phase in range(cycle):
            own = hour % cycle == phase
            if (use & own).any():
                predicted[own] = values[use & own].mean()
    return predicted


def _boosted(
    data: CensoredDemand, values: Float[np.ndarray, " N"], use: Bool[np.ndarray, " N"]
) -> Float[np.ndarray, " N"]:
    """Predict by scikit-learn's histogram booster, from hour, weekday and the paper's weather."""
    # Imported when asked for: it is slow to load.
    from sklearn.ensemble import HistGradientBoostingRegressor

    hour = data.time.astype("datetime64[h]").astype(int)
    columns = [
        hour % 24,
        (hour // 24 + 4) % 7,
        *(data.weather[w] for w in ("rain",) if w in data.weather),
    ]
    table = np.stack(columns, axis=1)
    # Its threads wait for each other on a busy machine.
    with threadpool_limits(1):
        booster = HistGradientBoostingRegressor(random_state=0).fit(table[use], values[use])
        return booster.predict(table)


STUDY = Study(
    "table4",
    ("station", "partner", "draw", "block", "family", "model", "data", "engine"),
    (
        *("r2", "mae", "nlpd", "nlpd_per_point", "crps"),
        *("coverage", "coverage_at_random", "coverage_expected"),
        *("coverage_censored", "coverage_censored_at_random", "coverage_censored_expected"),
        "mae_censored",
        *("ratio", "ratio_train", "elbo", "converged", "fit_seconds"),
    ),
    run,
    # Stations have as many hours, and compiled shapes are rounded: what rows of one model compile
    # is nearly the same, but for the paper's kernels of rain, which one station has.
    varied=("draw", "station", "partner"),
)


def _run(station: str, draw: int, block: str, family: str, model: str, **more: str) -> Settings:
    run = {"station": station, "partner": "published", "draw": draw, "block": block,
           "family": family, "model": model, "data": "observed", "engine": "natural"}  # fmt: skip
    return run | more


def own_run(pair: tuple[str, str], draw: int, family: str, model: str, **more: str) -> Settings:
    """Return a run with the package's defaults, of any two stations.

    >>> own_run(("497", "285"), 0, "poisson", "MOCGP", data="share")["partner"]
    '285'
    """
    return _run(pair[0], draw, "own", family, model, partner=pair[1], **more)


def runs(draws: int, engine: str = "natural") -> list[Settings]:
    """Return the runs of table 4: rows, the corrected partner and simple methods.

    >>> len(runs(10)), len(runs(1, "svi"))
    (1062, 116)
    """
    block_rows = [(b, f, m) for f, m in ROWS for b in BLOCKS]
    seeds = range(draws)
    found = [_run(s, d, *row, engine=engine) for row in block_rows for s in STATIONS
             for d in seeds]  # fmt: skip
    found += [_run("3711", d, b, f, m, partner="corrected", engine=engine)
              for b, f, m in block_rows if m not in SINGLE
              for d in range(min(draws, FEW))]  # fmt: skip
    return found + [_run(s, d, "-", "-", method, data=seen, engine="-")
                    for method, seen in REFERENCES for s in STATIONS for d in seeds]  # fmt: skip


def gap_runs(draws: int, engine: str = "natural") -> list[Settings]:
    """Return what a row is held against to see the gap: its twins, one ignoring, one all-seeing.

    >>> len(gap_runs(10))
    204
    """
    ignoring = [(b, f, IGNORING) for (f, _), m in IGNORED.items() if m == IGNORING for b in BLOCKS]
    found = [_run(s, d, *row, engine=engine) for row in ignoring for s in STATIONS
             for d in range(draws)]  # fmt: skip
    # The truth is the same in all draws: one run serves all.
    return found + [_run(s, 0, b, f, m, data="truth", engine=engine) for f, m in ROWS
                    for b in BLOCKS for s in STATIONS]  # fmt: skip


def rule_runs(draws: int, engine: str = "natural") -> list[Settings]:
    """Return runs that tell what the rule of censoring has to do with the results.

    Models that are told that a share was seen, or may have been, and data with limits that are
    independent of demand.

    >>> len(rule_runs(10))
    258
    """
    found = [_run(s, d, b, f, m, data="share", engine=engine) for f, m in COUNTED for b in BLOCKS
             for s in STATIONS
             for d in range(draws if b == "own" else min(draws, HALF))]  # fmt: skip
    found += [_run(s, d, "own", f, m, data=seen, engine=engine)
              for seen in ("either", "limits either", "limits share")
              for f, m in COUNTED for s in STATIONS
              for d in range(draws if seen == "either" else min(draws, FEW))]  # fmt: skip
    both = dict.fromkeys((f, m) for (f, ours), ignoring in IGNORED.items()
                         for m in (ours, ignoring))  # fmt: skip
    return found + [_run(s, d, "own", f, m, data="limits", engine=engine) for f, m in both
                    for s in STATIONS for d in range(min(draws, FEW))]  # fmt: skip


def downloaded_runs(draws: int, engine: str = "natural") -> list[Settings]:
    """Return the runs of the paper's own four stations, from trip files that are downloaded.

    >>> len(downloaded_runs(1))
    136
    """
    found = [_run(s, d, b, f, m, partner="downloaded", engine=engine) for f, m in ROWS
             for b in BLOCKS for s in FOUR_STATIONS for d in range(draws)]  # fmt: skip
    simple = [_run(s, d, "-", "-", method, data=seen, partner="downloaded", engine="-")
              for method, seen in REFERENCES for s in FOUR_STATIONS
              for d in range(draws)]  # fmt: skip
    return found + simple
