"""The estimator: scikit-learn's way into the model, for outputs that were only partly seen."""

from __future__ import annotations

import dataclasses
import functools
import os
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning

from censored_gp import checks, files, targets
from censored_gp.defaults import freedom_of
from censored_gp.frames import Layout, Rows, placed, read_training
from censored_gp.inference import Report, Task, infer
from censored_gp.inference.selection import best_fit
from censored_gp.inputs import Columns
from censored_gp.likelihoods import Likelihood
from censored_gp.model import Units, choose_units, starting_models
from censored_gp.observations import Observations
from censored_gp.progress import progress_bar
from censored_gp.questions import Questions
from censored_gp.readings import Spec
from censored_gp.resolution import within_steps
from censored_gp.runtime import float64, keep_compiled_programs

__all__ = ["CensoredGP"]


class _Data(NamedTuple):
    """What a fit is about, read and checked."""

    inputs: Float[np.ndarray, "N C"]
    columns: Columns
    observations: Observations
    likelihoods: tuple[Likelihood, ...]
    seen: Observations
    """The bounds as the likelihoods see them."""
    layout: Layout | None = None
    rows: Rows | None = None


class CensoredGP(Questions, RegressorMixin, MultiOutputMixin, BaseEstimator):
    """Gaussian-process regression for outputs that were only partly seen.

    Parameters
    ----------
    likelihood : str, Likelihood, or a list or dict (by output) of these
        How the outputs scatter: "gaussian", "student_t", "poisson", "negative_binomial", ...
    kernels : None, Kernel, list of Kernel, or dict of these by role
        Covariances of the latent functions. None: chosen from the inputs; the engines
        "natural" and "nuts" add a part of time to the means of up to four coupled outputs where the
        observations ask for it, and "natural" a nugget, which no other row shares, to the mean of a
        Poisson: counts mostly scatter by more than it allows. The roles are "mean", "scale" and
        "shape"; without roles the same kernels serve means and scales.
    coupled : bool, or dict of bool by role
        Whether the outputs are learned together (a linear model of coregionalization).
    heteroscedastic : bool
        Whether the scale of the noise varies with the inputs. If not, every role but the mean is
        a learned constant for each output, whatever `kernels` says. Shapes, such as the degrees
        of freedom of a Student-t, vary only if `kernels` names them. Values recorded in steps, of
        which many are the same, are then known to within half a step: where all of them are 0 the
        scale of a Gaussian would vanish.
    use_censoring : bool
        Whether bounds are used. If not, every bound is taken for the value itself.
    rank : int or None, or dict by role of an int or a list with one int for each kernel
        Latent functions per kernel. None: as many as outputs, at most three. Where that is three
        and cells are few (less than ten for each coefficient), "natural" fits a model with one,
        too, and keeps it if its bound is lower by less than the number of coefficients saved.
        `rank_` tells.
    engine : {"natural", "svi", "nuts"}, or function
        How the posterior is found. A function is an engine of your own.
    max_iterations : int or None
        Steps of the engine at most; None: the engine's own default. Of "nuts" these are the steps
        that find the hyper-parameters: `{"draws": 500, "warmup": 300}` are engine settings.
    engine_settings : dict, settings of the engine (such as SVISettings), or None
        Further settings of the engine, such as `{"validation": (X, y)}` for "svi". What is said
        here goes before `max_iterations` and `random_state`.
    inducing_tolerance : float
        Share of a kernel's variance that its inducing inputs may leave out.
    max_inducing : int
        Inducing inputs of a kernel at most.
    random_state : int, RandomState or None
        Seed of what is random: the engines "svi" and "nuts", and `sample`.
    progress : bool
        Whether to show a progress bar on a terminal.

    Attributes
    ----------
    posterior_ : Posterior
        Fitted hyper-parameters and the distribution of the latent functions.
    report_ : Report
        How the fit ended, in words, with the trace of the bound.
    elbo_ : float
        The evidence lower bound, in the outputs' own units.
    n_iter_ : int
        Steps taken.
    observations_ : Observations
        What was known of the outputs.
    layout_ : Layout or None
        Which column of the training table is what; None if arrays were given.
    output_names_ : tuple of str
        Names of the outputs.
    columns_ : Columns
        How the inputs are read; units_: the units in which the outputs are computed.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Notes
    -----
    Cross-validation and searches must know which test records are censored, or these are scored
    as if they were exact. `cross_val_score(model, X, y, params={"censored": flags})` tells `fit`
    alone. There are three ways to tell `score` as well:

    - `Observations` as y: `cross_val_score(model, X, Observations.from_flags(y, flags))`;
    - a table: `cross_val_score(model, table, params={"outputs": "y", "time": "t", "censored":
      "flag"})`, with names of columns;
    - metadata routing: after `sklearn.set_config(enable_metadata_routing=True)` and
      `model.set_fit_request(censored=True).set_score_request(censored=True)`, by `params` as above.

    Examples
    --------
    >>> from censored_gp import CensoredGP
    >>> hours, bikes = [[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1]
    >>> empty = [False, False, True, True, False, False]
    >>> model = CensoredGP(heteroscedastic=False).fit(hours, bikes, censored=empty)
    >>> model.predict([[2.5]]).round(1)
    array([3.6])
    """

    n_features_in_: int
    feature_names_in_: np.ndarray

    def __init__(
        self,
        likelihood: Any = "gaussian",
        kernels: Any = None,
        *,
        coupled: bool | dict[str, bool] = True,
        heteroscedastic: bool = True,
        use_censoring: bool = True,
        rank: int | None = None,
        engine: str = "natural",
        max_iterations: int | None = None,
        engine_settings: Any = None,
        inducing_tolerance: float = 1e-6,
        max_inducing: int = 256,
        random_state: Any = None,
        progress: Any = False,
    ) -> None:
        self.likelihood = likelihood
        self.kernels = kernels
        self.coupled = coupled
        self.heteroscedastic = heteroscedastic
        self.use_censoring = use_censoring
        self.rank = rank
        self.engine = engine
        self.max_iterations = max_iterations
        self.engine_settings = engine_settings
        self.inducing_tolerance = inducing_tolerance
        self.max_inducing = max_inducing
        self.random_state = random_state
        self.progress = progress

    def fit(
        self,
        X: Any,
        y: Any = None,
        censored: Any = None,
        *,
        outputs: Any = None,
        by: Any = None,
        time: Any = None,
        inputs: Any = None,
        capacity: Any = None,
        lower: Any = None,
        upper: Any = None,
        side: str = "right",
    ) -> Self:
        """Fit to rows of inputs and what is known of their outputs.

        Either X are the inputs and y the outputs, as arrays or data frames. Or X is a table
        (a data frame of pandas, polars or pyarrow, or a dict of columns), `outputs` names its
        columns of outputs, and what is below may be names of columns as well: one name, a list
        with one for each output, or a dict by output. Results are then such tables, too.

        Parameters
        ----------
        X : array, data frame, or dict of columns
            Inputs, or a table with everything; a column of times may be given as datetimes.
        y : array (N,) or (N, D), data frame, or Observations
            Outputs, NaN where missing. May be None if bounds, or names of `outputs`, are given.
        censored : array like y, optional
            Flags: 0 or False exact, 1 or True "at least y", -1 "at most y".
        outputs : name or list of names, optional
            Columns of the table that hold the outputs.
        by : name, optional
            Of a long table, with a row for each output and time: the column that tells the
            outputs apart. `outputs` is then the one column of values.
        time, inputs : name; name or list of names, optional
            Columns that explain the outputs: text and categories may be among the inputs.
        capacity : number or array like y, optional
            "At least y" where y reaches the capacity.
        lower, upper : array like y, optional
            Bounds instead of flags. An end that is not given, or NaN, is y itself; where y is
            missing too it is open.
        side : {"right", "left", "share", "share_or_limit"}
            What a flag of 1 or True means: "at least" the value; below a detection limit, "at
            most"; or, of counts, that counting stopped at a random moment, so that the value is a
            random share of the truth. If it may be that or a limit, "share_or_limit".

        Examples
        --------
        >>> from censored_gp import CensoredGP
        >>> table = {"hour": [0.0, 1, 2, 3, 4, 5], "bikes": [1.0, 3, 4, 4, 2, 1]}
        >>> model = CensoredGP(heteroscedastic=False)
        >>> filled = model.fit(table, outputs="bikes", time="hour", capacity=4).impute()
        >>> [bool(value >= 4) for value in filled["bikes"]]
        [False, False, True, True, False, False]
        """
        settings = self._settings()
        spec = Spec(censored, capacity, lower, upper, side)
        given = {"by": by, "time": time, "inputs": inputs}
        return self._fit(self._read(X, y, outputs, given, spec), settings)

    def _fit(self, data: _Data, settings: Any) -> Self:
        """Fit to data that have been read."""
        targets.warn_of_little(data.observations)
        if data.layout is not None and data.layout.time is not None and not data.layout.long:
            targets.warn_of_shared_times(data.inputs, data.layout.time)
        keep_compiled_programs()
        with float64(), progress_bar(self.progress) as tell:
            units = choose_units(data.likelihoods, data.seen.values())
            inner = units.apply(data.seen)
            design = checks.design_for(
                self.get_params(deep=False), data.likelihoods, data.columns, data.inputs
            )
            models = starting_models(design, inner.values())
            recorded = within_steps(data.seen, design.outputs_of_varying_scale)
            task = Task(
                models[-1],
                units.apply(recorded),
                data.inputs,
                self.inducing_tolerance,
                self.max_inducing,
                **freedom_of(self.kernels, data.columns, data.inputs, self.max_inducing),
                progress=tell,
            )
            settings = self._with_validation(settings, data, units)
            run = self.engine if callable(self.engine) else functools.partial(infer, self.engine)
            # The other engines take many times longer for a fit.
            tried = models if self.engine == "natural" else models[-1:]
            self.posterior_, report = best_fit(run, task, tried, settings)
        self.units_, self._inner = units, inner
        self._keep(data, _in_own_units(report, units, recorded))
        return self

    def _settings(self) -> Any:
        """Check the settings that do not depend on data."""
        checks.check_settings(self.get_params(deep=False))
        return checks.engine_settings(
            self.engine, self.max_iterations, self.engine_settings, self.random_state
        )

    def _read(self, X: Any, y: Any, outputs: Any, given: dict[str, Any], spec: Spec) -> _Data:
        """Read and check the data; everything that can be wrong with them is found here."""
        if outputs is None:
            checks.refuse_without_outputs(given)
            inputs, columns = checks.validated_inputs(self, X)
            observations = targets.read_targets(
                y, spec.censored, spec.lower, spec.upper, spec.capacity, spec.side
            )
            layout = rows = None
        else:
            checks.refuse_y(y)
            layout, rows, named, observations = read_training(X, outputs, spec=spec, **given)
            with placed(layout, rows):
                inputs, columns = checks.validated_inputs(self, named)
        targets.same_rows(observations, inputs)
        with placed(layout, rows):
            data = self._data(inputs, columns, observations)
        return data._replace(layout=layout, rows=rows)

    def _data(
        self, inputs: Float[np.ndarray, "N C"], columns: Columns, observations: Observations
    ) -> _Data:
        """Put inputs and observations together as the likelihoods see them."""
        observations.require_observed()
        likelihoods = checks.likelihood_of_each(self.likelihood, observations.names)
        seen = observations if self.use_censoring else targets.as_seen(observations, likelihoods)
        seen = targets.within_support(seen, likelihoods)
        return _Data(inputs, columns, observations, likelihoods, seen)

    def _with_validation(self, settings: Any, data: _Data, units: Units) -> Any:
        """Return engine settings with the validation data, given as (X, y), in model units."""
        given = getattr(settings, "validation", None)
        if given is None:
            return settings
        try:
            inputs, seen = self._held_out(given, data)
        except ValueError as error:
            raise ValueError(f"engine_settings, validation: {error}") from error
        return dataclasses.replace(settings, validation=(inputs, units.apply(seen)))

    def _held_out(self, given: Any, data: _Data) -> tuple[Float[np.ndarray, "V C"], Observations]:
        """Read inputs and outputs that are held out."""
        if not isinstance(given, tuple | list) or len(given) != 2:
            raise ValueError(f"found {given!r}. Accepted is a pair (X, y).")
        inputs, _ = checks.validated_inputs(self, given[0], data.columns)
        observations = targets.read_targets(given[1])
        targets.same_rows(observations, inputs)
        targets.same_outputs(observations, data.observations.names)
        return inputs, targets.within_support(observations, data.likelihoods)

    def _keep(self, data: _Data, report: Report) -> None:
        """Keep what was learned, and warn where it is not what a user would expect."""
        self.columns_, self.observations_ = data.columns, data.observations
        self.output_names_ = data.observations.names
        self.report_, self.elbo_ = report, report.elbo
        self.n_iter_ = max(report.site_steps, report.hyper_steps, 1)
        self.layout_, self._rows = data.layout, data.rows
        self._inputs, self._flat = data.inputs, bool(data.observations.flat)
        if not report.converged:
            targets.warn(report.message, ConvergenceWarning)
        for note in report.notes:
            targets.warn(note)

    @property
    def rank_(self) -> dict[str, tuple[int, ...]]:
        """Latent functions of each kernel, by role.

        Examples
        --------
        >>> from censored_gp import MOCGP
        >>> MOCGP(rank=1).fit([[0], [1], [2], [3]], [[1, 9], [2, 7], [3, 8], [2, 9]]).rank_
        {'mean': (1,), 'scale': ()}
        """
        priors = self.posterior_.model.priors
        return {role: tuple(a.shape[2] for a in lmc.mixing) for role, lmc in priors.items()}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted model to a file that `censored_gp.load` reads; see `files.save`.

        >>> from censored_gp import CGP, load
        >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
        >>> path = model.save("bikes.cgp")
        >>> bool(load(path).predict([[2.5]]) == model.predict([[2.5]]))
        True
        """
        return files.save(self, path)

    def __str__(self) -> str:
        return self.summary() if hasattr(self, "posterior_") else repr(self)


def _in_own_units(report: Report, units: Units, seen: Observations) -> Report:
    """Return the report with the bound in the outputs' own units.

    An exact cell has log p(y) = log p(y in the unit of the model) - log(scale); probabilities of
    intervals have no unit.
    """
    change = float(np.sum(seen.is_exact * np.log(units.scale)))
    trace = tuple(value - change for value in report.trace)
    return dataclasses.replace(report, elbo=report.elbo - change, trace=trace)
