"""Pictures as a camera takes them: of QR codes that are turned, tilted, dim, covered, and of other things."""

import math
import random
from collections.abc import Sequence

import segno
from PIL import Image, ImageChops, ImageDraw, ImageEnhance, ImageFilter, ImageFont, ImageOps

WIDTH, HEIGHT = SIZE = 640, 480
PAPER = 235
MODULE = 8
"""The pixels of a module, before the code is put into a frame."""

LETTERS = "abcdefgh IJKLMNOP |=#OQ08@"


def draw_code(rows: Sequence[Sequence[int]], border: int = 4) -> Image.Image:
    """A code on a sheet of its own."""
    side = len(rows) + 2 * border
    sheet = Image.new("L", (side, side), 255)
    for y, row in enumerate(rows, border):
        for x, dark in enumerate(row, border):
            if dark:
                sheet.putpixel((x, y), 0)
    return ImageOps.scale(sheet, MODULE, Image.Resampling.NEAREST)


def code_rows(code: segno.QRCode) -> list[list[int]]:
    return [list(row) for row in code.matrix]


def photograph_sheet(
    sheet: Image.Image,
    pixels: float = 300,
    turn: float = 0,
    tilt: float = 0,
    axis: float = 0,
    center: tuple[float, float] = (WIDTH / 2, HEIGHT / 2),
) -> Image.Image:
    """A sheet before a wall, by a camera that is twice as far away as the sheet is wide.

    pixels    how wide the sheet is
    turn      degrees, in the plane of the picture
    tilt      degrees, out of the plane of the picture around a line at `axis` degrees
    """
    a, b, c = (math.radians(angle) for angle in (axis, tilt, turn - axis))
    # The columns for x and y of the product of three rotations: around z, around x, and around z.
    x = (
        math.cos(a) * math.cos(c) - math.sin(a) * math.cos(b) * math.sin(c),
        math.sin(a) * math.cos(c) + math.cos(a) * math.cos(b) * math.sin(c),
        math.sin(b) * math.sin(c) / 2,
    )
    y = (
        -math.cos(a) * math.sin(c) - math.sin(a) * math.cos(b) * math.cos(c),
        -math.sin(a) * math.sin(c) + math.cos(a) * math.cos(b) * math.cos(c),
        math.sin(b) * math.cos(c) / 2,
    )
    to_frame = [[pixels * x[i] + center[i] * x[2], pixels * y[i] + center[i] * y[2], center[i]] for i in (0, 1)]
    inverse = adjugate([*to_frame, [x[2], y[2], 1]])
    width, height = sheet.size
    # The matrix is for a sheet from -1/2 to 1/2.
    scaled = [[width * (u + w / 2) for u, w in zip(inverse[0], inverse[2], strict=True)]]
    scaled += [[height * (v + w / 2) for v, w in zip(inverse[1], inverse[2], strict=True)], inverse[2]]
    flat = [number / scaled[2][2] for row in scaled for number in row]
    method, smooth = Image.Transform.PERSPECTIVE, Image.Resampling.BILINEAR
    return sheet.transform(SIZE, method, flat[:8], smooth, fillcolor=PAPER)


def adjugate(matrix: list[list[float]]) -> list[list[float]]:
    (a, b, c), (d, e, f), (g, h, i) = matrix
    return [
        [e * i - f * h, c * h - b * i, b * f - c * e],
        [f * g - d * i, a * i - c * g, c * d - a * f],
        [d * h - e * g, b * g - a * h, a * e - b * d],
    ]


def add_noise(frame: Image.Image, sigma: float) -> Image.Image:
    return ImageChops.add(frame, Image.effect_noise(frame.size, sigma), 1, -128)


def reduce_contrast(frame: Image.Image, contrast: float) -> Image.Image:
    return Image.blend(Image.new("L", frame.size, 125), frame, contrast)


def add_shade(frame: Image.Image, direction: float, darkest: float) -> Image.Image:
    """Light falls on a frame from one side. At the other, there is only a part of it."""
    light = ImageOps.fit(Image.linear_gradient("L").rotate(direction), frame.size)
    return ImageChops.multiply(frame, Image.blend(light, Image.new("L", frame.size, 255), darkest))


def cover_part(sheet: Image.Image, share: float, chance: random.Random) -> Image.Image:
    """A square somewhere between the finder patterns hides a share of the code."""
    modules = sheet.width / MODULE - 8
    side = math.sqrt(share) * modules
    left, top = (MODULE * (4 + chance.uniform(9, modules - 9 - side)) for _ in range(2))
    ImageDraw.Draw(sheet).rectangle(
        (left, top, left + side * MODULE, top + side * MODULE), fill=chance.choice((0, 128, 255))
    )
    return sheet


def blur_frame(frame: Image.Image, radius: float) -> Image.Image:
    return frame.filter(ImageFilter.GaussianBlur(radius))


def page_of_text(chance: random.Random, height: int, size: tuple[int, int] = SIZE) -> Image.Image:
    page = Image.new("L", size, 250)
    pen, font = ImageDraw.Draw(page), ImageFont.load_default(height)
    for y in range(0, size[1], height + 4):
        pen.text((5, y), "".join(chance.choices(LETTERS, k=3 * size[0] // height)), fill=10, font=font)
    return page


def frames_without_code(chance: random.Random) -> list[Image.Image]:
    """200 frames: noise, text, and what looks much like a code."""
    grain = [Image.effect_noise((2 * WIDTH, 2 * HEIGHT), sigma) for sigma in (4, 30, 100)]
    pages = [page_of_text(chance, height) for height in (8, 13, 22, 40)]
    frames: list[Image.Image] = []
    for i in range(50):
        left, top = chance.randrange(WIDTH), chance.randrange(HEIGHT)
        frames.append(grain[i % 3].crop((left, top, left + WIDTH, top + HEIGHT)))
        frames.append(raise_contrast(blur_frame(grain[2].crop((left, top, left + WIDTH, top + HEIGHT)), 1 + i / 10)))
        frames.append(pages[i % 4].rotate(7 * i, fillcolor=PAPER))
        frames.append(
            photograph_sheet(draw_code(meaningless_rows(1 + i % 15, chance)), 340, turn=11 * i, tilt=20, axis=30 * i)
        )
    return frames


def raise_contrast(frame: Image.Image) -> Image.Image:
    return ImageEnhance.Contrast(frame).enhance(8)


def meaningless_rows(version: int, chance: random.Random) -> list[list[int]]:
    """All patterns of a version, and chance for data."""
    code = code_rows(segno.make("1", version=version, error="l", micro=False))
    for y in range(9, len(code)):
        for x in range(9, len(code)):
            if y < len(code) - 9 or x < len(code) - 9:
                code[y][x] = chance.randrange(2)
    return code
