"""Plots of a fitted model, and a report about it.

`plots`, `components` and `calibration` draw with matplotlib (`pip install "censored-gp[plot]"`).
Every function draws on the axes it is given, or on new ones, and returns them. Colours follow the
background of the axes, light or dark; `style` sets the rest. `write_report` writes one
self-contained HTML page (`pip install "censored-gp[report]"`): `content` computes what it says,
`charts` draws with altair, and `template.html` is the page. Import from here the names below.

>>> from censored_gp.reporting import COLOURS
>>> COLOURS["truth"]
'#000000'
"""

from censored_gp.reporting.calibration import plot_coverage, plot_pit
from censored_gp.reporting.components import plot_component, plot_components, plot_noise
from censored_gp.reporting.plots import (
    plot_coregionalization,
    plot_elbo,
    plot_lost_demand,
    plot_observations,
    plot_output,
    plot_posterior,
    plot_prediction,
)
from censored_gp.reporting.report import write_report
from censored_gp.reporting.style import COLOURS, colours_on, new_axes, require_matplotlib, style

__all__ = [
    "COLOURS",
    "colours_on",
    "new_axes",
    "plot_component",
    "plot_components",
    "plot_coregionalization",
    "plot_coverage",
    "plot_elbo",
    "plot_lost_demand",
    "plot_noise",
    "plot_observations",
    "plot_output",
    "plot_pit",
    "plot_posterior",
    "plot_prediction",
    "require_matplotlib",
    "style",
    "write_report",
]
