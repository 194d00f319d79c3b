"""How pictures look: colours that the colour-blind tell apart, in light, dark and print."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLOURS", "THEMES", "colours_on", "new_axes", "require_matplotlib", "style"]

# Of Okabe and Ito's palette, which people tell apart whatever colours they see. What is censored
# differs in shape as well.
COLOURS = {
    "prediction": "#0072b2",
    "other": "#d55e00",
    "exact": "#555555",
    "censored": "#d98200",
    "truth": "#000000",
    "second": "#009e73",
    "third": "#cc79a7",
}
"""Colours by what they stand for, on a light ground."""

DARK = COLOURS | {
    "prediction": "#56b4e9",
    "other": "#ff8c42",
    "exact": "#b8b8b8",
    "censored": "#f0b429",
    "truth": "#f0f0f0",
    "second": "#2bc49a",
    "third": "#e39cc4",
}

BASE: dict[str, Any] = {
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}


def _ground(paper: str, ink: str, faint: str) -> dict[str, Any]:
    """Return settings for a colour of the ground and colours of what is on it."""
    return {
        **{f"{name}.facecolor": paper for name in ("figure", "axes", "savefig")},
        **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), ink),
        "axes.edgecolor": ink,
        "grid.color": faint,
    }


THEMES: dict[str, dict[str, Any]] = {
    "light": {**BASE, **_ground("#ffffff", "#262626", "#e4e4e4")},
    "dark": {**BASE, **_ground("#16191d", "#dddddd", "#333940")},
    # Fonts of type 42 are what printers ask for; a grid costs ink.
    "print": {
        **BASE, **_ground("#ffffff", "#000000", "#dddddd"), "font.size": 8.0, "axes.grid": False,
        "lines.linewidth": 1.0, "savefig.dpi": 300, "pdf.fonttype": 42, "ps.fonttype": 42,
        "figure.figsize": (3.5, 2.4),
    },
}  # fmt: skip
"""Settings of matplotlib by name of the style."""


def require_matplotlib() -> Any:
    """Return matplotlib, or say how to get it.

    >>> require_matplotlib().__name__
    'matplotlib'
    """
    try:
        import matplotlib as mpl
        import matplotlib.figure
    except ImportError as error:
        raise ImportError(
            'Drawing needs matplotlib, which is not installed: pip install "censored-gp[plot]".'
        ) from error
    return mpl


@contextlib.contextmanager
def style(theme: str = "light") -> Iterator[None]:
    """Draw in a style: "light", "dark" or "print"; afterwards settings are as they were.

    >>> from matplotlib.figure import Figure
    >>> with style("dark"):
    ...     ax = Figure().subplots()
    >>> colours_on(ax)["prediction"] == COLOURS["prediction"]
    False
    """
    if theme not in THEMES:
        raise ValueError(f"theme: found {theme!r}. Accepted is one of {', '.join(THEMES)}.")
    with require_matplotlib().rc_context(THEMES[theme]):
        yield


def colours_on(ax: Axes) -> dict[str, str]:
    """Return colours by what they stand for, readable on the ground of these axes.

    >>> from matplotlib.figure import Figure
    >>> colours_on(Figure().subplots()) is COLOURS
    True
    """
    from matplotlib.colors import to_rgba

    *rgb, alpha = to_rgba(ax.get_facecolor())
    # What shines through axes without a ground is taken for white.
    light = alpha * np.dot(rgb, (0.299, 0.587, 0.114)) + (1 - alpha)
    return COLOURS if light > 0.5 else DARK


def new_axes(ax: Axes | None = None) -> Axes:
    """Return the axes given, or new ones.

    >>> from matplotlib.figure import Figure
    >>> mine = Figure().subplots()
    >>> new_axes(mine) is mine
    True
    """
    if ax is not None:
        return ax
    require_matplotlib()
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]
