"""Functions of a fitted model: lost demand, forecasts, diagnosis, comparison."""
