"""Gaussian-process regression for outputs that were only partly seen."""

__version__ = "0.1.0"
