"""Logs of tail probabilities, right far out, with exact derivatives in every argument.

`elementary` has functions without cancellation and continued fractions, `normal`, `gamma` and
`beta` the tails of the normal, of incomplete gamma and of incomplete beta functions (with Student's
t and the negative binomial), `compound` the sum of a compound Poisson-gamma variable, and
`interval` the probability of an interval from the tails at its ends.
"""
