"""The six models of the paper by name, and `load`, which reads a model from a file.

| model    | the noise varies | outputs are coupled | bounds are used |
|----------|------------------|---------------------|-----------------|
| `NCGP`   | no               | no                  | no              |
| `MONCGP` | no               | yes                 | no              |
| `CGP`    | no               | no                  | yes             |
| `HCGP`   | yes              | no                  | yes             |
| `MOCGP`  | no               | yes                 | yes             |
| `HMOCGP` | yes              | yes                 | yes             |

Each takes the other settings of `CensoredGP`.
"""

from __future__ import annotations

import inspect
import os
from typing import Any

from censored_gp.data.errors import did_you_mean
from censored_gp.estimator import persistence
from censored_gp.estimator.censored_gp import CensoredGP

# The settings that a preset fixes, in the order of the table above.
FIXED = ("heteroscedastic", "coupled", "use_censoring")


class Preset(CensoredGP):
    """A `CensoredGP` some of whose settings are fixed by its class."""

    heteroscedastic = False
    coupled = False
    use_censoring = True

    def __init__(self, *given: Any, **settings: Any) -> None:
        known = self._get_param_names()
        for name in set(settings) - set(known):
            fixed = "is fixed: use CensoredGP to choose it." if name in FIXED else "is no setting."
            said = f"{type(self).__name__}: `{name}` {fixed} {did_you_mean(name, known)}"
            raise TypeError(said.strip())
        super().__init__(*given, **settings, **{name: getattr(type(self), name) for name in FIXED})

    # Where scikit-learn looks for the names of the settings.
    __init__.__dict__["__signature__"] = inspect.Signature(
        [p for n, p in inspect.signature(CensoredGP.__init__).parameters.items() if n not in FIXED]
    )


class NCGP(Preset):
    """Non-censored Gaussian process: single outputs, every bound treated as the value itself.

    >>> from censored_gp import CGP, NCGP
    >>> X, y = [[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1]
    >>> full, ignored = (kind().fit(X, y, capacity=3).predict([[2.5]])[0] for kind in (CGP, NCGP))
    >>> bool(ignored < full)
    True
    """

    use_censoring = False


class MONCGP(Preset):
    """Multi-output non-censored Gaussian process: every bound treated as the value itself.

    >>> from censored_gp import MONCGP
    >>> model = MONCGP(rank=1)
    >>> model.coupled, model.use_censoring
    (True, False)
    """

    coupled = True
    use_censoring = False


class CGP(Preset):
    """Censored Gaussian process: single outputs, constant noise.

    >>> from censored_gp import CGP
    >>> model = CGP().fit([[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1], capacity=3)
    >>> model.impute().round(1)
    array([1. , 2. , 3.7, 3.7, 2. , 1. ])
    """


class HCGP(Preset):
    """Heteroscedastic censored Gaussian process: single outputs, varying noise.

    >>> from censored_gp import HCGP
    >>> model = HCGP("student_t")
    >>> model.coupled, model.heteroscedastic
    (False, True)
    """

    heteroscedastic = True


class MOCGP(Preset):
    """Multi-output censored Gaussian process: constant noise.

    >>> from censored_gp import MOCGP
    >>> MOCGP("poisson", rank=2)
    MOCGP(likelihood='poisson', rank=2)
    """

    coupled = True


class HMOCGP(Preset):
    """Heteroscedastic multi-output censored Gaussian process.

    >>> from censored_gp import HMOCGP
    >>> HMOCGP("negative_binomial")
    HMOCGP(likelihood='negative_binomial')
    """

    heteroscedastic = True
    coupled = True


# The six models by name.
MODELS: dict[str, type[Preset]] = {
    kind.__name__: kind for kind in (NCGP, MONCGP, CGP, HCGP, MOCGP, HMOCGP)
}


def paper_name(model: CensoredGP) -> str:
    """Return what the paper calls a model of these settings."""
    settings = [bool(getattr(model, name)) for name in FIXED]
    same = [n for n, kind in MODELS.items() if [getattr(kind, f) for f in FIXED] == settings]
    return same[0] if same else "CensoredGP"


def load(path: str | os.PathLike[str]) -> Any:
    """Return the model that a file holds, or say what is wrong with the file.

    Reading a file runs no code that it brings along.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "notes.txt")
    >>> _ = path.write_text("not a model")
    >>> load(path)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: ...notes.txt is not a model file of censored-gp, or was cut short...
    """
    return persistence.load(path, CensoredGP)
