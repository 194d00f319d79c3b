"""Logs of tail probabilities, right far out, with exact derivatives in every argument."""

from censored_gp.tails.beta import log_beta_tails, log_odds_kernel, log_odds_tails
from censored_gp.tails.elementary import log1mexp, log_ndtr
from censored_gp.tails.gamma import log_gamma_kernel, log_gamma_tails
from censored_gp.tails.interval import log_count_interval, log_interval
from censored_gp.tails.negative_binomial import log_negative_binomial
from censored_gp.tails.normal import log_normal_interval
from censored_gp.tails.poisson import log_poisson
from censored_gp.tails.share import log_share
from censored_gp.tails.student import log_student, log_student_tails

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
    "log_share",
    "log_student",
    "log_student_tails",
]
