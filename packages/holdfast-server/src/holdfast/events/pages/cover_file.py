"""The covers of events as PNG files, `/events/<event_id>/cover-<version>.png`: the preview images of links.

Pillow is imported only by this module, and this module only when a first cover is drawn.
"""

import asyncio
from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from typing import Any

from cachetools import TTLCache
from PIL import Image, ImageColor, ImageDraw, ImageFont

from holdfast.events.pages.cover import HEIGHT, WIDTH, Palette, cover_path, draw_cover
from holdfast.events.pages.event.cache import LinkedEvent
from holdfast.events.paths import id_of
from holdfast.events.texts.markdown import one_line
from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND
from holdfast.kit.http.handler import NOSNIFF, Access, Reply, Request
from holdfast.kit.postgres.lookup_cache import LookupCache
from holdfast.kit.running.slots import Slots

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


MAX_CACHED_COVERS = 100
"""Covers have about 20 kB."""

CACHE_TTL_SECONDS = 3600

MAX_WAITING = 20
"""The most requests for covers of one organizer that wait, or from one address. Each takes about 0.3 seconds."""

WAIT_SECONDS = 20
"""The most seconds that a request waits for a cover."""

HEADERS = [(b"cache-control", b"public, max-age=604800, immutable"), NOSNIFF]

COVERS = Bound(
    name="Covers of events that are drawn",
    service="events",
    total="1",
    tenant=f"1, in turns; {MAX_WAITING} wait",
    address=f"1, in turns for one organizer; {MAX_WAITING} wait",
    reserved="-",
    stranger="Each cover of another organizer waits one turn, about 0.3 seconds.",
)
COVERS_OF_ADDRESS = Bound(
    name="Requests for covers that are not drawn yet",
    service="events",
    total="none",
    tenant="none",
    address=f"1; {MAX_WAITING} wait, also of a /48",
    reserved="-",
    stranger=f"The {MAX_CACHED_COVERS} covers that are kept are drawn again, which takes time.",
)


class CoverImage:
    """Answers requests for covers. Each is drawn once; of several, one at a time, in turns of organizers."""

    access = Access("cover")

    def __init__(self, linked_events: LookupCache[int, LinkedEvent]) -> None:
        self._linked_events = linked_events
        # A cover contains a title, which is not kept for long after its event has gone.
        self._drawn: TTLCache[str, bytes] = TTLCache(MAX_CACHED_COVERS, CACHE_TTL_SECONDS)
        # A visitor who asks for covers of many organizers has one turn, too.
        self._of_address = Slots(COVERS_OF_ADDRESS, 1, timeout=WAIT_SECONDS, max_waiting=MAX_WAITING)
        self._of_organizer = Slots(COVERS, 1, timeout=WAIT_SECONDS, max_waiting=MAX_WAITING)

    async def answer(self, caller: Caller, request: Request) -> Reply:
        """The cover of an event whose organizer has confirmed its address. Raises `not_found`."""
        fields = request.fields
        event = (await self._linked_events.get(id_of(fields["event_id"]))).event
        title = one_line(event.title)
        if not event.is_confirmed or request.path != cover_path(event.id, title):
            raise NOT_FOUND()
        content = self._drawn.get(title) or await self._draw(caller, event.organizer_slug, title)
        return Reply(200, content, HEADERS, b"image/png")

    async def _draw(self, caller: Caller, organizer: str, title: str) -> bytes:
        """Draw a cover in the turn of its organizer. Raises `service_unavailable` if many wait, and `client_gone`."""
        address = caller.owner[1:]
        async with self._of_address.of(address), self._of_organizer.of(("covers", organizer, *address)):
            content = self._drawn.get(title)
            if content is None:
                content = self._drawn[title] = await asyncio.to_thread(_draw, title)
            return content


def _draw(title: str) -> bytes:

    return cover_png(title)
