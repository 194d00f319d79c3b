"""Colours can be told apart on every background, also by the colour-blind; styles end."""

import itertools

import numpy as np
import pytest

from censored_gp import reporting

mpl = pytest.importorskip("matplotlib")
to_rgb = pytest.importorskip("matplotlib.colors").to_rgb
Figure = pytest.importorskip("matplotlib.figure").Figure

GROUNDS = {"light": "#ffffff", "dark": "#16191d", "print": "#ffffff"}
# Viénot, Brettel and Mollon (1999): what is left of colours without red or without green cones.
BLIND = {
    "protan": [[0.112, 0.888, 0.0], [0.112, 0.888, 0.0], [0.004, -0.004, 1.0]],
    "deutan": [[0.293, 0.707, 0.0], [0.293, 0.707, 0.0], [-0.021, 0.021, 1.0]],
}


def linear(colour):
    rgb = np.array(to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def luminance(colour):
    return linear(colour) @ (0.2126, 0.7152, 0.0722)


def palette(theme):
    with reporting.style(theme):
        return reporting.colours_on(Figure().subplots())


@pytest.mark.parametrize("theme", GROUNDS)
def test_colours_stand_out_from_the_ground(theme):
    ground = luminance(GROUNDS[theme])
    for name, colour in palette(theme).items():
        low, high = sorted([ground, luminance(colour)])
        assert (high + 0.05) / (low + 0.05) > 2.7, name


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("kind", BLIND)
def test_the_colour_blind_tell_apart_what_is_drawn_together(theme, kind):
    colours, matrix = palette(theme), np.array(BLIND[kind])
    for a, b in itertools.combinations(["prediction", "censored", "exact"], 2):
        seen = [np.clip(matrix @ linear(colours[c]), 0, 1) ** (1 / 2.2) for c in (a, b)]
        assert np.abs(seen[0] - seen[1]).max() > 0.15, (a, b)


def test_settings_are_as_before_when_a_style_ends():
    before = dict(mpl.rcParams)
    with reporting.style("dark"):
        assert mpl.rcParams["axes.facecolor"] == GROUNDS["dark"]
    assert dict(mpl.rcParams) == before


def test_colours_follow_the_ground_of_the_users_own_style():
    with mpl.style.context("dark_background"):
        dark = reporting.colours_on(Figure().subplots())
    assert dark == palette("dark")
    assert reporting.colours_on(Figure().subplots()) == palette("light")


def test_an_unknown_style_is_refused():
    with (
        pytest.raises(ValueError, match="sepia"),
        reporting.style("sepia"),
    ):
        pass
