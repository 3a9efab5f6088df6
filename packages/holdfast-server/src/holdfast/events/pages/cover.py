"""Covers: a landscape that is drawn from the title of an event, for events without photos. The same title has the same
cover, on the page (SVG) and as the preview image of links (PNG, see cover_drawing.py).
"""

import math
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise

from markupsafe import Markup
from msgspec import Struct

from holdfast.events.texts.rendered_text import one_line

WIDTH = 1200
HEIGHT = 630
"""The size that previews of links have, in pixels."""

HILLS = 4
POINTS = 24
"""The points of the outline of a hill."""


class Palette(Struct, frozen=True):
    """Colours from above to below: the sky at the top and at the horizon, the sun, and the hills, the nearest last."""

    sky: str
    horizon: str
    sun: str
    hills: tuple[str, str, str, str]


PALETTES = (
    Palette("#12324a", "#f0a37e", "#ffd9a0", ("#c06d6b", "#8a4b66", "#533559", "#251f3d")),
    Palette("#2c6e8f", "#bfe3da", "#fff2c4", ("#7fb7a8", "#4d8f86", "#2a6663", "#123c40")),
    Palette("#5a3d7a", "#f4b6a6", "#ffe4b8", ("#d0828a", "#985a80", "#5d3c6d", "#2c2145")),
    Palette("#1d5f74", "#f6d58f", "#fff5d6", ("#d69f5e", "#a86f45", "#6a4534", "#2f2423")),
    Palette("#0f2f4f", "#79b8c9", "#eaf6ef", ("#4f93aa", "#2f6f8c", "#1c4b69", "#0d2a42")),
    Palette("#7a3348", "#f7c59f", "#fff0cf", ("#d4786a", "#a34d57", "#6b3047", "#341a2f")),
    Palette("#3e5c3a", "#f1e3a8", "#fffbe0", ("#a3b266", "#6f8f52", "#44693f", "#1f3d2a")),
    Palette("#27406b", "#e6bcd4", "#ffeef5", ("#a98abb", "#77649e", "#4a4579", "#242a50")),
)


class Cover(Struct, frozen=True):
    """The shapes of a cover, in a box of WIDTH by HEIGHT.

    sun      the middle and the radius
    hills    the outlines, the farthest first; each ends at the lower corners
    """

    palette: Palette
    sun: tuple[int, int, int]
    hills: tuple[tuple[tuple[int, int], ...], ...]


def draw_cover(title: str) -> Cover:
    """The cover for a title."""
    return _drawn_from(_seed(title))


def _seed(title: str) -> bytes:
    return sha256(title.strip().casefold().encode()).digest()


def _drawn_from(seed: bytes) -> Cover:
    hills = tuple(_hill(seed[4 + 6 * number :], number) for number in range(HILLS))
    sun = (200 + seed[1] * 800 // 255, 150 + seed[2] * 130 // 255, 62 + seed[3] * 46 // 255)
    return Cover(PALETTES[seed[0] % len(PALETTES)], sun, hills)


def _hill(seed: bytes, number: int) -> tuple[tuple[int, int], ...]:
    """The outline of a hill as the sum of two waves."""
    middle = HEIGHT * (48 + 14 * number) / 100
    long, short = 30 + seed[0] / 5, 8 + seed[1] / 16
    periods, phase, shift = 0.8 + seed[2] / 180, seed[3] / 40, seed[4] / 40
    outline = [
        (
            round(WIDTH * step / POINTS),
            round(
                middle
                + long * math.sin(periods * 2 * math.pi * step / POINTS + phase)
                + short * math.sin(3 * periods * 2 * math.pi * step / POINTS + shift)
            ),
        )
        for step in range(POINTS + 1)
    ]
    return (*outline, (WIDTH, HEIGHT), (0, HEIGHT))


def cover_path(event_id: int, title: str) -> str:
    """The path of the cover of an event as a PNG file. It changes with the title."""
    return f"/events/{event_id}/cover-{sha256(title.encode()).hexdigest()[:8]}.png"


def cover_svg(title: str) -> Markup:
    """The cover as an element of a page. It is decoration, so screen readers skip it."""
    return _svg(_seed(title))


@lru_cache(500)
def _svg(seed: bytes) -> Markup:
    cover = _drawn_from(seed)
    sky = f"sky-{seed.hex()[:8]}"
    x, y, radius = cover.sun
    hills = "".join(
        f'<path fill="{color}" d="{_smooth(outline)}"/>'
        for color, outline in zip(cover.palette.hills, cover.hills, strict=True)
    )
    return Markup(  # noqa: S704 - made of our own numbers and colours
        f'<svg class="cover" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="xMidYMid slice" aria-hidden="true">'
        f'<linearGradient id="{sky}" x2="0" y2="1"><stop stop-color="{cover.palette.sky}"/>'
        f'<stop offset="0.75" stop-color="{cover.palette.horizon}"/></linearGradient>'
        f'<rect width="100%" height="100%" fill="url(#{sky})"/>'
        f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{cover.palette.sun}" fill-opacity="0.9"/>{hills}</svg>'
    )


def title_cover(title: str) -> Markup:
    """The cover for the title of an event as it was written."""
    return cover_svg(one_line(title))


def _smooth(outline: tuple[tuple[int, int], ...]) -> str:
    """The path of an outline: curves through the middles of its points, and straight lines around the lower corners.

    Each curve begins where the one before it ends: these numbers are shorter than those from the corner of the picture.
    """
    *points, (right, bottom), (left, _) = outline
    start_x, start_y = points[0]
    path = [f"M{start_x} {start_y}q"]
    for (x, y), (next_x, next_y) in pairwise(points[1:]):
        end_x, end_y = (x + next_x) // 2, (y + next_y) // 2
        path.append(f"{x - start_x} {y - start_y} {end_x - start_x} {end_y - start_y} ")
        start_x, start_y = end_x, end_y
    path.append(f"L{points[-1][0]} {points[-1][1]}V{bottom}H{left}Z")
    assert points[-1][0] == right, "a hill ends at the right edge"
    return "".join(path).replace(" L", "L").replace(" -", "-")
