"""Simulated worlds whose truth is known, in `simulated`; `censored_gp.simulate` is that module.

Nothing here loads JAX.
"""
