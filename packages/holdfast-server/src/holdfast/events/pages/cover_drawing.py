"""Draws the cover of an event as a PNG file. Pillow takes megabytes, so this module is imported for the first cover."""

from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from typing import Any

from PIL import Image, ImageColor, ImageDraw, ImageFont

from holdfast.events.pages.cover import HEIGHT, WIDTH, Palette, draw_cover

SCALE = 2
"""Shapes are drawn at twice their size and scaled down, so that their edges are smooth."""

MARGIN = 64
MAX_LINES = 3
FONT_SIZES = (84, 72, 60, 48)
ABSENT = "\U0010ffff"
"""A character that no font has."""


def cover_png(title: str) -> bytes:
    """The cover for a title as a PNG file. This takes about 0.2 seconds of processor time."""
    cover = draw_cover(title)
    image: Any = _sky(cover.palette)  # the types of Pillow are complete only with numpy
    draw = ImageDraw.Draw(image)
    x, y, radius = (value * SCALE for value in cover.sun)
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=cover.palette.sun)
    for color, outline in zip(cover.palette.hills, cover.hills, strict=True):
        draw.polygon([(left * SCALE, top * SCALE) for left, top in _without_corners(outline)], fill=color)
    image = image.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)
    _write_title(ImageDraw.Draw(image), " ".join(title.split()))
    file = BytesIO()
    image.quantize(128).save(file, "PNG", optimize=True)
    return file.getvalue()


def _sky(palette: Palette) -> Image.Image:
    size = (WIDTH * SCALE, HEIGHT * SCALE)
    above, below = (Image.new("RGB", size, ImageColor.getrgb(color)) for color in (palette.horizon, palette.sky))
    ramp: Any = Image.linear_gradient("L")
    return Image.composite(above, below, ramp.resize(size))


def _without_corners(outline: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The outline of a hill with its corners cut off three times (Chaikin's algorithm), which makes it smooth."""
    *points, right, left = outline
    for _ in range(3):
        cut = [
            (x + (next_x - x) * part, y + (next_y - y) * part)
            for (x, y), (next_x, next_y) in pairwise(points)
            for part in (0.25, 0.75)
        ]
        points = [points[0], *cut, points[-1]]
    return [*points, right, left]


def _write_title(draw: ImageDraw.ImageDraw, title: str) -> None:
    """Write the title in the lower left corner, as large as it fits. A title with other letters is left out."""
    for size in FONT_SIZES:
        font = ImageFont.load_default(size)
        if not _has_letters(font, title):
            return
        lines = _lines(draw, font, title)
        if len(lines) <= MAX_LINES and all(draw.textlength(line, font) <= WIDTH - 2 * MARGIN for line in lines):
            draw.multiline_text(
                (MARGIN, HEIGHT - MARGIN), "\n".join(lines), "#ffffff", font, anchor="ld", spacing=size // 5
            )
            return


def _has_letters(font: ImageFont.FreeTypeFont | ImageFont.ImageFont, text: str) -> bool:
    absent = _drawn(font, ABSENT)
    return all(character == " " or _drawn(font, character) != absent for character in set(text))


def _drawn(font: ImageFont.FreeTypeFont | ImageFont.ImageFont, character: str) -> bytes:
    image = Image.new("L", (128, 128))
    ImageDraw.Draw(image).text((0, 0), character, 255, font)
    return image.tobytes()


def _lines(draw: ImageDraw.ImageDraw, font: ImageFont.FreeTypeFont | ImageFont.ImageFont, text: str) -> list[str]:
    """The words of a text in lines that fit, as far as single words do."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and draw.textlength(longer, font) > WIDTH - 2 * MARGIN:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines
