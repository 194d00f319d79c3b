"""The paper's tables and figures, computed anew: `python -m reproduction --help`.

Not part of the wheel. `study` runs many fits and keeps each as a row of a CSV file; `models` has
the paper's models and how a fit is scored; `synthetic`, `areas`, `new_york` and `trips` hold the
data and the runs of the tables, `engines` those by which engines are compared; `tables`, `figures`
and `page` make the results page of the rows.
"""
