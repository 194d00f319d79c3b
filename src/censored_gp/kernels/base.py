"""The contract of a kernel, and sums and products of kernels.

A kernel is a pytree whose array leaves are its positive hyper-parameters. Users write it with
column names, durations such as `"7d"`, and `None` for a value to be chosen; `resolve` and
`fill_lengthscales` turn these into numbers, and only then can the kernel be evaluated.
Stationary kernels have unit variance, because amplitudes belong to the coregionalization, Eq. (5).
"""

from __future__ import annotations

import dataclasses
import operator
from abc import abstractmethod
from collections.abc import Sequence
from functools import reduce
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from censored_gp.data.inputs import Columns, Whole, distinct, phase, spread
from censored_gp.data.time import duration_hours

Rows = Float[Array, "N C"] | Float[np.ndarray, "N C"]
OtherRows = Float[Array, "M C"] | Float[np.ndarray, "M C"]

# A column with None, or of which a kernel sees only the phase in a period, or whole periods.
View = tuple[int, float | Whole | None]


def _as_leaf(value: Any) -> Any:
    """A float64 array where `value` is numbers; durations, None and JAX arrays as they are."""
    if value is None or isinstance(value, str | jax.Array):
        return value
    if isinstance(value, Sequence) and any(isinstance(part, str) for part in value):
        return tuple(value)
    try:
        return np.asarray(value, dtype=np.float64)
    except OverflowError:
        return np.asarray(np.inf)
    except (TypeError, ValueError):
        return value  # refused, with the name of the field, by `Kernel.__check_init__`


def _as_static(value: Any) -> Any:
    """A python float where `value` is a number, so that it can be part of a jit key."""
    leaf = _as_leaf(value)
    return float(leaf) if isinstance(leaf, np.ndarray) and leaf.ndim == 0 else value


def _as_columns(value: Any) -> tuple[int | str, ...] | None:
    """One column or several, as a tuple."""
    if value is None:
        return None
    several = (value,) if isinstance(value, str) or np.ndim(value) == 0 else value
    # Numpy's integers would make the static fields of a pytree unhashable arrays.
    return tuple(int(c) if isinstance(c, np.integer) else c for c in several)


def hyperparameter(
    default: Any = dataclasses.MISSING, *, in_input_units: bool = False, static: bool = False
) -> Any:
    """Declare a positive field of a kernel.

    With `in_input_units` it may be a duration on a time column; if `static` it is never trained.
    """
    return eqx.field(
        default=default,
        converter=_as_static if static else _as_leaf,
        static=static,
        metadata={"positive": True, "in_input_units": in_input_units},
    )


class Kernel(eqx.Module):
    """k(x, z) for one pair of rows; the base class does the batching, the columns and the units.

    Models that use a subclass can be saved, and loaded where it is defined.

    >>> from censored_gp.kernels import RBF, Periodic
    >>> Periodic("1d", columns="time") * RBF("7d", columns="time")
    Periodic(period='1d', lengthscale=None, columns=('time',)) * RBF(lengthscale='7d', ...
    """

    columns: Any = eqx.field(default=None, static=True, kw_only=True, converter=_as_columns)

    @abstractmethod
    def evaluate(self, x: Float[Array, " C"], z: Float[Array, " C"]) -> Float[Array, ""]:
        """k(x, z) for two rows with all their columns; `self.own(x)` are those looked at."""

    def __call__(self, X: Rows, Z: OtherRows) -> Float[Array, "N M"]:
        """The matrix k(x_n, z_m)."""
        self._check_ready()
        X, Z = jnp.asarray(X), jnp.asarray(Z)
        return jax.vmap(lambda x: jax.vmap(lambda z: self.evaluate(x, z))(Z))(X)

    def diagonal(self, X: Rows) -> Float[Array, " N"]:
        """The variances k(x_n, x_n)."""
        self._check_ready()
        return jax.vmap(lambda x: self.evaluate(x, x))(jnp.asarray(X))

    def __add__(self, other: Kernel) -> Sum:
        """The kernel of the sum of two independent functions."""
        if not isinstance(other, Kernel):
            return NotImplemented
        return Sum(Sum.operands(self) + Sum.operands(other))

    def __mul__(self, other: Kernel) -> Product:
        """The kernel that is alike only where both are."""
        if not isinstance(other, Kernel):
            return NotImplemented
        return Product(Product.operands(self) + Product.operands(other))

    def own(self, x: Float[Array, "*B C"]) -> Float[Array, "*B K"]:
        """The columns this kernel looks at."""
        if self.columns is None or self.columns == tuple(range(x.shape[-1])):
            return x
        return x[..., np.asarray(self.columns)]

    def resolve(self, columns: Columns) -> Self:
        """The same kernel in numbers: column names become indices, durations become hours."""
        index = columns.indices(self.columns, asked_by=repr(self))
        changes = {
            field.name: self._in_input_units(getattr(self, field.name), index, columns)
            for field in dataclasses.fields(self)
            if field.metadata.get("in_input_units")
        }
        resolved = dataclasses.replace(self, columns=index, **changes)
        resolved._check_sizes(columns)
        return resolved

    def aligned(self, columns: Columns) -> Self:
        """A resolved kernel for inputs with other origins, of which most kernels know nothing."""
        return self

    def named(self, columns: Columns) -> Self:
        """A resolved kernel with the names of its columns, for people to read."""
        names = None if self.columns is None else [columns.names[c] for c in self.columns]
        return dataclasses.replace(self, columns=names)

    def fill_lengthscales(self, X: Float[np.ndarray, "N C"]) -> Self:
        """Replace every None by a starting value chosen from the training inputs."""
        missing = [name for name, value in self._settings().items() if value is None]
        own = X if self.columns is None else X[:, list(self.columns)]
        start = self.starting_values(own) if missing else {}
        return dataclasses.replace(self, **{name: start[name] for name in missing if name in start})

    def starting_values(self, X: Float[np.ndarray, "N K"]) -> dict[str, np.ndarray]:
        """Starting hyper-parameters from this kernel's own columns of the training inputs."""
        return {"lengthscale": spread(X)}

    def views(self, number: int) -> set[View]:
        """What k depends on in a row of `number` columns: see `View`."""
        index = range(number) if self.columns is None else self.columns
        return {(column, None) for column in index}

    def canonical(self, X: Float[np.ndarray, "N C"]) -> Float[np.ndarray, "N K"]:
        """All that k depends on in each row: rows with equal entries have equal covariances."""
        return canonical_inputs(self.views(X.shape[1]), X)

    def __repr__(self) -> str:
        """The call that makes this kernel."""
        settings = [f"{name}={_show(value)}" for name, value in self._settings().items()]
        where = [] if self.columns is None else [f"columns={self.columns!r}"]
        return f"{type(self).__name__}({', '.join(settings + where)})"

    def __check_init__(self) -> None:
        columns = self.columns
        if columns is not None and (not columns or any(columns.count(c) > 1 for c in columns)):
            raise ValueError(
                f"`columns` of {type(self).__name__} must be one column or several different ones, "
                f"by name or position, or None for all, got {list(columns)!r}."
            )
        for field in dataclasses.fields(self):
            if field.metadata.get("positive"):
                where = f"`{field.name}` of {type(self).__name__}"
                durations = bool(field.metadata["in_input_units"])
                _check_positive(where, getattr(self, field.name), durations)

    def _settings(self) -> dict[str, Any]:
        names = [f.name for f in dataclasses.fields(self) if f.name != "columns"]
        return {name: getattr(self, name) for name in names}

    def _in_input_units(self, value: Any, index: tuple[int, ...], columns: Columns) -> Any:
        """Durations in hours; each needs a column of times."""
        if isinstance(value, str):
            columns.require_times(index, asked_by=repr(self), duration=value)
            return duration_hours(value)
        if isinstance(value, tuple) and len(value) == len(index):
            pairs = zip(value, index, strict=True)
            return [float(self._in_input_units(part, (c,), columns)) for part, c in pairs]
        return value

    def _check_sizes(self, columns: Columns) -> None:
        for field in dataclasses.fields(self):
            value, positive = getattr(self, field.name), field.metadata.get("positive")
            # Only what has the units of inputs may differ by column.
            if positive and not field.metadata["in_input_units"] and np.ndim(value) > 0:
                raise ValueError(
                    f"`{field.name}` of {self!r} must be one number, got {_show(value)}."
                )
        for name, value in self._settings().items():
            size = len(value) if isinstance(value, tuple) else np.size(value)
            if np.ndim(value) == 1 and size != len(self.columns):
                names = ", ".join(repr(columns.names[c]) for c in self.columns)
                raise ValueError(
                    f"`{name}` of {self!r} must be one number, or one for each of its "
                    f"{len(self.columns)} column(s) ({names}), got {size} values."
                )

    def _check_ready(self) -> None:
        open_ = [n for n, v in self._settings().items() if v is None or isinstance(v, str)]
        named = any(isinstance(column, str) for column in self.columns or ())
        if open_ or named:
            raise ValueError(
                f"{self!r} cannot be evaluated before {', '.join(open_) or 'columns'} is a number. "
                "Call .resolve(columns) and .fill_lengthscales(X) first, or give plain numbers."
            )


class Combination(Kernel):
    """Several kernels combined into one; each keeps its own columns."""

    terms: tuple[Kernel, ...] = eqx.field(converter=tuple)

    @classmethod
    def operands(cls, kernel: Kernel) -> tuple[Kernel, ...]:
        """The terms of a combination of this very kind, so that a + b + c is one flat sum."""
        return kernel.terms if isinstance(kernel, cls) else (kernel,)

    def resolve(self, columns: Columns) -> Self:
        """Every term resolved."""
        return dataclasses.replace(self, terms=[term.resolve(columns) for term in self.terms])

    def aligned(self, columns: Columns) -> Self:
        """Every term aligned."""
        return dataclasses.replace(self, terms=[term.aligned(columns) for term in self.terms])

    def named(self, columns: Columns) -> Self:
        """Every term with the names of its columns."""
        return dataclasses.replace(self, terms=[term.named(columns) for term in self.terms])

    def fill_lengthscales(self, X: Float[np.ndarray, "N C"]) -> Self:
        """Every term filled."""
        return dataclasses.replace(self, terms=[term.fill_lengthscales(X) for term in self.terms])

    def views(self, number: int) -> set[View]:
        """What any of the terms depends on."""
        return set().union(*(term.views(number) for term in self.terms))

    def __check_init__(self) -> None:
        for term in self.terms:
            if not isinstance(term, Kernel):
                raise ValueError(f"`terms` of {type(self).__name__} must be kernels, got {term!r}.")

    def _check_ready(self) -> None:
        for term in self.terms:
            term._check_ready()


class Sum(Combination):
    """k = Σ_i k_i."""

    def evaluate(self, x: Float[Array, " C"], z: Float[Array, " C"]) -> Float[Array, ""]:
        """Σ_i k_i(x, z)."""
        return reduce(operator.add, (term.evaluate(x, z) for term in self.terms))

    def __repr__(self) -> str:
        """The terms, joined by plus signs."""
        return " + ".join(map(repr, self.terms))


class Product(Combination):
    """k = Π_i k_i."""

    def evaluate(self, x: Float[Array, " C"], z: Float[Array, " C"]) -> Float[Array, ""]:
        """Π_i k_i(x, z)."""
        return reduce(operator.mul, (term.evaluate(x, z) for term in self.terms))

    def __repr__(self) -> str:
        """The factors, joined by stars, sums in brackets."""
        return " * ".join(f"({t!r})" if isinstance(t, Sum) else repr(t) for t in self.terms)


def canonical_inputs(views: set[View], X: Float[np.ndarray, "N C"]) -> Float[np.ndarray, "N K"]:
    """Return the columns of each row that are looked at, their phases and whole periods."""

    def seen(x: Float[np.ndarray, " N"], part: float | Whole | None) -> Float[np.ndarray, " N"]:
        if part is None:
            return x + 0.0
        return part.number(x) if isinstance(part, Whole) else phase(x, part)

    # The phase of a column adds nothing where the column itself is used.
    kept = sorted((v for v in views if v[1] is None or (v[0], None) not in views), key=str)
    parts = [seen(X[:, c], part) for c, part in kept]
    return np.stack(parts, axis=1) if parts else np.empty((len(X), 0))


def distinct_rows(kernel: Kernel, X: Float[np.ndarray, "N C"]) -> Int[np.ndarray, " M"]:
    """Indices of the first row of each kind that the kernel distinguishes, in order."""
    return np.sort(distinct(kernel.canonical(X))[0])


def _show(value: Any) -> str:
    """Numbers short, durations in quotes."""
    if isinstance(value, Tracer) or not isinstance(value, float | np.ndarray | jax.Array):
        return repr(value)
    if np.ndim(value) == 0:
        return f"{float(value):.4g}"
    return "[" + ", ".join(map(_show, np.asarray(value))) + "]"


def _check_positive(where: str, value: Any, durations: bool) -> None:
    """Refuse what is not a positive number, an array of them, or (if allowed) a duration."""
    if value is None or isinstance(value, Tracer):
        return
    if durations and isinstance(value, tuple):
        for element in value:
            _check_positive(where, element, durations)
        return
    number = duration_hours(value) if durations and isinstance(value, str) else value
    numeric = isinstance(number, int | float | np.ndarray | jax.Array) and np.size(number) > 0
    if not numeric or not np.all(np.isfinite(number) & (np.asarray(number) > 0)):
        also = ', or a duration such as "7d" on a column of times' if durations else ""
        raise ValueError(f"{where} must be a positive, finite number{also}, got {_show(value)}.")
