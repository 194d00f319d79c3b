"""Plots of a fitted model, and an HTML report about it.

`plots` draws with matplotlib (`pip install "censored-gp[plot]"`): outputs, components, lost demand,
calibration. `report` writes one self-contained page
(`pip install "censored-gp[report]"`): it computes what the page says, `template.html` is the page,
and `report.js` draws its charts with Vega-Lite. Import the names below from here; the modules
themselves are internal. Nothing here loads matplotlib before it is used.

>>> from censored_gp.reporting import COLOURS
>>> COLOURS["truth"]
'#000000'
"""

from censored_gp.reporting.plots import (
    COLOURS,
    new_axes,
    plot_component,
    plot_components,
    plot_coverage,
    plot_lost_demand,
    plot_observations,
    plot_output,
    plot_pit,
    plot_posterior,
    plot_prediction,
    require_matplotlib,
)
from censored_gp.reporting.report import write_report

__all__ = [
    "COLOURS",
    "new_axes",
    "plot_component",
    "plot_components",
    "plot_coverage",
    "plot_lost_demand",
    "plot_observations",
    "plot_output",
    "plot_pit",
    "plot_posterior",
    "plot_prediction",
    "require_matplotlib",
    "write_report",
]
