"""The accent of an organizer: which colours can be read on our pages, and the colours that are derived from one.

Contrast is that of WCAG 2.2: from 1 to 21, and text needs 4.5. The grounds are those of the pages, in `tokens.css`.
"""

import colorsys
import re
from functools import lru_cache
from hashlib import sha256
from typing import Literal, NamedTuple

MIN_CONTRAST = 4.5

OUR_ACCENT, OUR_DARK_ACCENT = "#0d6563", "#72d0c3"
"""The accents of pages and mails whose organizer has chosen none."""

WHITE = "#ffffff"
DARKEST_LIGHT_GROUND = "#f1f1ed"
"""`--sunken`: what can be read on it can be read on every ground of a light page, and white can be read on it."""

LIGHTEST_DARK_GROUND = "#22262a"
"""`--sunken` of a dark page."""

DARK_INK = "#111315"
"""Text on the accent of a dark page."""

_COLOR = re.compile("#[0-9a-f]{6}")
_SHADES = 512
"""How many shades of a colour are tried."""


class Shades(NamedTuple):
    """The colours of links and buttons, of those under the pointer, of faint grounds, and of text on buttons."""

    accent: str
    strong: str
    faint: str
    ink: str


def is_color(text: str) -> bool:
    """Whether a text is a colour such as #0d6563."""
    return _COLOR.fullmatch(text) is not None


def passes(color: str) -> bool:
    """Whether a colour can be read on every ground of a light page, and white text on it."""
    return contrast(color, DARKEST_LIGHT_GROUND) >= MIN_CONTRAST


def nearest_passing(color: str) -> str:
    """The colour itself if it passes, else the lightest shade of it that does."""
    return _shade_until(color, DARKEST_LIGHT_GROUND, MIN_CONTRAST, towards=0)


def light_shades(accent: str) -> Shades:
    """The colours of a light page. `accent` passes."""
    return Shades(accent, _mixed(accent, "#000000", 0.25), _faint(accent, WHITE), WHITE)


def dark_shades(accent: str) -> Shades:
    """The colours of a dark page: the accent is as light as its text needs."""
    lighter = dark_accent(accent)
    return Shades(lighter, _mixed(lighter, WHITE, 0.35), _faint(lighter, "#191c1f"), DARK_INK)


@lru_cache(1_000)
def dark_accent(accent: str) -> str:
    """The accent on a dark page: the darkest shade of it that is easy to read there."""
    return _shade_until(accent, LIGHTEST_DARK_GROUND, MIN_CONTRAST + 1, towards=1)


@lru_cache(1_000)
def stylesheet(accent: str) -> str:
    """The style that gives its colours to everything inside elements of the class `accented`."""
    return f"{_rule(light_shades(accent))}\n@media (prefers-color-scheme: dark) {{ {_rule(dark_shades(accent))} }}\n"


@lru_cache(1_000)
def stylesheet_path(accent: str) -> str:
    """The path of the style of an accent. It changes with the style."""
    return f"/accents/{accent[1:]}-{sha256(stylesheet(accent).encode()).hexdigest()[:8]}.css"


def contrast(first: str, second: str) -> float:
    """The contrast of two colours, from 1 to 21."""
    lower, higher = sorted((_luminance(first), _luminance(second)))
    return (higher + 0.05) / (lower + 0.05)


def _rule(shades: Shades) -> str:
    return (
        f".accented {{ --accent: {shades.accent}; --accent-strong: {shades.strong}; "
        f"--accent-faint: {shades.faint}; --on-accent: {shades.ink}; }}"
    )


def _shade_until(color: str, ground: str, least: float, *, towards: Literal[0, 1]) -> str:
    """The first shade of a colour with a contrast, from the colour itself to black (0) or white (1)."""
    hue, lightness, saturation = colorsys.rgb_to_hls(*_channels(color))
    for step in range(_SHADES):
        shade_lightness = lightness + (towards - lightness) * step / _SHADES
        shade = _hex(colorsys.hls_to_rgb(hue, shade_lightness, saturation)) if step else color
        if contrast(shade, ground) >= least:
            return shade
    return _hex((towards, towards, towards))


def _faint(accent: str, ground: str) -> str:
    """A ground with as much of the accent as text in the accent allows."""
    return next(
        faint
        for part in (0.14, 0.12, 0.1, 0.08, 0.06, 0.04, 0.02, 0)
        if contrast(faint := _mixed(ground, accent, part), accent) >= MIN_CONTRAST
    )


def _mixed(color: str, other: str, part: float) -> str:
    """A colour with a part of another one."""
    first, second = _channels(color), _channels(other)
    return _hex(tuple(a + (b - a) * part for a, b in zip(first, second, strict=True)))


def _luminance(color: str) -> float:
    red, green, blue = (
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4 for channel in _channels(color)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _channels(color: str) -> tuple[float, float, float]:
    red, green, blue = bytes.fromhex(color[1:])
    return red / 255, green / 255, blue / 255


def _hex(channels: tuple[float, ...]) -> str:
    return f"#{bytes(round(255 * channel) for channel in channels).hex()}"
