"""Print how far every oracle is from us; what is not installed is named."""

import sys
import warnings

from rich.console import Console
from rich.table import Table

from oracles.agreement import ORACLES, Absent

warnings.simplefilter("ignore")
table, failed = Table("oracle", "what", "difference", "allowed", ""), 0
for name, oracle in ORACLES.items():
    try:
        for what, difference, allowed in oracle():
            good = difference <= allowed
            failed += not good
            table.add_row(name, what, f"{difference:.1e}", f"{allowed:.0e}", "" if good else "NO")
    except Absent as absent:
        table.add_row(name, f"skipped: {absent}", "", "", "")
Console(width=100).print(table)
sys.exit(failed > 0)
