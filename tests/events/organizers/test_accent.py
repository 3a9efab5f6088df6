"""Every accent that an organizer can choose is readable on every ground of the pages, light and dark."""

import re
from itertools import product

import pytest

from holdfast.events.organizers.accent import (
    DARK_INK,
    DARKEST_LIGHT_GROUND,
    LIGHTEST_DARK_GROUND,
    MIN_CONTRAST,
    OUR_ACCENT,
    OUR_DARK_ACCENT,
    Shades,
    contrast,
    dark_accent,
    dark_shades,
    light_shades,
    nearest_passing,
    passes,
)
from holdfast.kit.pages.layout import STYLE

COLORS = [f"#{red}{green}{blue}" for red, green, blue in product(("00", "33", "80", "c4", "ff"), repeat=3)]


def assert_readable(shades: Shades, *grounds: str) -> None:
    for color in (shades.accent, shades.strong):
        for other in (*grounds, shades.faint, shades.ink):
            assert contrast(color, other) >= MIN_CONTRAST, (shades, color, other)


def test_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_an_accent_that_passes_has_readable_shades_in_light_and_dark() -> None:
    for color in COLORS:
        accent = nearest_passing(color)
        assert passes(accent)
        assert (accent == color) == passes(color)
        assert_readable(light_shades(accent), "#ffffff", "#f6f6f3", DARKEST_LIGHT_GROUND)
        assert_readable(dark_shades(accent), DARK_INK, "#191c1f", LIGHTEST_DARK_GROUND)


def test_the_accent_of_dark_mails_is_computed_once_for_all_mails() -> None:
    assert dark_accent("#8a1f6b") is dark_accent("#8a1f6b")


def test_the_nearest_passing_colour_is_a_shade_of_the_same_colour() -> None:
    assert nearest_passing("#ffee88") == "#806d00"
    assert nearest_passing("#ff0000") == "#de0000"
    assert nearest_passing("#ffffff") == "#6e6e6e"


def test_the_tested_grounds_and_accents_are_those_of_the_style_sheet() -> None:
    assert re.findall(r"--sunken: (#\w+);", STYLE) == [DARKEST_LIGHT_GROUND, LIGHTEST_DARK_GROUND]
    assert re.findall(r"--accent: (#\w+);", STYLE) == [OUR_ACCENT, OUR_DARK_ACCENT]
