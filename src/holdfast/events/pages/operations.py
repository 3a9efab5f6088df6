"""What pages ask of the database. Anybody may see an event: its address is what organizers publish."""

from holdfast.events.events.operations import find
from holdfast.events.images.sizes import find_sizes
from holdfast.events.pages import sql
from holdfast.events.pages.model import Content, Organizer, ReadEvent, ReadOrganizer
from holdfast.events.resources import Reader
from holdfast.kit.caller import ADMIN, Caller
from holdfast.kit.problems import NOT_FOUND, refuses

list_prices = sql.list_prices

EVENTS = 20
"""How many events a page of an organizer shows."""


@refuses(NOT_FOUND)
async def read(reader: Reader, caller: Caller, command: ReadEvent) -> Content:
    """Read what the page of an event shows."""
    row = await find(reader, ADMIN, command.event_id)
    besides = await sql.find_besides(reader, command.event_id)
    assert besides
    prices = await sql.list_prices(reader, row.id) if row.pricing_mode == "dynamic" else []
    sizes = await find_sizes(reader, row.image_keys) if row.image_keys else {}
    return Content(row, besides.organizer_name, besides.recurs_from, besides.now, prices, sizes)


@refuses(NOT_FOUND)
async def read_organizer(reader: Reader, caller: Caller, command: ReadOrganizer) -> Organizer:
    """Read the next events of an organizer."""
    found = await sql.find_organizer(reader, command.slug)
    if found is None:
        raise NOT_FOUND(f"No organizer has the slug {command.slug}.")
    cards = await sql.list_upcoming(reader, found.id, command.after, EVENTS + 1)
    shown = cards[:EVENTS]
    photos = [each.photo for each in shown if each.photo]
    sizes = await find_sizes(reader, photos) if photos else {}
    return Organizer(found.name, command.slug, shown, sizes, len(cards) > EVENTS)
