"""What the user gives: tables, times, which column is what, and `Observations`, Eq. (1)."""
