"""The examples in the docstrings run; every name of the public API has one.

Examples of a fitted model share one: six rows of one output, of which two reach a capacity. They
find it as `model`. Its hyper-parameters are fixed.
"""

import doctest
import importlib
import inspect
import pkgutil
import types
from functools import cached_property

import pytest

import censored_gp
from censored_gp import CGP, CensoredGP, Observations, Prediction

FITS = ("compare", "report")
"""Modules whose examples fit models of their own, which takes long to compile."""


class Finder(doctest.DocTestFinder):
    """Finds the examples of decorated functions too, which the original takes for foreign."""

    def _from_module(self, module, object):
        if inspect.isfunction(object):
            return object.__module__ == module.__name__
        return super()._from_module(module, object)


def modules():
    found = pkgutil.walk_packages(censored_gp.__path__, "censored_gp.")
    names = ["censored_gp", *(module.name for module in found if "__main__" not in module.name)]
    slow = [any(part in FITS for part in name.split(".")) for name in names]
    marks = [pytest.mark.slow if own else () for own in slow]
    return [pytest.param(n, marks=mark) for n, mark in zip(names, marks, strict=True)]


@pytest.fixture(scope="module")
def model():
    X, y = [[0], [1], [2], [3], [4], [5]], [1, 2, 3, 3, 2, 1]
    return CGP(hyperparameters="fixed").fit(X, y, capacity=3)


@pytest.mark.usefixtures("mixed_by_default")
@pytest.mark.parametrize("name", modules())
def test_examples_run(name, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    module = importlib.import_module(name)
    names = vars(module) | {"model": model, "__name__": name}
    for examples in Finder(exclude_empty=True).find(module, extraglobs={}, globs=names):
        runner.run(examples)
    assert runner.summarize(verbose=False).failed == 0


def public_api():
    """The public functions and classes, and the methods that users call."""
    kinds = (types.FunctionType, property, cached_property, classmethod, staticmethod)
    for name in censored_gp.__all__:
        value = getattr(censored_gp, name)
        if isinstance(value, types.FunctionType | type):
            yield name, value
    for kind in (CensoredGP, Observations, Prediction):
        for name, value in vars(kind).items():
            if isinstance(value, kinds) and not name.startswith("_") and not name.endswith("_"):
                yield f"{kind.__name__}.{name}", value


@pytest.mark.parametrize(("name", "value"), list(public_api()))
def test_a_public_name_has_an_example(name, value):
    assert ">>>" in (inspect.getdoc(getattr(value, "__func__", value)) or "")
