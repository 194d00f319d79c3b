"""Analyses of a fitted model: lost demand, required supply, forecast, diagnosis, comparison.

Each module has the function that the method of `CensoredGP` of the same name calls (`compare` is a
function of the package only), and the parts it is made of. They use public attributes of the model
(`training_`, `posterior_`, `units_`) and its methods. `compare`, `Diagnosis` and
`censoring_cautions` may be imported from other packages.
"""
