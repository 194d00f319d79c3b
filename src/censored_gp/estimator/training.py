"""Training data, new inputs and outputs of an estimator: from the user's arguments to matrices.

Inputs are validated as scikit-learn does it (names and number of features); all else is checked in
`data`. Bad data are refused before any computing.
"""

from __future__ import annotations

import dataclasses
import datetime
import itertools
from collections.abc import Mapping, Sequence
from numbers import Number, Real
from typing import Any, cast

import numpy as np
from jaxtyping import Float, Int, Shaped
from narwhals.dependencies import is_pandas_dataframe
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, validate_parameter_constraints
from sklearn.utils.validation import check_is_fitted, validate_data

from censored_gp.data import layout as layouts
from censored_gp.data import tables, validation
from censored_gp.data.errors import listed, not_among, reads_as, refuse
from censored_gp.data.inputs import Columns, read_inputs
from censored_gp.data.layout import Layout, Rows
from censored_gp.data.observations import Observations, find_steps, within_steps
from censored_gp.data.time import to_utc
from censored_gp.inference import Task
from censored_gp.inference.substitution import FIRST_SHARE, Plan
from censored_gp.likelihoods import Gaussian, Likelihood, as_likelihood
from censored_gp.likelihoods.links import Identity
from censored_gp.model.lmc import LMC
from censored_gp.model.model import Model, Units
from censored_gp.model.starting_values import Design, design_for, spare_kernels

Matrix = Float[np.ndarray, "N C"]
Times = Shaped[np.ndarray, " N"]


# Keys of `substitution` by distances, and what they may be.
BY_DISTANCE: dict[str, Any] = {
    "distances": "no_validation",
    "decay": [Interval(Real, 0, None, closed="neither")],
    "moving": [Interval(Real, 0, 1, closed="right")],
}

# The types that cells of inputs may have in an array of objects.
READABLE = (str, bytes, Number, np.generic, datetime.date, datetime.timedelta)


@dataclasses.dataclass(frozen=True)
class TrainingData:
    """The data that a model was fitted to.

    Attributes
    ----------
    inputs : array (N, C)
        Centred inputs, as kernels see them.
    columns : Columns
        The encoding of the inputs.
    observations : Observations
        Bounds of the outputs, as the user gave them.
    likelihoods : tuple of Likelihood
        The likelihood of each output.
    seen : Observations
        Bounds as the likelihoods see them: within their support, half a step from what was
        recorded in steps, exact if censoring is ignored.
    layout : Layout or None
        The roles of the columns of the training table; None if arrays were given.
    rows : Rows or None
        The rows of the training table; None if arrays were given.
    capacity : number or dict by output, optional
        The capacity, if that alone says which values of arrays are censored, and of any row.
    own_inputs : tuple of tuples of int
        Columns of the inputs that each output has of its own.
    in_text : bool
        Whether text of the outputs themselves ("<0.5") said which are bounds.
    """

    inputs: Matrix
    columns: Columns
    observations: Observations
    likelihoods: tuple[Likelihood, ...]
    seen: Observations
    layout: Layout | None = None
    rows: Rows | None = None
    capacity: Any = None
    own_inputs: tuple[tuple[int, ...], ...] = ()
    in_text: bool = False

    @property
    def time_column(self) -> int | None:
        """The position of the first input that is a time; None if there is none."""
        return next(itertools.compress(itertools.count(), self.columns.is_time), None)

    @property
    def times(self) -> Times | None:
        """The wall clock of the rows; None if no input is a time."""
        return self.clock(self.inputs)

    def clock(self, inputs: Matrix) -> Times | None:
        """Return the time of each row of inputs by the wall clock, to the second."""
        if self.time_column is None:
            return None
        name = self.columns.names[self.time_column]
        return self.columns.values(name, inputs).astype("datetime64[s]")

    @property
    def labels(self) -> tuple[Any, ...]:
        """The outputs as the user names them: of a long table, values of its column `by`."""
        return self.observations.names if self.layout is None else self.layout.outputs

    @property
    def own_names(self) -> list[list[str]] | None:
        """The names of `own_inputs`, as `CensoredGP.fit` takes them with the inputs and outputs."""
        return [[self.columns.names[c] for c in each] for each in self.own_inputs] or None

    @property
    def is_forgotten(self) -> bool:
        """Whether arrays said how far outputs of a table were seen, so that no layout has it."""
        stated = [getattr(self.layout, n, None) for n in layouts.GIVEN if n != "side"]
        known = self.observations.is_exact | self.observations.is_missing
        return all(each is None for each in stated) and not (known.all() or self.in_text)

    @property
    def output_label(self) -> str:
        """The name of the column of outputs in a result."""
        return str(getattr(self.layout, "by", None) or "output")

    @property
    def places(self) -> Int[np.ndarray, " K"]:
        """The row of the model that each row of the training table is about."""
        return np.arange(len(self.inputs)) if self.rows is None else self.rows.row

    def chosen(self, rows: slice) -> tuple[Any, Rows | None]:
        """Return the rows of the model that a slice of the training table is about, and its keys.

        Of arrays the rows of the model are the table.
        """
        if self.rows is None or rows == slice(None):
            return rows, self.rows
        places, row = np.unique(self.rows.row[rows], return_inverse=True)
        index, output = self.rows.index.rows(rows), self.rows.output
        return places, Rows(index, row, None if output is None else output[rows])

    def bounded(
        self, cells: Float[np.ndarray, "K D"], rows: Any = slice(None)
    ) -> Float[np.ndarray, "K D"]:
        """Return estimates of cells within what is known of them: exact cells as observed."""
        known, seen = self.observations.rows(rows), self.seen.rows(rows)
        # Own demand is at most what is recorded, where that is below a limit.
        most = np.where(known.is_exact, known.upper, np.inf)
        within = np.clip(cells, seen.lower, seen.upper)
        within = np.where(seen.is_partial, np.minimum(cells, most), within)
        return np.where(seen.is_exact, seen.lower, within)

    def table(self, columns: Mapping[str, Any]) -> Any:
        """Return columns as a table of the training table's backend."""
        if self.layout is None:
            return tables.ResultTable.of(dict(columns))
        return tables.build(self.layout.backend, columns)

    def timestamps(self, wall: Times, instants: Times | None = None) -> Any:
        """Return wall-clock times in the type, unit and zone of the training table's times."""
        zone, time = self.columns.zones[self.time_column or 0], getattr(self.layout, "time", None)
        if instants is None:
            instants = wall if zone is None else to_utc(wall, zone)
        like = None if self.rows is None or time is None else self.rows.index.array(time, "Time")
        return tables.times_like(like, wall, instants, zone)


def read_training(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    outputs: Any = None,
    rounded: Any = None,
    own_inputs: Any = None,
    start: Any = None,
    **given: Any,
) -> TrainingData:
    """Read and check the data of a fit; see `CensoredGP.fit` for the arguments."""
    layout = rows = None
    bounds = {name: given[name] for name in layouts.GIVEN if name in given}
    validation.same_index(X, y=y, **bounds)
    if outputs is None:
        roles = {name: given[name] for name in given if name not in bounds}
        named = [f"{name}={value!r}" for name, value in roles.items() if value is not None]
        if named:
            raise ValueError(f"`outputs` must name columns of the table, got {', '.join(named)}.")
        table, observations = X, None
    elif y is not None:
        raise ValueError("`y` must be None where `outputs` names columns of a table.")
    else:
        before = getattr(getattr(start, "training_", None), "layout", None)
        order = before.outputs if before is not None and before.long else ()
        read = layouts.read_training(X, outputs, own_inputs=own_inputs, order=order, **given)
        layout, rows, table, observations = read
    with layouts.located(rows and rows.table, layout, rows):
        matrix, columns = validated_inputs(model, table)
        if observations is None:
            observations = validation.read_targets(y, **bounds)
        validation.same_rows(observations, matrix)
        likelihoods = likelihood_of_each(model.likelihood, observations.names)
        if rounded is not None:
            observations = observations.rounded(rounded)
        taken = observations
        if not model.use_censoring:
            taken = validation.ignore_censoring(observations, likelihoods)
        steps = find_steps(taken, [f.support for f in likelihoods]).step
        observations = dataclasses.replace(observations, step=steps)
        seen = seen_by(likelihoods, observations, model.use_censoring)
        own: tuple[tuple[int, ...], ...] = ()
        if own_inputs is not None:
            if model.engine != "natural":
                raise ValueError(f'`own_inputs` needs engine="natural", got {model.engine!r}.')
            names = None if layout is None else layout.own_columns
            names = names or layouts.own_of_each(own_inputs, observations.names)
            own = tuple(columns.indices(each, asked_by="`own_inputs`") for each in names)
    stated = {name for name, value in bounds.items() if value is not None} - {"side"}
    capacity = bounds["capacity"] if layout is None and stated == {"capacity"} else None
    capacity = layouts.lasting(capacity, observations.shape[1])
    known = observations.is_exact | observations.is_missing
    in_text = not (stated or isinstance(y, Observations) or known.all())
    parts = matrix, columns, observations, likelihoods, seen, layout, rows, capacity, own
    return TrainingData(*parts, in_text=in_text)


def seen_by(
    likelihoods: tuple[Likelihood, ...], observations: Observations, use_censoring: bool
) -> Observations:
    """Return the bounds as the likelihoods see them, or as values if censoring is ignored."""
    seen = observations if use_censoring else validation.ignore_censoring(observations, likelihoods)
    seen = within_steps(seen, [likelihood.support for likelihood in likelihoods])
    return validation.within_support(seen, likelihoods)


def design_of(model: Any, training: TrainingData) -> Design:
    """Return the design that the settings of an estimator ask for."""
    parts = training.likelihoods, training.columns, training.inputs, training.own_inputs
    return design_for(vars(model), *parts)


def make_task(
    model: Any,
    training: TrainingData,
    starts: Sequence[Model],
    observations: Observations,
    centre: Mapping[str, LMC] | None = None,
    **more: Any,
) -> Task:
    """Return the task of an engine: starting models and observations in model units.

    Where a fit goes on from an earlier one, `centre` is that which the prior of its
    hyper-parameters is around (rows must not count twice), and no other starts are tried.
    """
    inputs, most = training.inputs, model.max_inducing
    if centre is not None:
        more["centre"] = centre
    elif model.kernels is None:
        # Kernels that nobody has chosen may be changed.
        more |= {"explore": True, "spare": spare_kernels(training.columns, inputs, most)}
    tolerance = model.inducing_tolerance
    return Task(starts[-1], observations, inputs, tolerance, most, candidates=tuple(starts), **more)


def continued(start: Any, training: TrainingData) -> tuple[Units, list[Model], Mapping[str, LMC]]:
    """Return the units, model and prior of an earlier fit, to go on from with other rows.

    These have origins of their own, which the kernels are moved to.
    """
    check_is_fitted(start)
    before: TrainingData = start.training_
    pairs = {
        "outputs": (before.observations.names, training.observations.names),
        "likelihoods": (before.likelihoods, training.likelihoods),
        "inputs": (before.columns.names, training.columns.names),
    }
    for what, (old, new) in pairs.items():
        if old != new:
            raise ValueError(f"`start` must be a model of the same {what}: {old}, got {new}.")
    priors, centre = (
        {
            role: dataclasses.replace(
                lmc, kernels=tuple(k.aligned(training.columns) for k in lmc.kernels)
            )
            for role, lmc in several.items()
        }
        for several in (start.posterior_.model.priors, start.posterior_.centre)
    )
    return start.units_, [dataclasses.replace(start.posterior_.model, priors=priors)], centre


def read_substitution(model: Any, training: TrainingData) -> Plan | None:
    """Return the shares of excess that move between outputs; None if nothing moves."""
    given, seen = model.substitution, training.seen
    names, number = seen.names, seen.shape[1]
    if given is None:
        return None
    if number < 2 or not model.use_censoring:
        said = "several outputs" if number < 2 else "a model that uses the bounds, such as MOCGP"
        raise ValueError(f"`substitution` needs {said}.")
    for name, likelihood in zip(names, training.likelihoods, strict=True):
        if type(likelihood) is not Gaussian or not isinstance(likelihood.links[0], Identity):
            raise ValueError(
                f"`substitution` needs Gaussian outputs, whose demand may be divided into what was "
                f"meant for them and what moved there, got {likelihood!r} for {name!r}."
            )
    bad = ~(seen.is_exact | seen.is_right | seen.is_missing)
    said = "got from {:g} to {:g}. With `substitution`, records must be exact or at least a bound."
    refuse(bad, names, "Output", said, seen.lower, seen.upper)
    others = ~np.eye(number, dtype=bool)
    if isinstance(given, str) and given == "learned":
        return Plan(others / number, learned=("shares",))
    options: dict[str, Any] = {}
    if isinstance(given, Mapping) and "distances" in given:
        options = dict(given)
    matrix = _matrix_of_outputs(options.get("distances", given), names)
    if not options:
        bad = np.any((matrix < 0) | (matrix > 0) & ~others, axis=1) | (
            matrix.sum(axis=1) > 1 + 1e-9
        )
        if bad.any():
            i = int(np.argmax(bad))
            raise ValueError(
                "`substitution` must have shares of 0 or more, none from an output to itself, that "
                f"sum to at most 1, got {matrix[i].tolist()} for {names[i]!r}."
            )
        return Plan(matrix) if matrix.any() else None
    if np.any(matrix[others] < 0):
        raise ValueError(f"`substitution` must have distances of 0 or more, got {matrix.min():g}.")
    for strange in set(options) - set(BY_DISTANCE):
        raise not_among("substitution", strange, BY_DISTANCE, ", if it is a dict of distances")
    validate_parameter_constraints(BY_DISTANCE, options, "substitution")
    start = {"moving": FIRST_SHARE, "decay": float(np.median(matrix[others])) or 1.0} | options
    learned = tuple(name for name in ("moving", "decay") if name not in options)
    plan = Plan(matrix, matrix, start["moving"], start["decay"], learned)
    return plan.at(plan.free)


def _matrix_of_outputs(given: Any, names: tuple[str, ...]) -> Float[np.ndarray, "D D"]:
    """Return a matrix with a row and a column for each output, from one or a dict of dicts."""
    matrix, strange = given, ""
    if isinstance(given, Mapping):
        rows = [row for name in names if isinstance(row := given.get(name, {}), Mapping)]
        unknown = [key for key in (*given, *itertools.chain(*rows)) if key not in names]
        strange = f", got the name {unknown[0]!r}" if unknown else ""
        matrix = [[row.get(name, 0.0) for name in names] for row in rows]
    matrix = np.asarray(matrix, dtype=float) if reads_as(np.float64, matrix) else np.zeros(0)
    if strange or matrix.shape != (len(names), len(names)) or not np.isfinite(matrix).all():
        raise ValueError(
            "`substitution` must be a matrix of shares with a row and a column for each of "
            f'{listed(names)}, a dict of dicts of these, {{"distances": matrix}} or "learned"'
            f"{strange or f', got {given!r}'}."
        )
    return matrix


def read_validation(model: Any, given: Any, training: TrainingData) -> tuple[Matrix, Observations]:
    """Read the validation data (X, y) of an engine."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ValueError(f"`validation` must be a pair (X, y), got {given!r}.")
    inputs, _ = validated_inputs(model, given[0], training.columns)
    observations = validation.read_targets(given[1])
    check_alike(observations, inputs, training.observations.names)
    return inputs, validation.within_support(observations, training.likelihoods)


def read_new(model: Any, X: Any) -> tuple[Matrix, Rows | None]:
    """Return new inputs, and the rows of the table they came in, if any."""
    if model.layout_ is None or not tables.is_table(X):
        return validated_inputs(model, X, model.columns_)[0], None
    table, rows = layouts.read_new(X, model.layout_)
    matrix = validated_inputs(model, table, model.columns_)[0]
    if rows.output is not None and len(rows.row) == len(matrix):
        # Rows of a long table share their inputs; draws for them must be joint.
        matrix = matrix[np.unique(rows.row, return_index=True)[1]]
    return matrix, rows


def read_truth(model: Any, X: Any, y: Any = None, **bounds: Any) -> Observations:
    """Return outputs to compare predictions with: y, or what the table X says of them."""
    data: TrainingData = model.training_
    told = any(value is not None for name, value in bounds.items() if name != "side")
    if bounds.get("censored") is False:
        bounds["censored"] = None
    validation.same_index(X, y=y, **bounds)
    layout = data.layout if y is None and tables.is_table(X) else None
    if not (told or isinstance(y, Observations)):
        # What lasts of what the fit was told.
        bounds = {"capacity": data.capacity}
        bounds = bounds if layout is None else {n: getattr(layout, n) for n in layouts.GIVEN}
        stated = {name for name, value in bounds.items() if value is not None} - {"side"}
        known = data.observations
        if not (stated or data.in_text or np.all(known.is_exact | known.is_missing)):
            raise ValueError(
                "This model was fitted to censored records, and nothing says which of these are. "
                "Give y as Observations, in cross-validation and searches, too: "
                "Observations.from_flags(y, flags). Or give score the flags; censored=False says "
                "that y is exact."
            )
    if layout is not None:
        truth = layouts.read_truth(X, dataclasses.replace(layout, **bounds))
    else:
        truth = validation.read_targets(y, **bounds)
    if truth.shape[1] != len(data.likelihoods):
        return truth
    truth = dataclasses.replace(truth, step=data.observations.step)
    return within_steps(truth, [likelihood.support for likelihood in data.likelihoods])


def read_values(
    model: Any, X: Any, y: Any, rows: Rows | None, shape: tuple[int, int]
) -> Float[np.ndarray, "N D"]:
    """Return values of outputs for each cell; one number stands for all cells.

    A table may have them itself: NaN where it has only bounds, as the true value is not known.
    """
    if y is None and rows is not None:
        truth = read_truth(model, X)
        values, cells = np.where(truth.is_exact, truth.values(), np.nan), np.full(shape, np.nan)
        if rows.output is None:
            return values
        # Rows of one time are one row of the model.
        cells[rows.row, rows.output] = values[np.arange(len(values)), rows.output]
        return cells
    if np.isscalar(y) or getattr(y, "shape", None) == ():
        if not reads_as(float, y):
            raise ValueError(f"`y` must be a number, or one for each row and output, got {y!r}.")
        return np.full(shape, float(cast(float, y)))
    validation.same_index(X, y=y)
    values = validation.read_targets(y)
    bad, said = ~(values.is_exact | values.is_missing), "got bounds where there must be values."
    hint = "For bounds use predict_distribution(X).log_probability(lower, upper), or metrics.nlpd."
    refuse(bad, values.names, "Output", said, hint=hint)
    check_alike(values, np.empty(shape), model.output_names_)
    return values.values()


def check_alike(values: Observations, cells: Matrix, names: tuple[str, ...]) -> None:
    """Refuse outputs of other rows than `cells` has, or of other names or order than `names`."""
    validation.same_rows(values, cells)
    validation.same_outputs(values, names)


def validated_inputs(
    estimator: BaseEstimator, X: Any, columns: Columns | None = None
) -> tuple[Matrix, Columns]:
    """Read inputs in scikit-learn's way: names and number of columns are kept and compared.

    A flat array of numbers could be one row or one column, and is refused; a flat array of times
    is one column.
    """
    # Some sparse matrices are dicts.
    named = tables.is_table(X) and not issparse(X)
    shape = tables.shape_of(X, "Input")
    flat_times = len(shape) == 1 and any(read_inputs(X)[1].is_time)
    if isinstance(X, np.ndarray) and X.dtype == object:
        for (row, *column), value in np.ndenumerate(X):
            if not (isinstance(value, READABLE) or tables.is_missing(value)):
                # A TypeError in these words is part of scikit-learn's conventions.
                raise TypeError(
                    f"Input column {column[0] if column else 0}, row {row}: got {value!r}. An "
                    "argument must be a time, a string that reads as a number, or a number."
                )
    # Which frames scikit-learn knows beside those of pandas depends on its version.
    plain = len(shape) in (1, 2) and (not named or is_pandas_dataframe(X))
    if plain:
        validate_data(
            estimator, cast(Any, X), reset=columns is None, skip_check_array=named, dtype=None,
            ensure_all_finite=False, ensure_2d=not flat_times, ensure_min_samples=0,
        )  # fmt: skip
    with layouts.located(X):
        matrix, known = read_inputs(X, columns)
    if columns is None and (flat_times or not plain):
        names = np.array(list(known.groups), dtype=object)
        vars(estimator).pop("feature_names_in_", None)
        vars(estimator).update({"n_features_in_": len(names)})
        vars(estimator).update({"feature_names_in_": names} if known.named else {})
    return matrix, known


def likelihood_of_each(likelihood: Any, names: tuple[str, ...]) -> tuple[Likelihood, ...]:
    """Return one likelihood for each output: one for all, one each, or by name of the output."""
    if isinstance(likelihood, str | Likelihood):
        return (as_likelihood(likelihood),) * len(names)
    if isinstance(likelihood, Mapping) and set(likelihood) == set(names):
        likelihood = [likelihood[name] for name in names]
    if not isinstance(likelihood, Sequence) or len(likelihood) != len(names):
        raise ValueError(
            "`likelihood` must be a name or a Likelihood for all outputs, or one for each of "
            f"{listed(names)} in a list or a dict, got {likelihood!r}."
        )
    return tuple(map(as_likelihood, likelihood))
