"""`CensoredGP`, a scikit-learn estimator, and what can be asked of a fitted one.

`censored_gp` is the estimator; `presets` the paper's six models and `load`; `settings` what its
parameters may be; `training` how its data are read; `persistence` how it is saved; `summary` what
it prints; `analysis` the questions: lost demand, required supply, forecast, diagnosis, comparison.
The public names are those of `censored_gp` itself: import them from there.
"""
