"""The examples in the docstrings run, and say what they say; no public name is without one."""

import doctest
import importlib
import inspect
import pkgutil
import re
import types
from functools import cached_property
from pathlib import Path

import pytest

import censored_gp
from censored_gp import CensoredGP, Observations, Prediction

# Their examples fit models of their own, which takes a while to compile. Those of other modules fit
# one small model again and again: six rows of one output, by `CGP`, for which one program serves.
FITS = ("comparison", "plotting", "report")

PUBLIC = (
    "kernels",
    "likelihoods",
    "datasets",
    "datasets.simulated",
    "metrics",
    "plotting",
    "report",
)
PUBLIC += ("observations", "files", "presets")
"""The documented modules, besides the package itself."""
WITH_METHODS = (CensoredGP, Observations, Prediction)
"""Classes whose public methods and properties count as names of their own."""


class Finder(doctest.DocTestFinder):
    """Finds the examples of decorated functions, too, which the original takes for foreign."""

    def _from_module(self, module, object):
        if inspect.isfunction(object):
            return object.__module__ == module.__name__
        return super()._from_module(module, object)


def modules():
    found = pkgutil.walk_packages(censored_gp.__path__, "censored_gp.")
    return ["censored_gp", *(module.name for module in found)]


def marked(name):
    """The name of a module, marked as slow if its examples fit models."""
    slow = set(name.split(".")[1:2]) & set(FITS)
    return pytest.param(name, marks=pytest.mark.slow) if slow else name


@pytest.mark.parametrize("name", [marked(name) for name in modules()])
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for examples in Finder(exclude_empty=True).find(importlib.import_module(name)):
        runner.run(examples)
    assert runner.summarize(verbose=False).failed == 0


def public_names():
    """Every public name, in full by where it is written, and what it stands for."""
    yield "censored_gp", censored_gp
    for home in ("censored_gp", *(f"censored_gp.{module}" for module in PUBLIC)):
        module = importlib.import_module(home)
        own = [n for n, v in vars(module).items() if getattr(v, "__module__", None) == home]
        for name in getattr(module, "__all__", [n for n in own if not n.startswith("_")]):
            value = getattr(module, name)
            described = isinstance(value, types.FunctionType | type)
            full = f"{value.__module__}.{name}" if described else f"{home}.{name}"
            yield full, value
    for kind in WITH_METHODS:
        yield from methods(kind)


def methods(kind):
    """The public methods and properties that a class has from this package."""
    accepted = (types.FunctionType, property, cached_property, classmethod, staticmethod)
    for base in kind.__mro__:
        if base.__module__.startswith("censored_gp"):
            for name, value in vars(base).items():
                if not name.startswith("_") and isinstance(value, accepted):
                    yield f"{base.__module__}.{base.__qualname__}.{name}", value


def names_with_examples():
    """The names whose own docstrings have examples, among those that are found and run."""
    found = [part for name in modules() for part in Finder().find(importlib.import_module(name))]
    return {part.name for part in found if part.examples}


def shown_by_module(full):
    """Whether an example of its module has a constant, which has no docstring of its own."""
    home, _, name = full.rpartition(".")
    examples = doctest.DocTestParser().get_examples(importlib.import_module(home).__doc__ or "")
    return any(re.search(rf"\b{name}\b", example.source) for example in examples)


def without_example(names):
    """Those of the names that have no example that runs."""
    shown = names_with_examples()
    described = types.FunctionType, type, types.ModuleType, property, cached_property
    described += classmethod, staticmethod
    return sorted(
        full
        for full, value in names
        if not (full in shown if isinstance(value, described) else shown_by_module(full))
    )


def test_every_public_name_has_an_example_that_runs():
    missing = without_example(public_names())
    assert not missing, f"give an example to {', '.join(missing)}"


def test_the_reference_lists_what_is_public():
    page = Path(__file__).parent.parent / "docs" / "reference.md"
    listed = set(re.findall(r"^::: censored_gp\.?([\w.]*)$", page.read_text("utf-8"), re.M))
    # All that these two have are names of the package itself.
    assert listed == {"", *PUBLIC} - {"observations", "presets"}


def test_a_name_without_an_example_is_told():
    known = list(methods(Observations))
    silent = types.new_class("Silent")
    silent.__module__, silent.quiet = "censored_gp.data.observations", lambda self: None
    names = [*known, *methods(silent), ("censored_gp.likelihoods.COUNT", 1)]
    assert without_example(names) == [
        "censored_gp.likelihoods.COUNT",
        "censored_gp.data.observations.Silent.quiet",
    ]
