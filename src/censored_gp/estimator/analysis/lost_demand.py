"""Lost demand and required supply: sums and peaks of joint draws.

The interval of a sum is not the sum of intervals, as cells are dependent under the posterior. So
cells are drawn jointly, each draw is summed (or its peak is taken), and intervals are quantiles of
the sums.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from scipy.sparse import csr_array

from censored_gp.data.errors import did_you_mean, listed, refuse, shortened, warn
from censored_gp.data.observations import Observations
from censored_gp.data.tables import group_labels, is_missing, read_table
from censored_gp.data.time import CALENDAR, duration_hours
from censored_gp.estimator.settings import seed_of
from censored_gp.estimator.training import TrainingData, read_new
from censored_gp.inference.posterior import Posterior
from censored_gp.inference.substitution import Records, draw_own_demand, lost_of
from censored_gp.model.compilation import slices
from censored_gp.prediction.predictive import MOST_DRAWN, check_draws, check_probability

# The words that cells can be grouped by, beside columns of the training table.
PARTS = ("output", *CALENDAR)

# The columns of a table of lost demand, beside those of its groups.
FIGURES = (
    *("observed", "demand", "lost", "lost_low", "lost_high", "share", "share_low", "share_high"),
    *("cells", "censored"),
)

# The label of the sum of all outputs.
EVERY = "all outputs"

NO_TIME = "The model has no input that is a time. Give a label for each row instead."

# The name of a grouping, its distinct labels in order, and the code of each cell.
Grouping = tuple[str, Any, Int[np.ndarray, "N D"]]


class Groups(NamedTuple):
    """Cells put into G groups: the labels of each group, and the group of each cell."""

    labels: dict[str, Shaped[np.ndarray, " G"]]
    code: Int[np.ndarray, "N D"]
    count: int


# Draws of what was lost of each cell that falls short, in parts, and what moved of each cell's
# demand.
Lost = tuple[Iterable[Float[np.ndarray, "S R"]], Float[np.ndarray, "#N #D"]]
# At most so many numbers are kept.
MOST_KEPT = 2**25

# The last draws of each model, after the posterior, number and seed that they belong to.
#
# They are kept outside of the model, so that no file or copy has them.
LATEST: WeakKeyDictionary[Any, tuple[Posterior, int, int, Lost]] = WeakKeyDictionary()


def lost_demand(model: Any, by: Any, probability: float, samples: int, seed: Any) -> Any:
    """Return observed and lost demand by group, with intervals; see `CensoredGP.lost_demand`."""
    if not model.use_censoring:
        raise ValueError(
            "lost_demand needs a model that uses the bounds, such as HMOCGP, got one with "
            "use_censoring=False."
        )
    check_probability(probability)
    check_draws(samples, "samples")
    groups, known = group_cells(model.training_, by), model.observations_
    if unsaid := int(np.sum(known.is_left | known.is_interval)):
        warn(
            f"{unsaid} cell(s) with an upper bound have no record from which something could be "
            "missing: they are left out of all sums. `impute` estimates them."
        )
    lost, moved = draw_lost(model, samples, seed_of(seed, model.random_state, 0))
    return model.training_.table(summarise(known, lost, groups, probability, moved))


def draw_lost(model: Any, samples: int, seed: Any) -> Lost:
    """Draw the lost demand of each cell that falls short, in the order of rows, part by part.

    A few draws are kept for the next question, unless the seed is a generator, whose draws differ
    every time. With substitution, also return how much more of each cell was wanted than is
    recorded of it or lost: on the average, and less than nothing where others came.
    """
    none: Lost = [np.zeros((1, 0))], np.zeros((1, 1))
    posterior, count, by_seed, lost = LATEST.get(model, (None, 0, 0, none))
    if posterior is model.posterior_ and (count, by_seed) == (samples, seed):
        return lost
    known, rows = model.observations_, np.any(model.observations_.falls_short, axis=1)
    if not rows.any():
        return none
    short, recorded = known.falls_short[rows], known.recorded[known.falls_short]
    parts: Iterable[Float[np.ndarray, "S R"]]
    if model.substitution_ is None:
        drawn, moved = model.imputation(rows).sample_in_chunks(samples, seed), none[1]
        # Computing is in other units, so that a draw at its bound can come out a hair below it.
        parts = (np.maximum(part[:, short] - recorded, 0.0) for part in drawn)
    else:
        records = Records.of(known).rows(rows)
        random, shares, units = np.random.default_rng(seed), model.substitution_, model.units_
        links = [likelihood.links[1] for likelihood in model.training_.likelihoods]
        inputs, parts, moved = model.training_.inputs[rows], [], np.zeros(known.shape)
        for some in slices(samples, max(1, MOST_DRAWN // records.value.size)):
            latent = model.posterior_.draw(random, inputs, some.stop - some.start)
            mean = units.shift + units.scale * latent["mean"]
            scales = zip(links, np.moveaxis(latent["scale"], 2, 0), strict=True)
            noise = (units.scale * np.stack([np.asarray(g(x)) for g, x in scales], axis=2)) ** 2
            own = draw_own_demand(random, records, mean, noise, shares)
            each = lost_of(records, own, shares)
            beside = np.where(records.full | records.below, own - records.value - each, 0.0)
            moved[rows] += beside.sum(axis=0) / samples
            parts.append(each[:, short])
    if isinstance(seed, int) and samples * len(recorded) <= MOST_KEPT:
        parts = list(parts)
        LATEST[model] = model.posterior_, samples, seed, (parts, moved)
    return parts, moved


def summarise(
    known: Observations,
    lost: Iterable[Float[np.ndarray, "S R"]],
    groups: Groups,
    probability: float = 0.9,
    moved: Float[np.ndarray, "#N #D"] | float = 0.0,
) -> dict[str, Any]:
    """Return observed and lost demand of each group, with intervals, from joint draws in parts.

    With substitution, demand that was served by another output is that of the output it was `moved`
    from. Missing cells and those with an upper bound, of which no value was recorded, are left out.
    """

    def sums(cells: Shaped[np.ndarray, "N D"]) -> Float[np.ndarray, " G"]:
        return np.bincount(groups.code.ravel(), weights=cells.ravel(), minlength=groups.count)

    counted = known.is_exact | known.falls_short
    cells = groups.code[known.falls_short]
    which = np.ones(len(cells)), (np.arange(len(cells)), cells)
    by_group = csr_array(which, shape=(len(cells), groups.count))
    total = np.concatenate([part @ by_group for part in lost])
    observed = sums(np.where(counted, known.recorded, 0.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.nan_to_num(total / (observed + total), nan=0.0)
    # What is lost is a share of demand only if the rest of it is no less than nothing.
    share[:, observed < 0] = np.nan
    demand = observed + total.mean(axis=0) + sums(np.broadcast_to(moved, known.shape))
    table = {**groups.labels, "observed": observed, "demand": demand}
    for name, draws in (("lost", total), ("share", share)):
        low, high = np.quantile(draws, [(1 - probability) / 2, (1 + probability) / 2], axis=0)
        table |= {name: draws.mean(axis=0), f"{name}_low": low, f"{name}_high": high}
    table["cells"] = sums(counted).astype(int)
    table["censored"] = sums(known.falls_short).astype(int)
    return table


def group_cells(training: TrainingData, by: Any) -> Groups:
    """Group cells by output, a part of their time, a column, labels of rows, or several of these.

    A list is a label for each row if it is as long as that, unless all of it are names.
    """
    shape = training.observations.shape
    if by is None:
        return Groups({}, np.zeros(shape, dtype=int), 1)
    parts = [by]
    if isinstance(by, list | tuple) and (
        len(by) not in (len(training.inputs), len(training.places))
        or all(isinstance(name, str) and _named(training, name) is not None for name in by)
    ):
        parts = by or [by]
    names, distinct, codes = zip(*(_grouping(training, part) for part in parts), strict=True)
    sizes = [len(each) for each in distinct]
    flat = np.ravel_multi_index([code.reshape(-1) for code in codes], sizes)
    present, code = np.unique(flat, return_inverse=True)
    index = np.unravel_index(present, sizes)
    labels = {n: np.asarray(d)[i] for n, d, i in zip(names, distinct, index, strict=True)}
    return Groups(labels, code.reshape(shape), len(present))


def _grouping(training: TrainingData, by: Any) -> Grouping:
    """Return the name of a grouping, its distinct labels in order, and the code of each cell."""
    shape, found = training.observations.shape, None
    if isinstance(by, str):
        found = _named(training, by)
    elif np.shape(by) == shape:
        found = _coded("group", np.asarray(by))
    elif np.ndim(by) == 1 and len(by) in (len(training.inputs), len(training.places)):
        found = _coded("group", _spread(training, np.asarray(by)))
    if found is None or found[0] in FIGURES:
        problem = shortened(repr(by)) if found is None else "a name that a column of the answer has"
        tables = () if training.rows is None else (training.rows.table, training.rows.index)
        columns = [name for table in tables if table is not None for name in table.names]
        known = dict.fromkeys([*PARTS, *training.columns.groups, *columns])
        raise ValueError(
            f"`by` must be among {listed(known)} (of a model from a file: its time and inputs), a "
            f"list of these, or one label for each of the {shape[0]} rows, got {problem}. "
            f"{did_you_mean(by, known)}"
        )
    return found


def _named(training: TrainingData, name: str) -> Grouping | None:
    """Return a grouping by its name: a word of `PARTS` or a column; None if there is no such."""
    rows, columns, shape = training.rows, training.columns, training.observations.shape
    if name in ("output", training.output_label):
        code = np.broadcast_to(np.arange(shape[1]), shape)
        return training.output_label, np.asarray(training.labels), code
    if name in CALENDAR:
        if training.times is None:
            raise ValueError(NO_TIME)
        part, order = CALENDAR[name](training.times)
        cells = np.broadcast_to(part[:, None], shape)
        return _coded(name, cells) if order is None else (name, order, cells)
    for table in () if rows is None else (rows.table, rows.index):
        if table is not None and table.has(name):
            return _coded(name, _spread(training, group_labels(table, name)))
    if name not in columns.groups:
        return None
    values = read_table({name: columns.values(name, training.inputs)})
    return _coded(name, np.broadcast_to(group_labels(values, name)[:, None], shape))


def _coded(name: str, labels: Shaped[np.ndarray, "*N"]) -> Grouping:
    """Return labels coded in their order; of mixed kinds as words."""
    if labels.dtype == object:
        words = ["missing" if is_missing(label) else label for label in labels.flat]
        mixed = len({type(word) for word in words}) > 1
        labels = np.array([*map(str, words)] if mixed else words).reshape(labels.shape)
    distinct, code = np.unique(labels, return_inverse=True)
    return name, distinct, code.reshape(labels.shape)


def _spread(training: TrainingData, labels: Shaped[np.ndarray, " K"]) -> Shaped[np.ndarray, "N D"]:
    """Return labels of the rows of a training table (or of the model) for each cell."""
    rows, shape = training.rows, training.observations.shape
    if rows is None or rows.output is None or len(labels) != len(rows.row):
        return np.broadcast_to(labels[:, None], shape)
    cells = np.full(shape, labels[0], dtype=labels.dtype)
    cells[rows.row, rows.output] = labels
    return cells


def required_supply(
    model: Any, X: Any, probability: float, window: Any, samples: int, seed: Any
) -> Any:
    """Return how much supply meets demand with a probability; see `CensoredGP.required_supply`."""
    check_probability(probability)
    check_draws(samples, "samples")
    training = model.training_
    inputs, rows = read_new(model, X)
    prediction = model.distribution_at(inputs)
    # The rows of a long table ask for some cells only.
    asked = np.full(prediction.shape, rows is None or rows.output is None)
    if rows is not None and rows.output is not None:
        asked[rows.row, rows.output] = True
        if np.shape(window) == rows.row.shape:
            labels, first = np.asarray(window), np.unique(rows.row, return_index=True)[1]
            other, said = labels[first][rows.row], "got {!r}, but {!r} in a row of the same time."
            refuse(labels != other, "window", "Label", said, labels, other)
            window = labels[first]
    labels, code = windows_of(window, training.clock(inputs), len(inputs))
    parts = prediction.sample_in_chunks(samples, seed_of(seed, model.random_state, 0))
    peaks, sums = peaks_and_sums(parts, code, asked)
    outputs = [str(label) for d, label in enumerate(training.labels) if asked[:, d].any()]
    shown = outputs + [EVERY] * (len(outputs) > 1)
    starts = np.repeat(labels, len(shown))
    starts = training.timestamps(starts) if isinstance(window, str) else starts
    columns = {"window": starts, training.output_label: np.array(shown * len(labels))}
    for name, figures in (("peak", peaks), ("sum", sums)):
        # The next draw above: enough in at least that share of them, and whole where demand is.
        enough = np.quantile(figures, probability, axis=0, method="inverted_cdf")
        columns[name] = enough.ravel()
    columns |= {"expected_peak": peaks.mean(axis=0).ravel()}
    return training.table(columns | {"expected_sum": sums.mean(axis=0).ravel()})


def windows_of(
    window: Any, times: Shaped[np.ndarray, " N"] | None, rows: int
) -> tuple[Shaped[np.ndarray, " W"], Int[np.ndarray, " N"]]:
    """Return the labels of windows and the window of each row.

    A window is a duration ("6h", "1d": they start at midnight of the first day), a label for each
    row, or None for all rows together.
    """
    if window is None:
        return np.array(["all rows"]), np.zeros(rows, dtype=int)
    if not isinstance(window, str):
        if np.shape(window) != (rows,):
            raise ValueError(
                '`window` must be a duration such as "6h" or "1d", or one label for each of the '
                f"{rows} rows, got labels of shape {np.shape(window)}."
            )
        return _coded("window", np.asarray(window))[1:]
    seconds = round(3600 * duration_hours(window))
    if seconds < 1:
        raise ValueError(f"`window` must be a second or longer, got {window!r}.")
    if times is None:
        raise ValueError(NO_TIME)
    midnight = times.min().astype("datetime64[D]").astype("datetime64[s]")
    present, code = np.unique((times - midnight).astype(np.int64) // seconds, return_inverse=True)
    return midnight + (present * seconds).astype("timedelta64[s]"), code


def peaks_and_sums(
    draws: Iterable[Float[np.ndarray, "S N D"]],
    code: Int[np.ndarray, " N"],
    asked: Bool[np.ndarray, "N D"],
) -> tuple[Float[np.ndarray, "S W K"], Float[np.ndarray, "S W K"]]:
    """Return peak and sum of each output that is asked for, and of several together, by window."""
    order = np.argsort(code, kind="stable")
    starts = np.searchsorted(code[order], np.arange(code.max() + 1))
    peaks, sums = [], []
    for part in draws:
        cells = np.where(asked, part, 0.0)[:, order][:, :, asked.any(axis=0)]
        if cells.shape[2] > 1:
            cells = np.concatenate([cells, cells.sum(axis=2, keepdims=True)], axis=2)
        peaks.append(np.maximum.reduceat(cells, starts, axis=1))
        sums.append(np.add.reduceat(cells, starts, axis=1))
    return np.concatenate(peaks), np.concatenate(sums)
