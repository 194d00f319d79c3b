"""What the user gives, Eq. (1): tables, times, which column is what, inputs and `Observations`.

- `observations`: `Observations`, closed intervals that hold each output, and its builders.
- `bounds`: what values, flags, capacities, bounds and exposures say of each cell, however given.
- `inputs`: `read_inputs` encodes inputs as a centred matrix, which `Columns` describes.
- `tables`, `files`: any frame, dict or file becomes a `Table` of Arrow columns, and back.
- `layout`: a `Layout` says which column is what; `read_training`, `read_new` and `result` go from
  tables to inputs and `Observations` and back.
- `time`: time zones, the wall clock, durations and the time stamps of a forecast.
- `validation`: `read_targets` reads outputs, `within_support` checks them against likelihoods.
- `storage`: arrays that live in a file where they are larger than a budget.
- `errors`: `DataError`, which all bad data raise, and its wording.

Public are `Observations`, as `censored_gp.Observations`, and `errors.DataError`. Other packages
import from the modules by name. Kernels, models and engines use `inputs`, `observations`,
`errors`, `storage`, `time` and `validation` only, which load neither pyarrow nor narwhals.
"""
