"""Independent programs that must agree with ours: ``make oracles`` prints a table."""
