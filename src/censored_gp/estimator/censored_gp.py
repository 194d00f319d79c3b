"""The scikit-learn estimator of censored outputs.

Methods are thin: `training` reads the data, `prediction` predicts, and `analysis` has the functions
behind `lost_demand`, `required_supply`, `forecast` and `diagnose`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np
from jax.tree_util import keystr, tree_leaves_with_path
from jaxtyping import Float
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from censored_gp.data import layout as layouts
from censored_gp.data.errors import listed, warn
from censored_gp.data.inputs import Columns
from censored_gp.data.layout import Layout, Rows
from censored_gp.data.observations import Observations, widen_exact
from censored_gp.data.storage import warn_of_need
from censored_gp.data.tables import is_table
from censored_gp.data.validation import warn_of_little, warn_of_shared_times
from censored_gp.estimator import persistence, settings, summary, training
from censored_gp.estimator.analysis import diagnose, forecast, lost_demand
from censored_gp.estimator.analysis.diagnose import Diagnosis
from censored_gp.estimator.progress import progress_bar
from censored_gp.inference import FitResult, infer
from censored_gp.inference.natural import NaturalSettings
from censored_gp.inference.posterior import Posterior
from censored_gp.inference.result import Progress
from censored_gp.inference.substitution import Exchange, allocate_demand
from censored_gp.likelihoods import Likelihood
from censored_gp.model.compilation import float64, interruptible, keep_compiled_programs
from censored_gp.model.model import Units, choose_units
from censored_gp.model.starting_values import starting_models, uncensored_values, with_kernels
from censored_gp.prediction import metrics
from censored_gp.prediction.predictive import MOST_ROWS, Prediction, check_draws, check_probability

Cells = Float[np.ndarray, "N D"]
# All rows of the training table.
ALL = slice(None)


@dataclass(eq=False, repr=False)
class CensoredGP(RegressorMixin, MultiOutputMixin, BaseEstimator):
    """Gaussian-process regression for censored outputs.

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
        of freedom of a Student-t, vary only if `kernels` names them.
    use_censoring : bool
        Whether bounds are used. If not, every bound is taken for the value itself.
    rank : int or None, or dict by role of an int or a list with one int for each kernel
        Latent functions per kernel. None: as many as outputs, at most three of up to ten outputs,
        four of up to a hundred, and so on. Where that is three or more and cells are few (less
        than ten for each coefficient), "natural" fits a model with one, too, and keeps it if its
        bound is lower by less than the number of coefficients saved. `rank_` tells.
    engine : {"natural", "svi", "nuts"}, or function
        How the posterior is found. A function `fit(task, settings)`, or an `Engine` of one and the
        class of its settings, is an engine of your own.
    max_iterations : int or None
        Steps of the engine at most; None: the engine's own default. Of "nuts" these are the steps
        that find the hyper-parameters: `{"draws": 500, "warmup": 300}` are engine settings.
    engine_settings : dict or None
        Further settings of the engine, such as `{"validation": (X, y)}` for "svi". What is said
        here goes before `max_iterations` and `random_state`.
    inducing_tolerance : float
        Share of a kernel's variance that its inducing inputs may leave out.
    max_inducing : int
        Inducing inputs of a kernel at most. Where a smooth kernel of one input needs more for a
        series of over 5,000 distinct values, "natural" gives it a grid of knots instead.
    hyperparameters : {"auto", "mixed", "given", "fixed"}
        "mixed": lengthscales, couplings, levels and noise have a weak prior, and all answers are
        mixtures over a few values of them that the data allow ("nuts" samples them). "fixed": they
        are those of the highest bound, and taken for certain; that is faster, and intervals are
        too narrow where exact cells are few. "given": the kernels, with the variances that outputs
        start with, are the prior that you chose and stay as they are; levels and noise are mixed.
        "auto": "mixed" by "natural" up to 5,000 observed cells, or 2,500 of each of up to 20
        outputs, else taken for certain: by "natural" at the mode under the prior.
    substitution : None, array (D, D), dict, or "learned"
        Where the excess of an output at its limit goes: `substitution[i][j]` is the share of what
        output i could not serve that takes output j instead, in the order of the outputs or by
        their names in a dict of dicts. Rows sum to at most 1; the rest is lost, and so is what j
        cannot serve either. Predicted and imputed is then own demand, that for the output itself,
        and lost demand is counted once. "learned": shares are learned from the records of other
        outputs in rows with one at its limit. `{"distances": matrix}`: they fall off exponentially
        with the distance; "decay" (its length) and "moving" (the share that moves at all) are
        learned, or given in the dict. Outputs must be Gaussian.
    random_state : int, RandomState or None
        Seed of what is random: the engines "svi" and "nuts", and `sample`.
    progress : bool
        Whether to show progress: a bar on a terminal, else a line every few seconds.

    Attributes
    ----------
    posterior_ : Posterior
        Fitted hyper-parameters and the distribution of the latent functions.
    report_ : FitResult
        How the fit ended, in words, with the trace of the bound.
    elbo_ : float
        The evidence lower bound, in the outputs' own units.
    n_iter_ : int
        Steps taken.
    training_ : TrainingData
        The training data: inputs as the kernels see them, times, observations, likelihoods.
    observations_ : Observations
        Bounds of the training outputs.
    layout_ : Layout or None
        The roles of the columns of the training table; None if arrays were given.
    output_names_ : tuple of str
        Names of the outputs.
    substitution_ : array (D, D) or None
        The shares of excess that move from one output (row) to another (column).
    substitution_error_ : array (D, D) or None
        Standard errors of shares that were learned, given the kernels and the noise; 0 of given
        ones.
    columns_ : Columns
        The encoding of the inputs.
    units_ : Units
        The units in which the outputs are computed.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Notes
    -----
    Cross-validation and searches must know which test records are censored.
    `cross_val_score(model, X, y, params={"censored": flags})` tells `fit` alone, and `score` fails
    (scikit-learn makes that NaN and a warning, unless `error_score="raise"`). There are three ways
    to tell `score` as well:

    - `Observations` as y: `cross_val_score(model, X, Observations.from_flags(y, flags))`;
    - a table: `cross_val_score(model, table, params={"outputs": "y", "time": "t", "censored":
      "flag"})`, with names of columns;
    - metadata routing: after `sklearn.set_config(enable_metadata_routing=True)`, by `params` as
      above.

    Examples
    --------
    >>> from censored_gp import CensoredGP
    >>> hours, bikes = [[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1]
    >>> empty = [False, False, True, True, False, False]
    >>> model = CensoredGP(heteroscedastic=False).fit(hours, bikes, censored=empty)
    >>> model.predict([[2.5]]).round(1)
    array([3.5])
    """

    likelihood: Any = "gaussian"
    kernels: Any = None
    _: KW_ONLY
    coupled: bool | dict[str, bool] = True
    heteroscedastic: bool = True
    use_censoring: bool = True
    rank: Any = None
    engine: Any = "natural"
    max_iterations: int | None = None
    engine_settings: Any = None
    inducing_tolerance: float = 1e-6
    max_inducing: int = 256
    hyperparameters: str = "auto"
    substitution: Any = None
    random_state: Any = None
    progress: Any = False

    posterior_: Posterior = field(init=False)
    training_: training.TrainingData = field(init=False)
    report_: FitResult = field(init=False)
    substitution_: Float[np.ndarray, "D D"] | None = field(init=False)
    substitution_error_: Float[np.ndarray, "D D"] | None = field(init=False)
    units_: Units = field(init=False)
    n_features_in_: int = field(init=False)
    feature_names_in_: np.ndarray = field(init=False)

    _parameter_constraints: ClassVar[dict[str, Any]] = settings.CONSTRAINTS
    # With metadata routing, whatever says how far outputs were seen is told to both.
    __metadata_request__fit: ClassVar[dict[str, bool]] = dict.fromkeys(layouts.GIVEN, True)
    __metadata_request__score: ClassVar[dict[str, bool]] = dict.fromkeys(layouts.GIVEN, True)

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
        own_inputs: Any = None,
        holidays: str | None = None,
        capacity: Any = None,
        lower: Any = None,
        upper: Any = None,
        exposure: Any = None,
        side: str = "right",
        rounded: Any = None,
        start: Any = None,
    ) -> Self:
        """Fit to rows of inputs and outputs that are exact, censored or missing.

        Either X are the inputs and y the outputs, as arrays or data frames. Or X is a table
        (a data frame of pandas, polars or pyarrow, a dict of columns, the path of a CSV or Parquet
        file: .csv, .tsv, .txt, these with .gz, .parquet, .pq, or that of a folder of Parquet files,
        which may be larger than memory), `outputs` names its columns of outputs, and what is below
        may be names of columns as well: one name, a list with one for each output, or a dict by
        output. Results are then such tables, too.

        Parameters
        ----------
        X : array, data frame, dict of columns, or path
            Inputs, or a table with everything; a column of times may be given as datetimes.
        y : array (N,) or (N, D), data frame, or Observations
            Outputs, NaN where missing; text such as "<0.5" or ">100" is a bound. May be None if
            bounds, or names of `outputs`, are given.
        censored : array like y, optional
            Flags: 0 or False exact, 1 or True "at least y", -1 "at most y".
        outputs : name or list of names, optional
            Columns of the table that hold the outputs.
        by : name, optional
            Of a long table, with a row for each output and time: the column that tells the
            outputs apart. `outputs` is then the one column of values.
        time, inputs : name; name or list of names, optional
            Columns that explain the outputs: text and categories may be among the inputs.
        holidays : str, optional
            A country ("DK") or a part of one ("US-NY") whose public holidays are an input named
            "holiday", also of forecasts; needs `censored-gp[holidays]`.
        own_inputs : names or list of names, optional
            Numbers that explain one output alone, such as its price: of a long table names of
            columns. Otherwise columns of X for each output, in a list or a dict by output: a name
            or index, or several, as many for each. Their effects are linear in the latent mean.
        capacity : number or array like y, optional
            "At least y" where y reaches the capacity.
        lower, upper : array like y, optional
            Bounds instead of flags. An end that is not given, or NaN, is y itself; where y is
            missing too it is open.
        exposure : number or array like y, optional
            The share of its period in which each output could be seen, from 0 (missing) to 1: a
            station had bikes for 40 of 60 minutes. y is then what came in that time, and a flag
            adds nothing where the exposure is below 1. Of a table it may be a column over the
            length of the period, "minutes/60", or "1 - minutes_empty/60". NaN is unknown where a
            count is flagged (every share is as likely), else 1; "unknown" is NaN for all. It is for
            likelihoods that are sums over their period: Poisson, negative binomial, Tweedie,
            Gaussian.
        side : {"right", "left"}
            What a flag of 1 or True means: "at least" the value or, below a detection limit, "at
            most" the value.
        rounded : number, list or dict by output, 0, or "auto", optional
            In which steps values were recorded: in steps of 1, a value of 6 is between 5.5 and 6.5,
            "at most 6" below 6.5 and "at least 6" above 5.5. 0: not in steps. "auto", the default:
            in those that the values show; `summary` tells. Counts are what they are, and so are
            amounts of a Tweedie if nothing else is stated.
        start : fitted model, or dict of kernels by role, optional
            A fitted model of the same outputs and inputs: the fit goes on from its hyper-parameters
            and takes few steps where the data have changed little, as by some new days. Or kernels
            alone, which are used where they are of the kind that would be chosen anyway. No other
            starts are tried then.

        Examples
        --------
        >>> from censored_gp import CensoredGP
        >>> table = {"hour": [0.0, 1, 2, 3, 4, 5], "bikes": [1.0, 3, 4, 4, 2, 1]}
        >>> model = CensoredGP(heteroscedastic=False)
        >>> filled = model.fit(table, outputs="bikes", time="hour", capacity=4).impute()
        >>> [bool(value >= 4) for value in filled["bikes"]]
        [False, False, True, True, False, False]
        """
        chosen = settings.check_settings(self)
        data = training.read_training(
            self, X, y, outputs=outputs, by=by, time=time, inputs=inputs, own_inputs=own_inputs,
            holidays=holidays,
            censored=censored, capacity=capacity, lower=lower, upper=upper, exposure=exposure,
            side=side, rounded=rounded, start=start,
        )  # fmt: skip
        layout, likelihoods = data.layout, data.likelihoods
        plan = training.read_substitution(self, data)
        warn_of_need(*data.observations.shape)
        warn_of_little(data.observations)
        if layout is None or not layout.long:
            table = None if data.rows is None else data.rows.table
            warn_of_shared_times(data.inputs, data.columns, getattr(layout, "time", None), table)
        keep_compiled_programs()
        with interruptible(), float64(), reported(self.progress) as tell:
            if isinstance(start, CensoredGP):
                units, models, centre = training.continued(start, data)
            else:
                units = choose_units(likelihoods, data.seen.full_values())
                design = training.design_of(self, data)
                continued = None if start is None else with_kernels(design, start, data.columns)
                centre = None if continued is None else {}
                values = uncensored_values(units.apply(data.seen), likelihoods)
                models = starting_models(continued or design, values)
            recorded = widen_exact(data.seen)
            seen = units.apply(recorded)
            change = _change_of_units(units, recorded, likelihoods)

            def progress(stage: str, done: int, most: int, bound: float) -> None:
                tell(stage, done, most, bound - change)

            task = training.make_task(self, data, models, seen, centre, progress=progress)
            held_out = getattr(chosen, "validation", None)
            if held_out is not None:
                inputs, seen = training.read_validation(self, held_out, data)
                chosen = dataclasses.replace(chosen, validation=(inputs, units.apply(seen)))
            shares = errors = None
            notes: tuple[str, ...] = ()
            if plan is not None:
                exchange = Exchange(data.seen, units, plan, likelihoods)
                climbs = NaturalSettings(learn=self.hyperparameters != "given")
                climbs = settings.with_points(climbs, self.hyperparameters, "natural", task)
                task, notes = allocate_demand(task, exchange, climbs)
                recorded = exchange.observations
                shares, errors = exchange.plan.shares, exchange.errors
                data = dataclasses.replace(data, seen=recorded)
                if self.engine == "natural":
                    # Exposures say less of the noise than the messages did.
                    chosen = dataclasses.replace(chosen, learn=False)
            chosen = settings.with_points(chosen, self.hyperparameters, self.engine, task)
            posterior, report = infer(self.engine, task, chosen)
            report = dataclasses.replace(report, notes=(*report.notes, *notes))
            report = _checked(report, posterior)
            change = _change_of_units(units, recorded, likelihoods)
            trace = tuple(value - change for value in report.trace)
            report = dataclasses.replace(report, elbo=report.elbo - change, trace=trace)
            # All at once: a Ctrl-C leaves the whole of a fit, or nothing of it.
            self.substitution_, self.substitution_error_ = shares, errors
            self.posterior_, self.units_, self.training_ = posterior, units, data
            self.report_ = report
            self.elbo_, self.n_iter_ = report.elbo, max(report.site_steps, report.hyper_steps, 1)
        if not report.converged:
            warn(report.message, ConvergenceWarning)
        for note in report.notes:
            warn(note)
        return self

    @property
    def observations_(self) -> Observations:
        """Bounds of the training outputs."""
        check_is_fitted(self)
        return self.training_.observations

    @property
    def output_names_(self) -> tuple[str, ...]:
        """Names of the outputs."""
        check_is_fitted(self)
        return self.training_.observations.names

    @property
    def columns_(self) -> Columns:
        """The encoding of the inputs."""
        check_is_fitted(self)
        return self.training_.columns

    @property
    def layout_(self) -> Layout | None:
        """The roles of the columns of the training table; None if arrays were given."""
        check_is_fitted(self)
        return self.training_.layout

    @property
    def rank_(self) -> dict[str, tuple[int, ...]]:
        """Latent functions of each kernel, by role.

        Examples
        --------
        >>> from censored_gp import MOCGP
        >>> MOCGP(rank=1).fit([[0], [1], [2], [3]], [[1, 9], [2, 7], [3, 8], [2, 9]]).rank_
        {'mean': (1,), 'scale': ()}
        """
        check_is_fitted(self)
        priors = self.posterior_.model.priors
        return {role: tuple(a.shape[2] for a in lmc.mixing) for role, lmc in priors.items()}

    def predict_distribution(self, X: Any) -> Prediction:
        """Return the distribution of the true outputs at new inputs, for every row and output.

        >>> model.predict_distribution([[2.5]]).interval(0.8)[0].round(1)
        array([[3.2]])
        """
        if self.layout_ is not None and is_table(X):
            # A row of the answer for each row of the table, long or not.
            X = layouts.read_new(X, self.layout_)[0]
        return self.distribution_at(training.validated_inputs(self, X, self.columns_)[0])

    def distribution_at(self, inputs: Float[np.ndarray, "N C"]) -> Prediction:
        """Return the distribution of the true outputs at rows like those of `training_.inputs`.

        >>> model.distribution_at(model.training_.inputs[:2]).shape
        (2, 1)
        """
        return Prediction(self.posterior_, self.units_, inputs, self.output_names_)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the expected true outputs, and their standard deviations if asked for.

        >>> model.predict([[0.5], [2.5]]).round(1)
        array([1.4, 3.6])
        """
        prediction, rows = self._asked(X)
        mean = self._shaped(prediction.mean, rows)
        return (mean, self._shaped(prediction.std, rows)) if return_std else mean

    def quantile(self, X: Any, levels: Any) -> Any:
        """Return quantiles of the true outputs.

        Several levels make a leading axis or, in a table, a column `level`.

        >>> model.quantile([[2.5]], [0.1, 0.9]).round(1)[:, 0]
        array([3.2, 4. ])
        """
        prediction, rows = self._asked(X)
        several = ("level", np.ravel(levels)) if np.ndim(levels) else None
        return self._shaped(prediction.quantile(levels), rows, several)

    def interval(self, X: Any, probability: float = 0.9) -> tuple[Any, Any]:
        """Return both ends of the central intervals that hold the true outputs with a probability.

        Of continuous outputs as much is left out below as above. Ends of counts count in full, so
        that less is left out below than may be (of small counts, or at a bound, nothing at all);
        the upper end is then the smallest with which the interval holds as much as it should.

        >>> low, high = model.interval([[2.5]], 0.8)
        >>> low.round(1), high.round(1)
        (array([3.2]), array([4.]))
        """
        prediction, rows = self._asked(X)
        low, high = prediction.interval(probability)
        return self._shaped(low, rows), self._shaped(high, rows)

    def cdf(self, X: Any, y: Any = None) -> Any:
        """Return P(Y <= y) of the true outputs.

        If X is a table, y may be left to its exact values; of other cells the answer is NaN.

        >>> model.cdf([[2.5]], 3).round(2)
        array([0.03])
        """
        prediction, rows = self._asked(X)
        values = training.read_values(self, X, y, rows, prediction.shape)
        return self._shaped(prediction.cdf(values), rows)

    def log_density(self, X: Any, y: Any = None) -> Any:
        """Return the log density (for counts, the log probability) of true outputs y.

        If X is a table, y may be left to its exact values; of other cells the answer is NaN. What
        is known of these counts in `score`, and in `predict_distribution(X).log_probability`.

        >>> model.log_density([[2.5]], [3]).round(1)
        array([-1.5])
        """
        prediction, rows = self._asked(X)
        values = training.read_values(self, X, y, rows, prediction.shape)
        return self._shaped(prediction.log_density(values), rows)

    def sample(self, X: Any, n: int = 1, random_state: Any = None) -> Any:
        """Draw true outputs n times, jointly over rows and outputs.

        The draws make a leading axis or, in a table, a column `draw`.

        >>> model.sample([[2.5], [3.5]], 100, random_state=0).shape
        (100, 2)
        """
        prediction, rows = self._asked(X)
        check_draws(n, "n", math.prod(prediction.shape))
        drawn = prediction.sample(n, settings.seed_of(random_state, self.random_state))
        return self._shaped(drawn, rows, ("draw", np.arange(n)))

    def sample_prior(self, X: Any, n: int = 1, random_state: Any = None) -> Any:
        """Draw outputs from the prior, at the fitted hyper-parameters.

        This is the paper's generative algorithm: latent functions from the linear model of
        coregionalization, then outputs from their likelihoods. The draws make a leading axis or,
        in a table, a column `draw`.

        Examples
        --------
        >>> model.sample_prior([[2.5], [3.5]], 3, random_state=0).shape
        (3, 2)
        """
        inputs, rows = training.read_new(self, X)
        check_draws(n, "n", len(inputs) * len(self.output_names_))
        prior = Posterior.of_prior(self.posterior_.model, inputs)
        prediction = Prediction(prior, self.units_, inputs, self.output_names_)
        drawn = prediction.sample(n, settings.seed_of(random_state, self.random_state))
        return self._shaped(drawn, rows, ("draw", np.arange(n)))

    def imputation(self, rows: Any = slice(None)) -> Prediction:
        """Return the posterior predictive distribution of training cells, given their bounds.

        Parameters
        ----------
        rows : slice, mask or positions
            Which training rows; without them, all.

        Examples
        --------
        >>> model.imputation([2, 3]).mean.round(1)[:, 0]
        array([3.4, 3.4])
        """
        check_is_fitted(self)
        places, given = None, rows if isinstance(rows, slice | list) else np.atleast_1d(rows)
        with contextlib.suppress(IndexError):
            places = np.arange(len(self.training_.inputs))[given]
        if places is None or places.ndim != 1:
            raise ValueError(f"`rows` must be a slice, a mask or positions of rows, got {rows!r}.")
        inputs, bounds = self.training_.inputs[places], self.training_.seen.rows(places)
        own = self.posterior_, self.units_, inputs, self.output_names_
        return Prediction(*own, self.units_.apply(bounds), places)

    def impute(self, return_std: bool = False, rows: slice = ALL) -> Any:
        """Return the training outputs with the gaps filled, and standard deviations if asked for.

        Exact cells are as they were observed, censored ones the mean given their bounds, partial
        ones what was seen and the mean of the rest, missing ones the predictive mean. A slice of
        the training rows is quicker than all of them.

        >>> model.impute().round(1)
        array([1. , 2. , 3.4, 3.4, 2. , 1. ])
        """
        check_is_fitted(self)
        places, own = self.training_.chosen(rows)
        mean, std = self._of_censored(lambda found: (found.mean, found.std), places)
        filled = self._shaped(self.training_.bounded(mean, places), own)
        if not return_std:
            return filled
        std = np.where(self.training_.seen.rows(places).is_exact, 0.0, std)
        return filled, self._shaped(std, own)

    def impute_interval(self, probability: float = 0.9, rows: slice = ALL) -> tuple[Any, Any]:
        """Return both ends of the central intervals that hold the true training outputs.

        Both ends of an exact cell are its value; those of a censored one are within its bounds.

        Examples
        --------
        >>> low, high = model.impute_interval(0.8)
        >>> low.round(1), high.round(1)
        (array([1. , 2. , 3.1, 3.1, 2. , 1. ]), array([1. , 2. , 3.7, 3.7, 2. , 1. ]))
        """
        check_is_fitted(self)
        check_probability(probability)
        places, own = self.training_.chosen(rows)
        ends = self._of_censored(lambda found: found.interval(probability), places)
        low, high = (self._shaped(self.training_.bounded(end, places), own) for end in ends)
        return low, high

    def _of_censored(
        self, ask: Callable[[Prediction], tuple[Cells, Cells]], places: Any
    ) -> Float[np.ndarray, "2 N D"]:
        """Return two statistics of training cells that are not exact; the others have NaN."""
        exact = self.training_.seen.rows(places).is_exact
        # Of few rows all are looked at, by the program that predicts them.
        rows = ~exact.all(axis=1) | ((len(exact) <= MOST_ROWS) & ~exact.all())
        figures = np.full((2, *exact.shape), np.nan)
        if rows.any():
            found = ask(self.imputation(np.arange(len(self.observations_))[places][rows]))
            figures[:, rows] = np.where(exact[rows], np.nan, found)
        return figures

    def score(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        censored: Any = None,
        capacity: Any = None,
        lower: Any = None,
        upper: Any = None,
        exposure: Any = None,
        side: str = "right",
    ) -> float:
        """Return R², the mean over outputs. Records that are censored never count as the truth.

        Of an output whose cells are exact it is that of `predict`. If some are censored it is Cox
        and Snell's (`metrics.likelihood_r2`): bounds count by their probability. Missing cells, and
        those seen for a part of their period, do not count.

        Flags, a capacity, bounds or exposures say which cells are not exact, as in `fit`;
        `censored=False` says that all are. If X is a table, y may be left to what it says of the
        outputs, by the columns that `fit` was told of. If nothing is said, a capacity that `fit`
        was given as a number holds here, too. Any other model of censored outputs cannot know: an
        error says so.

        Examples
        --------
        >>> X, y = [[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1]
        >>> model.score(X, y, capacity=3) > 0.9
        True
        """
        # Imported on demand: it is slow to load.
        from sklearn.metrics import r2_score

        prediction = self.predict_distribution(X)
        truth = training.read_truth(
            self, X, y, censored=censored, capacity=capacity, lower=lower, upper=upper,
            exposure=exposure, side=side,
        )  # fmt: skip
        training.check_alike(truth, prediction.mean, self.output_names_)
        weight = np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight, float)
        bounded = ~(truth.is_exact | truth.is_missing)
        each = np.full(truth.shape[1], np.nan)
        if bounded.any():
            each = metrics.likelihood_r2(prediction, truth, weight)
        for d in np.flatnonzero(~bounded.any(axis=0)):
            rows = truth.is_exact[:, d]
            values = truth.lower[rows, d], prediction.mean[rows, d]
            each[d] = r2_score(*values, sample_weight=weight[rows]) if rows.any() else np.nan
        return float(np.nanmean(each)) if np.any(~np.isnan(each)) else float("nan")

    def lost_demand(
        self, by: Any = None, probability: float = 0.9, samples: int = 500, random_state: Any = None
    ) -> Any:
        """Return how much demand was lost in the training data: totals and shares, with intervals.

        Demand is lost where a cell is right-censored or was seen for a part of its period: what was
        wanted, less what was recorded. With `substitution`, what another output served is not lost,
        and `demand` is own demand. Intervals are of the sums themselves, from joint draws. Missing
        cells are left out and, with a warning, left- and interval-censored ones.

        Parameters
        ----------
        by : None, str, list of str, or array
            "output", "hour", "weekday", "date", "month", columns of the training table, several
            of these, or a label for each row; None: one total. A column that is called like one
            of the five words is given as labels: `by=table["hour"]`. A model that was loaded has
            the columns of its time and inputs only.
        probability : float
            How probably the interval from `lost_low` to `lost_high` holds the truth.
        samples : int
            Joint draws. They are kept, so that other groupings of them take no time.
        random_state : int, RandomState or None
            Seed of the draws; None: that of the estimator or, if it has none, 0.

        Returns
        -------
        A table with the columns of the groups, then observed, demand, lost, lost_low, lost_high,
        share (of demand that was lost), share_low, share_high, cells and censored (how many).

        Examples
        --------
        >>> total = model.lost_demand(samples=100, random_state=0)[0]
        >>> 0 < total["lost_low"] < total["lost"] < total["lost_high"], total["censored"]
        (True, 2)
        """
        check_is_fitted(self)
        return lost_demand.lost_demand(self, by, probability, samples, random_state)

    def required_supply(
        self,
        X: Any,
        probability: float = 0.95,
        window: Any = None,
        samples: int = 500,
        random_state: Any = None,
    ) -> Any:
        """Return how much supply would meet demand with a probability, by window of time.

        `peak` is enough for the busiest row of a window, `sum` for all of its rows together, each
        with the given probability. Both are quantiles of joint draws. Several outputs have a line
        each, and one for all of them together.

        Parameters
        ----------
        X : like the training inputs, or a table like the training table
            Rows to be supplied.
        probability : float
            How probably the supply must be enough.
        window : None, str or array
            A duration such as "6h" or "1d", a label for each row, or None for all rows together.
        samples : int
            Joint draws.
        random_state : int, RandomState or None
            Seed of the draws; None: that of the estimator or, if it has none, 0.

        Examples
        --------
        >>> rows = model.required_supply([[2], [3], [4]], samples=100, window=[0, 0, 1])
        >>> [row["peak"] > row["expected_peak"] for row in rows]
        [True, True]
        """
        check_is_fitted(self)
        return lost_demand.required_supply(self, X, probability, window, samples, random_state)

    def forecast(
        self,
        periods: int | None = None,
        until: Any = None,
        inputs: Any = None,
        probability: float = 0.9,
        samples: int = 600,
        random_state: Any = None,
    ) -> Any:
        """Return expected demand and its interval after the last training time.

        Times go on at the spacing of the training data, and only through those hours of the day
        (of the week, if two weeks are known) that the training data have.

        The level of a panel of days walks at random. Its median stays where it was, but with a log
        link the expectation grows with the uncertainty: further ahead than the training data are
        long, use `quantile` at those times instead.

        Parameters
        ----------
        periods, until : int; time
            How many times ahead, or up to which time: by the wall clock or, if it has a zone of
            its own, by that.
        inputs : table, optional
            Inputs at the times ahead. If it has the column of times, its rows are found by their
            times, whatever their order; if not, it has one row for each time, in their order.
            Columns that it does not have are drawn from the past: each day ahead takes them from
            a random day of the past (of the same weekday, where there are two), at the same hour.
            The interval then allows for not knowing them.
        probability : float
            How probably the interval holds the true output.
        samples : int
            Draws, where inputs are not known.
        random_state : int, RandomState or None
            Seed of the draws; None: that of the estimator or, if it has none, 0.

        Returns
        -------
        A table with the time, and for each output its expectation, and the interval in the columns
        that end in `_low` and `_high` (in `_interval_low` and `_interval_high`, if an output has
        one of these names); long if the training table was. The time is the index if it was.

        Examples
        --------
        >>> from censored_gp import CGP
        >>> days = [f"2024-06-0{day}" for day in range(1, 7)]
        >>> table = {"day": days, "y": [1, 2, 3, 3, 2, 1]}
        >>> model = CGP().fit(table, outputs="y", time="day", capacity=3)
        >>> [str(day)[:10] for day in model.forecast(2)["day"]]
        ['2024-06-07', '2024-06-08']
        """
        check_is_fitted(self)
        return forecast.forecast(self, periods, until, inputs, probability, samples, random_state)

    def diagnose(self, folds: int = 5, random_state: Any = None) -> Diagnosis:
        """Tell whether estimates of censored cells are to be trusted, by one refit.

        Exact cells are censored anew, as the real ones are: at the same hours of the week, with a
        bound at the same share of the value. Their estimates are held against the truth, beside
        simple methods: the mean of exact cells of the hour of the week, and gradient boosting.
        Whole days (rows, if there are few days or no times) are held out, to see whether
        predictions are calibrated. The refit goes on from this model, with the engine "natural".

        Parameters
        ----------
        folds : int
            One day in so many is held out, of each output others.
        random_state : int, RandomState or None
            Seed of the choice of cells; None: that of the estimator or, if it has none, 0.

        Returns
        -------
        Diagnosis, with `verdict`: why estimates are not to be trusted and what to do, if so;
        `rows`: a table of this model and of simple methods; `scores` of the days held out; and
        `warnings`. Print it to see them.

        Examples
        --------
        >>> found = model.diagnose(folds=3)
        >>> list(found.rows[0])
        ['method', 'output', 'cells', 'ratio', 'error', 'lost']
        """
        check_is_fitted(self)
        return diagnose.diagnose(self, folds, random_state)

    def coregionalization(self) -> tuple[summary.Coregionalization, ...]:
        """Return the matrices B_q = A_q A_q' of Eq. (5) by role and kernel.

        >>> [(found.role, found.matrix.shape) for found in model.coregionalization()]
        [('mean', (1, 1))]
        """
        check_is_fitted(self)
        return summary.coregionalization(self.posterior_.model, self.columns_, self.output_names_)

    def correlations(self, role: str = "mean") -> Any:
        """Return how far outputs inform each other: prior correlations of their latent functions.

        A model that was fitted to a table answers with one, its first column the outputs' names.

        >>> model.correlations()
        array([[1.]])
        """
        check_is_fitted(self)
        matrix, data = summary.prior_correlation(self.posterior_.model, role), self.training_
        if data.layout is None:
            return matrix
        names = [str(label) for label in data.labels]
        columns = {name: matrix[:, d] for d, name in enumerate(names)}
        return data.table({data.output_label: np.array(names), **columns})

    def summary(self) -> str:
        """Return the model, its data and the end of the fit in words.

        >>> print(model.summary())
        CGP on 'x0': y Gaussian()
        6 rows of 1 output
        ...
        """
        check_is_fitted(self)
        return summary.describe(self)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted model to a file that `censored_gp.load` reads.

        >>> from censored_gp import load
        >>> path = model.save("bikes.cgp")
        >>> bool(load(path).predict([[2.5]]) == model.predict([[2.5]]))
        True
        """
        return persistence.save(self, path)

    def __str__(self) -> str:
        return self.summary() if hasattr(self, "posterior_") else repr(self)

    def _asked(self, X: Any) -> tuple[Prediction, Rows | None]:
        """Return the distribution at new inputs, and the rows of the table they came in, if any."""
        inputs, rows = training.read_new(self, X)
        return self.distribution_at(inputs), rows

    def _shaped(
        self, cells: Float[np.ndarray, "... N D"], rows: Rows | None, stack: Any = None
    ) -> Any:
        """Return cells in the shape y had, or in a table like the one whose rows these are."""
        if rows is not None and self.layout_ is not None:
            return layouts.result(self.layout_, rows, cells, stack)
        return cells[..., 0] if self.observations_.flat else cells


def _checked(report: FitResult, posterior: Posterior) -> FitResult:
    """Return the report, as one of a fit that diverged if a part of the posterior is not finite."""
    parts = tree_leaves_with_path({"elbo": report.elbo, "posterior": posterior})
    bad = [keystr(path) for path, part in parts if not np.isfinite(np.asarray(part)).all()]
    if not bad or report.status == "interrupted":
        return report
    said = "The fit diverged." if report.converged else report.message
    said = f"{said} Not finite: {listed(bad)}. Look for extreme values, or choose other kernels."
    return dataclasses.replace(report, status="diverged", message=said)


def _change_of_units(
    units: Units, seen: Observations, likelihoods: tuple[Likelihood, ...]
) -> float:
    """Return by how much a bound in units of the model is above that in the outputs' own.

    An exact cell has log p(y) = log p(y in the unit of the model) - log(scale); probabilities, of
    intervals or of zeros, have no unit.
    """
    masses = [k.support.has_mass(seen.lower[:, d]) for d, k in enumerate(likelihoods)]
    exact = (seen.lower == seen.upper) & ~np.stack(masses, axis=1)
    return float(np.sum(exact * np.log(units.scale)))


@contextlib.contextmanager
def reported(wanted: Any) -> Iterator[Progress]:
    """Yield the callback by which engines report their steps; `wanted` may be one itself."""
    if callable(wanted):
        yield cast(Progress, wanted)
        return
    with progress_bar(wanted) as tell:
        yield lambda stage, done, most, bound: tell(
            f"{stage}: step {done} of at most {most}, ELBO {bound:.1f}", done, most
        )
