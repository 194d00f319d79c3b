"""Functions of a fitted model: lost demand, required supply, forecast, diagnosis, comparison.

They use its public attributes (`training_`, `posterior_`, `units_`) and methods; the methods of
`CensoredGP` of the same names document their arguments.
"""
