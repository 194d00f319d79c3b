"""One page with what was done and found: it needs no network, and no other file.

Needs altair and vl-convert-python: `pip install "censored-gp[report]"`.
"""

from censored_gp.report.write import write_report

__all__ = ["write_report"]
