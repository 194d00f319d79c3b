"""Functions of a fitted model: lost demand, required supply, forecast, diagnosis, comparison.

They use the public attributes (`training_`, `posterior_`, `units_`) and methods of the model. Users
call the methods of `CensoredGP` of the same names, which document the arguments, or
`censored_gp.compare`. Other packages import functions from their modules; the package itself
exports nothing.
"""
