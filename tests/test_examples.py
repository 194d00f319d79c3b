"""The examples in the docstrings run, and say what they say."""

import doctest
import importlib
import pkgutil

import pytest

import censored_gp

# Their examples fit models, which takes a while to compile.
FITS = ("answers", "comparison", "diagnose", "estimator", "files", "plotting", "presets")
FITS += ("forecasts", "questions", "report")


def modules():
    found = pkgutil.walk_packages(censored_gp.__path__, "censored_gp.")
    for name in (module.name for module in found):
        slow = name.split(".")[1] in FITS
        yield pytest.param(name, marks=pytest.mark.slow) if slow else name


@pytest.mark.parametrize("name", list(modules()))
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert found.failed == 0
