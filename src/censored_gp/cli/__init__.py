"""The command line `censored-gp`: questions about a table, without programming.

`commands` holds the commands: thin functions over `CensoredGP`, which import JAX when they run, so
that the help does not wait for it. They share `options` (groups of options), `fitting` (a fitted
model from a file or a fit), `demonstration` (sample data), `output` (tables as files or on the
terminal) and `console` (messages and exit codes). Import `app` and `run` from here; `run` is the
command itself.
"""

from censored_gp.cli.main import app, run

__all__ = ["app", "run"]
