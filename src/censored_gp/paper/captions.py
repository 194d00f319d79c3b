"""What each figure shows, in words."""

__all__ = ["CAPTIONS"]

CAPTIONS = {
    "synthetic": "One draw of the synthetic world: four models, both outputs. Models that take "
    "records at their word follow the pushed-down values; CGP has only its own bounds to go by, "
    "HMOCGP the other output too. Bands hold 90 %.",
    "censoring": "The censoring of one demand series: a week at station 3711. What was wanted "
    "(line), and what was seen of it.",
    "contributions": "Why varying noise matters under censoring. Left: an exact observation is "
    "most likely under a mean that meets it. Right: a censored one is the more likely the higher "
    "the mean; with more noise the mean must be higher for the same likelihood.",
    "overlap": "The four overlap scenarios of table 2, in one draw.",
    "calibration": "Calibration at censored points of synthetic worlds. Left: how much of the "
    "truth lies below each predicted quantile; the diagonal is right, above it predictions are "
    "too high. Right: how much of it the 90 % intervals hold, by the share that is censored.",
    "shares": "Error at censored points against the share that is censored, in standard "
    "deviations of the output; means over draws with standard errors.",
}
"""Captions by the name of the file."""
