"""What the user gives, Eq. (1): tables, times, which column is what, inputs and `Observations`.

`read_table` and `read_file` make one `Table` of any frame, dict or file; a `Layout` says which of
its columns is what, and `read_training`, `read_new` and `result` go from tables to inputs and
`Observations` and back. `read_inputs` encodes inputs as a centred matrix, described by `Columns`;
`read_targets` and `within_support` check outputs. Bad data raise `DataError`.

Kernels, models and engines import `Columns`, `Observations`, `errors` and `time` only, which load
neither pyarrow nor narwhals.
"""
