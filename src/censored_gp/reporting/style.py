"""Style of the plots: colours that the colour-blind tell apart, in light, dark and print."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# After Okabe and Ito's palette for the colour-blind. Censored cells differ in shape as well.
COLOURS = {
    "prediction": "#0072b2",
    "other": "#d55e00",
    "exact": "#555555",
    "censored": "#d98200",
    "truth": "#000000",
    "second": "#009e73",
    "third": "#cc79a7",
}
"""Colours by what they stand for, on a light background."""

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


def _background(paper: str, ink: str, faint: str) -> dict[str, Any]:
    """Return settings for the colours of the background, of text and of the grid."""
    return {
        **{f"{name}.facecolor": paper for name in ("figure", "axes", "savefig")},
        **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), ink),
        "axes.edgecolor": ink,
        "grid.color": faint,
    }


THEMES: dict[str, dict[str, Any]] = {
    "light": {**BASE, **_background("#ffffff", "#262626", "#e4e4e4")},
    "dark": {**BASE, **_background("#16191d", "#dddddd", "#333940")},
    # Type 42 fonts are what publishers ask for.
    "print": {
        **BASE, **_background("#ffffff", "#000000", "#dddddd"), "font.size": 8.0,
        "axes.grid": False, "lines.linewidth": 1.0, "savefig.dpi": 300, "pdf.fonttype": 42,
        "ps.fonttype": 42, "figure.figsize": (3.5, 2.4),
    },
}  # fmt: skip
"""Matplotlib settings of each style."""


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
    """Draw in a style within a `with` block: "light", "dark" or "print".

    >>> from matplotlib.figure import Figure
    >>> with style("dark"):
    ...     ax = Figure().subplots()
    >>> colours_on(ax)["prediction"] == COLOURS["prediction"]
    False
    """
    if theme not in THEMES:
        raise ValueError(f"`theme` must be one of {', '.join(THEMES)}, got {theme!r}.")
    with require_matplotlib().rc_context(THEMES[theme]):
        yield


def colours_on(ax: Axes) -> dict[str, str]:
    """Return colours by what they stand for, readable on the background of these axes.

    >>> from matplotlib.figure import Figure
    >>> colours_on(Figure().subplots()) is COLOURS
    True
    """
    from matplotlib.colors import to_rgba

    *rgb, alpha = to_rgba(ax.get_facecolor())
    # A transparent background counts as white.
    light = alpha * np.dot(rgb, (0.299, 0.587, 0.114)) + (1 - alpha)
    return COLOURS if light > 0.5 else DARK


def new_axes(ax: Axes | None = None, **settings: Any) -> Axes:
    """Return the axes given, or new ones with these settings of `plt.subplots`.

    >>> from matplotlib.figure import Figure
    >>> mine = Figure().subplots()
    >>> new_axes(mine) is mine
    True
    """
    if ax is not None:
        return ax
    require_matplotlib()
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained", **settings)[1]


def without_math(text: str) -> str:
    """Return text in which matplotlib takes no dollar signs for mathematics."""
    return text.replace("$", r"\$")
