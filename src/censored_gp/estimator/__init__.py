"""`CensoredGP`, a scikit-learn estimator, and the analyses of a fitted model.

`censored_gp` has the estimator, `presets` the six models of the paper and `load`. Behind them are
`settings` (checks of parameters, settings of engines), `training` (from the user's data to
`TrainingData`), `persistence` (model files), `summary` (the model in words, names of kernels),
`fleet` (a model for each of many groups), `progress` (what a fit tells while it runs) and
`analysis` (lost demand, required supply, forecast, diagnosis, comparison).

Users import `CensoredGP`, the presets, `compare` and `load` from `censored_gp` itself. Packages
that come later (`datasets`, `reporting`, `cli`) may import these and the functions of `presets`,
`summary`, `fleet` and `analysis` from their modules, and `replacing` (atomic writing) from
`persistence`.
"""
