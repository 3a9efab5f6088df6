"""The photos of the example events. They are drawn, so that no pictures of people have to be shipped.

Each is layered shapes with paper-like colours. The same name always gives the same picture.
"""

import io
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

WIDTH, HEIGHT = 1200, 750
"""The size of a photo in pixels."""

CONTENT_TYPE = "image/jpeg"
JPEG_QUALITY = 88
SMOOTHING = 2
"""The factor by which shapes are drawn larger, before they are made smaller again: their edges are smooth then."""

Colour = tuple[int, int, int]
Point = tuple[float, float]


def draw_photo(name: str) -> bytes:
    """The photo with a name, `studio`, `drawing` or `concert`, as a JPEG file."""
    from PIL import Image  # it takes time to load, and only the first start of a demonstration needs it

    picture = _PICTURES[name](random.Random(name))  # noqa: S311 - the picture is to be the same each time
    file = io.BytesIO()
    picture.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS).save(file, "JPEG", quality=JPEG_QUALITY)
    return file.getvalue()


def _studio(rng: random.Random) -> Any:
    """Roofs of a town at dusk, with windows that are lit, under a low sun."""
    from PIL import ImageDraw

    picture = _gradient((66, 46, 92), (250, 178, 120))
    _glow(picture, (0.7, 0.5), 0.75, (255, 214, 150), 0.9)
    pen = ImageDraw.Draw(picture)
    _circle(pen, (0.7, 0.46), 0.07, (255, 233, 190))
    layers: Sequence[tuple[float, Colour]] = (
        (0.6, (176, 104, 112)),
        (0.68, (118, 68, 98)),
        (0.78, (64, 42, 78)),
        (0.9, (32, 24, 48)),
    )
    for number, (top, colour) in enumerate(layers):
        left = -0.02
        while left < 1:
            width = rng.uniform(0.06, 0.12) * (1 + 0.25 * number)
            roof = top - rng.uniform(0, 0.11)
            _polygon(pen, _house(left, width, roof, gabled=rng.random() < 0.45), colour)
            if number >= 2:
                _windows(pen, rng, left, width, roof, (255, 205, 120), share=0.42)
            left += width
    return picture


def _drawing(rng: random.Random) -> Any:
    """Cut paper: leaves and pebbles on a light ground, and a figure in one line."""
    from PIL import ImageDraw

    picture = _gradient((250, 243, 230), (242, 228, 206))
    pen = ImageDraw.Draw(picture)
    shapes: Sequence[tuple[Point, float, Colour]] = (
        ((0.14, 0.3), 0.36, (219, 112, 83)),
        ((0.9, 0.22), 0.3, (226, 170, 74)),
        ((0.84, 0.86), 0.4, (36, 92, 96)),
        ((0.2, 0.92), 0.28, (120, 152, 122)),
    )
    for center, size, colour in shapes:
        _polygon(pen, _pebble(rng, center, size), colour)
    for root, angle, length, colour in (
        ((0.06, 1.0), -1.25, 0.5, (24, 68, 74)),
        ((1.02, 0.62), 3.5, 0.24, (196, 82, 62)),
        ((0.8, 1.03), -1.2, 0.26, (238, 196, 120)),
    ):
        _leaf(pen, root, angle, length, colour)
    ink = (38, 34, 40)
    for line in _FIGURE:
        _stroke(pen, _smooth(line), 0.006, ink)
    return picture


def _concert(rng: random.Random) -> Any:
    """A courtyard at night: rings of sound, hills, and strings of lamps."""
    from PIL import ImageDraw

    picture = _gradient((14, 22, 54), (48, 60, 116))
    _glow(picture, (0.5, 0.92), 1.0, (236, 122, 130), 0.9)
    pen = ImageDraw.Draw(picture)
    rings: Sequence[Colour] = (
        (62, 66, 128),
        (88, 76, 140),
        (124, 88, 148),
        (170, 102, 148),
        (216, 124, 140),
        (246, 164, 132),
        (255, 212, 160),
    )
    for number, colour in enumerate(rings):
        _circle(pen, (0.5, 0.98), 0.47 - 0.062 * number, colour)
    for top, colour in ((0.76, (44, 38, 84)), (0.84, (30, 28, 64)), (0.92, (16, 17, 42))):
        _polygon(pen, _hill(rng, top), colour)
    lamps = _gradient((0, 0, 0), (0, 0, 0))
    lamp_pen = ImageDraw.Draw(lamps)
    for height, sag in ((0.1, 0.16), (0.2, 0.2), (0.02, 0.1)):
        cord = [(step / 60, height + sag * (1 - (2 * step / 60 - 1) ** 2)) for step in range(61)]
        _stroke(pen, cord, 0.0022, (12, 14, 34))
        for x, y in cord[3::6]:
            _circle(lamp_pen, (x, y + 0.012), 0.011, (255, 206, 128))
    _add_light(picture, _blurred(lamps), 1.8)
    _add_light(picture, lamps, 1.0)
    return picture


_PICTURES: dict[str, Callable[[random.Random], Any]] = {"studio": _studio, "drawing": _drawing, "concert": _concert}

_FIGURE: Sequence[Sequence[Point]] = (
    # A head that is bent, the back, and the knees of a person who sits.
    (
        (0.47, 0.3),
        (0.435, 0.24),
        (0.45, 0.155),
        (0.51, 0.135),
        (0.56, 0.18),
        (0.555, 0.25),
        (0.515, 0.305),
        (0.47, 0.3),
    ),
    ((0.475, 0.31), (0.4, 0.4), (0.365, 0.53), (0.38, 0.68), (0.42, 0.8), (0.51, 0.845), (0.66, 0.83), (0.74, 0.8)),
    ((0.52, 0.31), (0.55, 0.38), (0.565, 0.47), (0.6, 0.55), (0.68, 0.545), (0.7, 0.6), (0.66, 0.7), (0.64, 0.83)),
    ((0.44, 0.42), (0.455, 0.53), (0.51, 0.62), (0.6, 0.6), (0.67, 0.555)),
)


def _gradient(top: Colour, bottom: Colour) -> Any:
    """A ground whose colour goes from one at the top to another at the bottom."""
    from PIL import Image

    size = (WIDTH * SMOOTHING, HEIGHT * SMOOTHING)
    ramp: Any = Image.linear_gradient("L")  # the types of Pillow are complete only with numpy
    mask = ramp.resize(size)
    return Image.composite(Image.new("RGB", size, bottom), Image.new("RGB", size, top), mask)


def _glow(picture: Any, center: Point, radius: float, colour: Colour, strength: float) -> None:
    """Light a part of the picture, most at its center."""
    from PIL import Image, ImageOps

    side = round(2 * radius * picture.width)
    spot: Any = ImageOps.invert(Image.radial_gradient("L"))
    light = spot.resize((side, side))
    # The light of the corners and sides is cut off, so that no edge is seen.
    inner = [max(0, level - 75) / 180 for level in range(256)]
    mask = light.point([round(255 * strength * level**1.5) for level in inner])
    corner = (round(center[0] * picture.width - side / 2), round(center[1] * picture.height - side / 2))
    picture.paste(Image.new("RGB", (side, side), colour), corner, mask)


def _blurred(picture: Any) -> Any:
    """A copy of a picture, out of focus. It is blurred while small, since the difference cannot be seen."""
    from PIL import Image, ImageFilter

    small = picture.resize((WIDTH // 4, HEIGHT // 4), Image.Resampling.BOX)
    return small.filter(ImageFilter.GaussianBlur(WIDTH / 460)).resize(picture.size, Image.Resampling.BICUBIC)


def _add_light(picture: Any, light: Any, strength: float) -> None:
    """Add the light of another picture."""
    from PIL import Image, ImageChops

    brighter = light.point([min(255, round(strength * level)) for level in range(256)] * 3)
    picture.paste(ImageChops.add(picture, brighter), (0, 0), Image.new("L", picture.size, 255))


def _pixels(point: Point) -> Point:
    return point[0] * WIDTH * SMOOTHING, point[1] * HEIGHT * SMOOTHING


def _circle(pen: Any, center: Point, radius: float, colour: Colour) -> None:
    """Draw a circle. The radius is a part of the width of the picture."""
    x, y = _pixels(center)
    far = radius * WIDTH * SMOOTHING
    pen.ellipse((x - far, y - far, x + far, y + far), fill=colour)


def _polygon(pen: Any, points: Sequence[Point], colour: Colour) -> None:
    pen.polygon([_pixels(point) for point in points], fill=colour)


def _stroke(pen: Any, points: Sequence[Point], width: float, colour: Colour) -> None:
    """Draw a line with round joints and ends. The width is a part of the width of the picture."""
    pixels = round(width * WIDTH * SMOOTHING)
    pen.line([_pixels(point) for point in points], fill=colour, width=pixels, joint="curve")
    for point in (points[0], points[-1]):
        _circle(pen, point, width / 2, colour)


def _house(left: float, width: float, roof: float, *, gabled: bool) -> list[Point]:
    right = left + width
    top = [(left, roof), (left + width / 2, roof - 0.06), (right, roof)] if gabled else [(left, roof), (right, roof)]
    return [(left, 1.0), *top, (right, 1.0)]


def _windows(
    pen: Any, rng: random.Random, left: float, width: float, roof: float, colour: Colour, *, share: float
) -> None:
    """Draw the windows of a house. `share`: how many of them are lit."""
    columns = max(2, int(width / 0.028))
    step = width / columns
    for row in range(int((1 - roof) / 0.055)):
        for column in range(columns):
            if rng.random() < share:
                x, y = left + (column + 0.32) * step, roof + 0.025 + row * 0.055
                corner, far = _pixels((x, y)), _pixels((x + 0.36 * step, y + 0.024))
                pen.rectangle((*corner, *far), fill=colour)


def _pebble(rng: random.Random, center: Point, size: float) -> list[Point]:
    """A round shape whose edge swings a little."""
    swings = [(number, rng.uniform(0.02, 0.09), rng.uniform(0, math.tau)) for number in (2, 3, 4)]
    points: list[Point] = []
    for step in range(180):
        angle = math.tau * step / 180
        far = size / 2 * (1 + sum(swing * math.sin(number * angle + phase) for number, swing, phase in swings))
        points.append((center[0] + far * math.cos(angle), center[1] + far * math.sin(angle) * WIDTH / HEIGHT))
    return points


def _leaf(pen: Any, root: Point, angle: float, length: float, colour: Colour) -> None:
    """Draw a stem with leaflets on both sides, which become shorter to the tip."""
    for number in range(7):
        along = (number + 1) / 8
        base = _moved(root, angle, length * along)
        for side in (-1, 1):
            _polygon(pen, _leaflet(base, angle + side * 0.85, length * 0.34 * (1.15 - along)), colour)
    _polygon(pen, _leaflet(_moved(root, angle, length * 0.86), angle, length * 0.24), colour)
    _stroke(pen, [root, _moved(root, angle, length)], 0.005, colour)


def _leaflet(base: Point, angle: float, length: float) -> list[Point]:
    points: list[Point] = []
    for side in (1, -1):
        for step in range(21)[::side]:
            along = step / 20
            wide = side * 0.2 * length * math.sin(math.pi * along) ** 0.8
            points.append(_moved(_moved(base, angle, length * along), angle + math.pi / 2, wide))
    return points


def _moved(point: Point, angle: float, far: float) -> Point:
    """A point beside another one. `far` is a part of the width of the picture."""
    return point[0] + far * math.cos(angle), point[1] + far * math.sin(angle) * WIDTH / HEIGHT


def _hill(rng: random.Random, top: float) -> list[Point]:
    waves = [(rng.uniform(0.6, 2.2), rng.uniform(0.012, 0.035), rng.uniform(0, math.tau)) for _ in range(3)]
    line = [
        (x / 100, top + sum(high * math.sin(math.tau * often * x / 100 + phase) for often, high, phase in waves))
        for x in range(101)
    ]
    return [(0.0, 1.0), *line, (1.0, 1.0)]


def _smooth(points: Sequence[Point]) -> list[Point]:
    """A curve through points (Catmull and Rom's)."""
    padded = [points[0], *points, points[-1]]
    curve: list[Point] = []
    for before, start, end, after in zip(padded, padded[1:], padded[2:], padded[3:], strict=False):
        for step in range(16):
            t = step / 16
            x, y = (
                0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * b - a - 3 * c + d) * t**3)
                for a, b, c, d in zip(before, start, end, after, strict=True)
            )
            curve.append((x, y))
    return [*curve, points[-1]]
