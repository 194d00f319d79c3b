"""Logs of tail probabilities, right far out, with exact derivatives in every argument."""

from censored_gp.likelihoods.special.beta import (
    log_beta_tails,
    log_negative_binomial,
    log_odds_kernel,
    log_odds_tails,
    log_student,
    log_student_tails,
)
from censored_gp.likelihoods.special.elementary import log1mexp, log_ndtr
from censored_gp.likelihoods.special.gamma import log_gamma_kernel, log_gamma_tails, log_poisson
from censored_gp.likelihoods.special.interval import log_count_interval, log_interval
from censored_gp.likelihoods.special.normal import log_normal_interval

__all__ = [
    "log1mexp",
    "log_beta_tails",
    "log_count_interval",
    "log_gamma_kernel",
    "log_gamma_tails",
    "log_interval",
    "log_ndtr",
    "log_negative_binomial",
    "log_normal_interval",
    "log_odds_kernel",
    "log_odds_tails",
    "log_poisson",
    "log_student",
    "log_student_tails",
]
