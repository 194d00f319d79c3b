"""Logs of tail probabilities, right far out, with exact derivatives in every argument."""

from censored_gp.tails.elementary import log1mexp, log_ndtr
from censored_gp.tails.gamma import log_gamma_tails, log_gammainc, log_gammaincc
from censored_gp.tails.interval import log_count_interval, log_interval
from censored_gp.tails.poisson import log_poisson

__all__ = [
    "log1mexp",
    "log_count_interval",
    "log_gamma_tails",
    "log_gammainc",
    "log_gammaincc",
    "log_interval",
    "log_ndtr",
    "log_poisson",
]
