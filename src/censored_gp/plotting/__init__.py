"""Pictures of predictions, of what was seen, and of a fitted model.

Needs matplotlib: `pip install "censored-gp[plot]"`. Every function draws on the axes it is given,
or on new ones, and returns them. Colours follow the background of the axes, so that pictures are
readable in light and dark; `style` sets the rest.

>>> from censored_gp.plotting import COLOURS
>>> COLOURS["truth"]
'#000000'
"""

from censored_gp.plotting.calibration import plot_coverage, plot_pit
from censored_gp.plotting.fit import plot_coregionalization, plot_elbo
from censored_gp.plotting.lost import plot_lost_demand
from censored_gp.plotting.outputs import (
    plot_observations,
    plot_output,
    plot_posterior,
    plot_prediction,
)
from censored_gp.plotting.parts import kernel_words, plot_component, plot_components, plot_noise
from censored_gp.plotting.style import COLOURS, colours_on, new_axes, require_matplotlib, style

__all__ = [
    "COLOURS",
    "colours_on",
    "kernel_words",
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
]
