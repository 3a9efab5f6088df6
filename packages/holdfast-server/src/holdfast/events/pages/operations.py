"""The read operations of the public pages. None of them finds an event that is not public."""

from collections.abc import Sequence

from holdfast.events.pages import sql
from holdfast.events.pages.model import (
    EventCard,
    EventContent,
    FeedContent,
    OrganizerContent,
    ReadEvent,
    ReadFeed,
    ReadOrganizer,
)
from holdfast.events.photos.sizes import find_sizes
from holdfast.events.pricing.operations import list_price_points
from holdfast.events.queues.event_queue import read_event_queue
from holdfast.events.resources import Reader
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND, Problem, refuses
from holdfast.kit.operations.operation import Batch

PAGE_SIZE = 20
"""The most events on one page of an organizer."""

MAX_PAST_EVENTS = 6
"""The most past events below the next ones."""

FEED_SIZE = 200
"""The most events in a feed."""


@refuses(NOT_FOUND)
async def read(reader: Reader, batch: Batch[ReadEvent]) -> Sequence[EventContent | Problem]:
    """Read the content of the pages of events."""
    events = await sql.find_events(reader, {call.command.event_id for call in batch.calls})
    dynamic_ids = [row.id for row, _ in events.values() if row.pricing_mode == "dynamic"]
    prices = await list_price_points(reader, dynamic_ids) if dynamic_ids else {}
    keys = {key for row, _ in events.values() for key in row.image_keys}
    sizes = await find_sizes(reader, keys) if keys else {}

    def content_of(command: ReadEvent) -> EventContent | Problem:
        row, extras = events.get(command.event_id, (None, None))
        if row is None or extras is None or not (row.is_public or command.is_preview):
            return NOT_FOUND(f"No event has the id {command.event_id}.")
        return EventContent(
            row,
            extras.text,
            extras.organizer_name,
            extras.accent,
            extras.logo,
            extras.recurs_from,
            extras.now,
            prices.get(row.id, []),
            {key: sizes[key] for key in row.image_keys if key in sizes},
            extras.version,
            extras.numbered,
            sql.read_opening(extras.opening),
            read_event_queue(extras.queue),
            extras.check,
            extras.refund_days,
        )

    return [content_of(call.command) for call in batch.calls]


@refuses(NOT_FOUND)
async def read_organizer(reader: Reader, caller: Caller, command: ReadOrganizer) -> OrganizerContent:
    """Read the next events of an organizer, and the last of those that are past."""
    organizer = await _find_organizer(reader, command.slug)
    events: list[EventCard] = []
    past: list[EventCard] = []
    past_limit = PAGE_SIZE if command.before else MAX_PAST_EVENTS
    if not command.before:
        events = await sql.list_upcoming(reader, organizer.id, command.after, PAGE_SIZE + 1)
    if not command.after:
        past = await sql.list_past(reader, organizer.id, command.before, past_limit + 1)
    photos = [card.photo for card in (*events[:PAGE_SIZE], *past[:past_limit]) if card.photo]
    sizes = await find_sizes(reader, photos) if photos else {}
    return OrganizerContent(
        organizer.name,
        command.slug,
        organizer.about,
        organizer.accent,
        organizer.logo,
        events[:PAGE_SIZE],
        past[:past_limit],
        sizes,
        len(events) > PAGE_SIZE,
        len(past) > past_limit,
    )


@refuses(NOT_FOUND)
async def read_feed(reader: Reader, caller: Caller, command: ReadFeed) -> FeedContent:
    """Read the events in the feeds of an organizer."""
    organizer = await _find_organizer(reader, command.slug)
    events = await sql.list_for_feeds(reader, organizer.id, FEED_SIZE)
    return FeedContent(organizer.name, command.slug, events, await sql.now(reader))


async def _find_organizer(reader: Reader, slug: str) -> sql.OrganizerRow:
    if organizer := await sql.find_organizer(reader, slug):
        return organizer
    raise NOT_FOUND(f"No organizer has the slug {slug}.")
