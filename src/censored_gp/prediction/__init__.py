"""The posterior predictive of the true output, Eq. (8) and (14), and scores of predictions.

`predictive` has `Prediction`, the distribution of every cell at given inputs: moments, quantiles,
intervals, probabilities and joint draws. `mixture` evaluates the finite mixtures behind it, by
family. `metrics` scores predictions against a truth that may be censored. Import `Prediction` and
`central_interval` from `predictive`, and the module `metrics`; `mixture` is internal.
"""
