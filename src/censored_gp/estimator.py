"""The estimator: scikit-learn's way into the model, for outputs that were only partly seen."""

from __future__ import annotations

import dataclasses
import os
import warnings
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from censored_gp import checks, files, targets
from censored_gp.defaults import default_kernels
from censored_gp.inference import Report, Task, infer
from censored_gp.inputs import Columns
from censored_gp.kernels import Kernel
from censored_gp.likelihoods import Likelihood
from censored_gp.model import Design, Units, choose_units, starting_model
from censored_gp.observations import Observations
from censored_gp.predict import Prediction
from censored_gp.progress import progress_bar
from censored_gp.runtime import float64, keep_compiled_programs
from censored_gp.summary import Coregionalization, coregionalization, describe, prior_correlation

__all__ = ["CensoredGP"]

Outputs = Float[np.ndarray, "*N"]
"""Of the shape of y: (N,) if y was flat, else (N, D)."""


class _Data(NamedTuple):
    """What a fit is about, read and checked."""

    inputs: Float[np.ndarray, "N C"]
    columns: Columns
    observations: Observations
    likelihoods: tuple[Likelihood, ...]
    seen: Observations
    """The bounds as the likelihoods see them."""


class CensoredGP(RegressorMixin, MultiOutputMixin, BaseEstimator):
    """Gaussian-process regression for outputs that were only partly seen.

    Parameters
    ----------
    likelihood : str, Likelihood, or a list or dict (by output) of these
        How the outputs scatter: "gaussian", "student_t", "poisson", "negative_binomial", ...
    kernels : None, Kernel, list of Kernel, or dict of these by role
        Covariances of the latent functions. None: chosen from the inputs. The roles are "mean",
        "scale" and "shape"; without roles the same kernels serve means and scales.
    coupled : bool
        Whether the outputs are learned together (a linear model of coregionalization).
    heteroscedastic : bool
        Whether the scale of the noise varies with the inputs. If not, every role but the mean is
        a learned constant for each output, whatever `kernels` says. Shapes, such as the degrees
        of freedom of a Student-t, vary only if `kernels` names them.
    use_censoring : bool
        Whether bounds are used. If not, every bound is taken for the value itself.
    rank : int or None
        Latent functions per kernel. None: as many as outputs, at most three.
    engine : {"natural", "svi", "nuts"}
        How the posterior is found.
    max_iterations : int or None
        Steps of the engine at most; None: the engine's own default.
    engine_settings : dict or None
        Further settings of the engine, such as `{"validation": (X, y)}` for "svi".
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
    output_names_ : tuple of str
        Names of the outputs.
    columns_ : Columns
        How the inputs are read; units_: the units in which the outputs are computed.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from censored_gp import CensoredGP
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> y = np.minimum(np.sin(X[:, 0]), 0.6)
    >>> model = CensoredGP(heteroscedastic=False).fit(X, y, censored=y >= 0.6)
    >>> bool(model.predict([[1.57]])[0] > 0.6)
    True
    """

    n_features_in_: int
    feature_names_in_: np.ndarray

    def __init__(
        self,
        likelihood: Any = "gaussian",
        kernels: Any = None,
        *,
        coupled: bool = True,
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
        self, X: Any, y: Any = None, censored: Any = None, *, lower: Any = None, upper: Any = None
    ) -> Self:
        """Fit to rows of inputs and what is known of their outputs.

        Parameters
        ----------
        X : array, data frame, or dict of columns
            Inputs; a column of times may be given as datetimes.
        y : array (N,) or (N, D), data frame, or Observations
            Outputs, NaN where missing. May be None if bounds are given.
        censored : array like y, optional
            Flags: 0 or False exact, 1 or True "at least y", -1 "at most y".
        lower, upper : array like y, optional
            Bounds instead of flags. An end that is not given, or NaN, is y itself; where y is
            missing too it is open.
        """
        settings = self._settings()
        data = self._read(X, y, censored, lower, upper)
        targets.warn_of_little(data.observations)
        keep_compiled_programs()
        with float64(), progress_bar(self.progress) as tell:
            units = choose_units(data.likelihoods, data.seen.values())
            inner = units.apply(data.seen)
            model = starting_model(self._design(data), inner.values())
            task = Task(
                model,
                inner,
                data.inputs,
                self.inducing_tolerance,
                self.max_inducing,
                explore=self.kernels is None,
                progress=tell,
            )
            settings = self._with_validation(settings, data, units)
            self.posterior_, report = infer(self.engine, task, settings)
        self.units_, self._inner = units, inner
        self._keep(data, _in_own_units(report, units, data.seen))
        return self

    def _settings(self) -> Any:
        """Check the settings that do not depend on data."""
        checks.check_rank(self.rank)
        checks.check_inducing(self.inducing_tolerance, self.max_inducing)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return checks.engine_settings(self.engine, self.max_iterations, self.engine_settings, seed)

    def _read(self, X: Any, y: Any, censored: Any, lower: Any, upper: Any) -> _Data:
        """Read and check the data; everything that can be wrong with them is found here."""
        inputs, columns = checks.validated_inputs(self, X)
        observations, self._flat = targets.read_targets(y, censored, lower, upper)
        targets.same_rows(observations, inputs)
        observations.require_observed()
        likelihoods = checks.likelihood_of_each(self.likelihood, observations.names)
        seen = observations if self.use_censoring else targets.as_seen(observations, likelihoods)
        return _Data(
            inputs, columns, observations, likelihoods, targets.within_support(seen, likelihoods)
        )

    def _with_validation(self, settings: Any, data: _Data, units: Units) -> Any:
        """Return engine settings with the validation data, given as (X, y), in model units."""
        given = getattr(settings, "validation", None)
        if given is None:
            return settings
        inputs, _ = checks.validated_inputs(self, given[0], data.columns)
        observations, _ = targets.read_targets(given[1])
        targets.same_rows(observations, inputs)
        seen = targets.within_support(observations, data.likelihoods)
        return dataclasses.replace(settings, validation=(inputs, units.apply(seen)))

    def _design(self, data: _Data) -> Design:
        """Put likelihoods and kernels together, the latter in numbers."""
        present = [p.role for likelihood in data.likelihoods for p in likelihood.parameters]
        wanted = checks.kernels_by_role(self.kernels, present, self.heteroscedastic)
        kernels = {role: _resolved(data, role, kernels) for role, kernels in wanted.items()}
        return Design(data.likelihoods, kernels, self.coupled, self.rank)

    def _keep(self, data: _Data, report: Report) -> None:
        """Keep what was learned, and warn where it is not what a user would expect."""
        self.columns_, self.observations_ = data.columns, data.observations
        self.output_names_ = data.observations.names
        self.report_, self.elbo_ = report, report.elbo
        self.n_iter_ = max(report.site_steps, report.hyper_steps, 1)
        self._inputs = data.inputs
        if not report.converged:
            warnings.warn(report.message, ConvergenceWarning, stacklevel=3)
        for note in report.notes:
            warnings.warn(note, UserWarning, stacklevel=3)

    def predict_distribution(self, X: Any) -> Prediction:
        """Return the distribution of the true outputs at new inputs."""
        check_is_fitted(self)
        inputs, _ = checks.validated_inputs(self, X, self.columns_)
        return Prediction(self.posterior_, self.units_, inputs, self.output_names_)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the expected true outputs, and their standard deviations if asked for."""
        prediction = self.predict_distribution(X)
        mean = self._shaped(prediction.mean)
        return (mean, self._shaped(prediction.std)) if return_std else mean

    def quantile(self, X: Any, levels: Any) -> Float[np.ndarray, "..."]:
        """Return quantiles of the true outputs; several levels make a leading axis."""
        return self._shaped(self.predict_distribution(X).quantile(levels))

    def interval(self, X: Any, probability: float = 0.9) -> tuple[Outputs, Outputs]:
        """Return the central intervals that hold the true outputs with the given probability."""
        low, high = self.predict_distribution(X).interval(probability)
        return self._shaped(low), self._shaped(high)

    def cdf(self, X: Any, y: Any) -> Outputs:
        """Return P(Y <= y) of the true outputs."""
        prediction = self.predict_distribution(X)
        return self._shaped(prediction.cdf(self._cells(y, prediction)))

    def log_density(self, X: Any, y: Any) -> Outputs:
        """Return the log density (for counts, the log probability) of true outputs y."""
        prediction = self.predict_distribution(X)
        return self._shaped(prediction.log_density(self._cells(y, prediction)))

    def sample(self, X: Any, n: int = 1, random_state: Any = None) -> Float[np.ndarray, "S ..."]:
        """Draw true outputs n times, jointly over rows and outputs."""
        source = self.random_state if random_state is None else random_state
        if not isinstance(source, np.random.Generator):
            source = int(check_random_state(source).randint(2**31 - 1))
        return self._shaped(self.predict_distribution(X).sample(n, source))

    def imputation(self) -> Prediction:
        """Return the distribution of what each training cell really was, given its bounds."""
        check_is_fitted(self)
        return Prediction(
            self.posterior_, self.units_, self._inputs, self.output_names_, self._inner
        )

    def impute(self, return_std: bool = False) -> Any:
        """Return the training outputs with the gaps filled, and standard deviations if asked for.

        Exact cells are as they were observed, censored ones the mean given their bounds, missing
        ones the predictive mean.
        """
        check_is_fitted(self)
        exact = self._inner.is_exact
        mean, std = (
            np.where(exact, self._in_units(self._inner.lower), np.nan),
            np.zeros(exact.shape),
        )
        open_ = ~exact.all(axis=1)
        if open_.any():
            found = Prediction(
                self.posterior_, self.units_, self._inputs[open_], self.output_names_,
                self._inner.rows(open_),
            )  # fmt: skip
            mean[open_] = np.where(exact[open_], mean[open_], found.mean)
            std[open_] = np.where(exact[open_], 0.0, found.std)
        return (self._shaped(mean), self._shaped(std)) if return_std else self._shaped(mean)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R², the mean over outputs, of `predict` against the exact cells of y."""
        # Imported when asked for: it is slow to load.
        from sklearn.metrics import r2_score

        prediction = self.predict_distribution(X)
        truth, _ = targets.read_targets(y)
        self._check_shape(truth.shape, prediction)
        weight = np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight, float)
        exact = truth.is_exact
        known = [d for d in range(truth.shape[1]) if exact[:, d].any()]
        each = [
            r2_score(
                truth.lower[exact[:, d], d],
                prediction.mean[exact[:, d], d],
                sample_weight=weight[exact[:, d]],
            )
            for d in known
        ]
        return float(np.mean(each)) if each else float("nan")

    def coregionalization(self) -> tuple[Coregionalization, ...]:
        """Return the matrices B_q = A_q A_q' of Eq. (5) by role and kernel."""
        check_is_fitted(self)
        return coregionalization(self.posterior_.model, self.columns_, self.output_names_)

    def correlations(self, role: str = "mean") -> Float[np.ndarray, "D D"]:
        """Return prior correlations between the outputs' latent functions at one input."""
        check_is_fitted(self)
        return prior_correlation(self.posterior_.model, role)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted model to a file that `censored_gp.load` reads; see `files.save`."""
        return files.save(self, path)

    def summary(self) -> str:
        """Return what was fitted, to what, and how it went, in words."""
        check_is_fitted(self)
        return describe(self)

    def __str__(self) -> str:
        return self.summary() if hasattr(self, "posterior_") else repr(self)

    def _in_units(self, cells: Float[np.ndarray, "N D"]) -> Float[np.ndarray, "N D"]:
        """Return cells in the outputs' own units."""
        return self.units_.shift + self.units_.scale * cells

    def _shaped(self, cells: Float[np.ndarray, "... N D"]) -> Float[np.ndarray, "..."]:
        """Return cells in the shape y had."""
        return cells[..., 0] if self._flat else cells

    def _cells(self, y: Any, prediction: Prediction) -> Float[np.ndarray, "N D"]:
        """Return values of outputs as rows and columns; one number stands for all cells."""
        if np.ndim(y) == 0:
            return np.full(prediction.shape, float(y))
        cells = targets.read_targets(y)[0].values()
        self._check_shape(cells.shape, prediction)
        return cells

    def _check_shape(self, shape: tuple[int, ...], prediction: Prediction) -> None:
        if shape != prediction.shape:
            raise ValueError(
                f"Found outputs of shape {shape} for inputs and outputs of shape "
                f"{prediction.shape}. Accepted is one value for each row of X and each output."
            )


def _resolved(data: _Data, role: str, kernels: tuple[Kernel, ...] | None) -> tuple[Kernel, ...]:
    """Return kernels in numbers; None: the defaults for these inputs."""
    if kernels is None:
        return default_kernels(data.columns, data.inputs, role)
    return tuple(k.resolve(data.columns).fill_lengthscales(data.inputs) for k in kernels)


def _in_own_units(report: Report, units: Units, seen: Observations) -> Report:
    """Return the report with the bound in the outputs' own units.

    An exact cell has log p(y) = log p(y in the unit of the model) - log(scale); probabilities of
    intervals have no unit.
    """
    change = float(np.sum(seen.is_exact * np.log(units.scale)))
    trace = tuple(value - change for value in report.trace)
    return dataclasses.replace(report, elbo=report.elbo - change, trace=trace)
