"""The public streams of an event: its numbers at once, and then each change.

GET /events/{event_id}/stream          for its page
GET /events/{event_id}/embed/stream    for its form in a frame

Every change is announced to all processes. It is read once for all readers of an event, and the parts of the page that
it changes are rendered once for each language in which the event is watched.
"""

import asyncio
import datetime as dt
import time
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from holdfast.events.events.model import CHANGE_CHANNEL, STATUS, EventStatus, is_public
from holdfast.events.pages.model import Opening, PlaceCounts
from holdfast.events.pages.registration.form import ReleaseCookie, form_of, half_hour_number
from holdfast.events.pages.sql import DETAILS, NUMBERED_COUNT, OPENING, read_opening
from holdfast.events.paths import id_of
from holdfast.events.pricing.model import PricingMode
from holdfast.events.processor.currencies import digits
from holdfast.events.queues.event_queue import EVENT_QUEUE, read_event_queue
from holdfast.events.queues.event_releases import ReleaseTokenReader
from holdfast.events.resources import Database, Reader
from holdfast.events.site import SITE
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.client import address, create_shared_task
from holdfast.kit.contract.problems import NOT_FOUND, Problem
from holdfast.kit.http.event_streams import (
    EndOfStream,
    EventStream,
    Feed,
    StreamOwner,
    Streams,
    encode_event,
    encode_notice,
    encode_retry,
)
from holdfast.kit.http.handler import Access, Handler, Reply, Request, envelope
from holdfast.kit.http.index import Route
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.pages.language import Language, language_of
from holdfast.kit.postgres.announced_changes import AnnouncedChanges

POLL_SECONDS = 2.0
"""Seconds from one read of all watched events to the next: it finds events that have begun, and lost notices."""

TTL_SECONDS = 1.0
"""Seconds for which the numbers of an event without readers are used for a new reader."""

IDLE_SECONDS = 10.0
"""Seconds after which an event without readers is dropped."""

NOT_IN_MESSAGES = ("details", "version", "numbered", "datetime", "cancellation_hours")
"""Facts of which messages tell nothing. If `details` change, pages fetch themselves."""


class LiveEventFacts(Struct, PlaceCounts, frozen=True):
    """What changes on the page of an event while people look at it.

    details    a text that changes with what is not a number: the title, the text, when and where, the photos
    version    the same without the text, as a hash: the page has it too
    numbered   how many registrations are numbered in its public log; None: it has none. It alone is no change: else
               rejections would send messages to a whole crowd while all places are taken.
    opening    the draw with which it opens, as `OPENING` gives it
    queue      the waiting room before it, as `EVENT_QUEUE` gives it
    """

    id: int
    status: EventStatus
    pricing_mode: PricingMode
    current_price: int | None
    min_price: int | None
    max_price: int | None
    currency: str
    capacity: int
    registered_count: int
    waitinglist_capacity: int
    waitlisted_count: int
    seats_passed_on: int
    payouts_ready: bool
    refund_days: int
    details: str
    version: str
    numbered: int | None
    datetime: dt.datetime
    timezone: str | None
    cancellation_hours: int
    opening: Any
    queue: Any

    @property
    def is_closed(self) -> bool:
        return self.status in ("cancelled", "expired")

    def is_same(self, other: "LiveEventFacts", *, except_for: Sequence[str]) -> bool:
        """Whether all facts are the same, except for the named ones."""
        return msgspec.structs.replace(other, **{name: getattr(self, name) for name in except_for}) == self


class RenderedPart(NamedTuple):
    """A part of the page. `version` differs if the part looks different, also when its HTML has a token in it."""

    version: str
    html: str


class StreamMessage(Struct, omit_defaults=True):
    """The data of an event of the stream.

    price                  in minor units of the currency; none for a free event
    left, room, waiting    free seats, free places on the waiting list, people on the waiting list
    spread                 the seconds in which pages that show one person fetch themselves, each at a random moment
    html                   the parts of the page that differ from those of the last message
    version                for a new reader: a page with another one is older than the numbers, and fetches itself
    """

    status: EventStatus
    left: int
    room: int
    waiting: int
    price: int | None
    currency: str | None
    spread: float | None = None
    html: str = ""
    version: str = ""


class WatchedEvent:
    """The facts of one event, and the messages for its readers in one language.

    framed         whether the form is in a frame of another site
    is_released    whether its readers are visitors whom the waiting room before the event has released
    """

    def __init__(self, event_id: int, language: Language, *, framed: bool, is_released: bool) -> None:
        self.event_id = event_id
        self.language = language
        self.framed = framed
        self.is_released = is_released
        self.feed: Feed[bytes] = Feed()
        self.reading: asyncio.Task[None] | None = None
        self.read_at = float("-inf")
        self.used_at = time.monotonic()
        self.facts: LiveEventFacts | None = None
        self.half_hour_number = 0
        self._rendered_parts: Mapping[str, RenderedPart] = {}

    @property
    def is_fresh(self) -> bool:
        """Whether a new reader can have the facts: notices and polls keep those that have readers up to date."""
        return self.facts is not None and (self.feed.has_readers or time.monotonic() < self.read_at + TTL_SECONDS)

    @property
    def is_idle(self) -> bool:
        return not self.feed.has_readers and time.monotonic() > self.used_at + IDLE_SECONDS

    def show(self, facts: LiveEventFacts, parts: Mapping[str, RenderedPart]) -> None:
        """Publish new facts, and those parts of the page that look different."""
        versions = {name: part.version for name, part in self._rendered_parts.items()}
        changed_html = "".join(part.html for name, part in parts.items() if versions.get(name) != part.version)
        before, self.facts, self._rendered_parts = self.facts, facts, parts
        if before is None:
            self.feed.restart(1)
        elif not facts.is_same(before, except_for=("numbered",)):
            is_same = facts.is_same(before, except_for=NOT_IN_MESSAGES)
            chunk = b"" if is_same else self._message(changed_html)
            if before.details != facts.details and not (self.framed or facts.is_closed):
                # More than numbers has changed: pages fetch themselves.
                chunk += encode_notice("changed", self.feed)
            self.feed.publish(self.feed.position + 1, chunk)

    def withdraw(self) -> None:
        """End the streams of an event that is not public, or not any more."""
        self.facts, self._rendered_parts = None, {}
        self.feed.wake()

    def snapshot(self) -> bytes:
        """The numbers and all parts, for a reader that has none yet."""
        assert self.facts
        html = "".join(part.html for part in self._rendered_parts.values())
        return self._message(html, "" if self.framed else self.facts.version)

    def _message(self, html: str, version: str = "") -> bytes:
        facts = self.facts
        assert facts
        is_free = facts.pricing_mode == "free"
        message = StreamMessage(
            facts.status,
            facts.left,
            facts.waitlist_left,
            facts.waitlisted_count,
            None if is_free else facts.current_price,
            None if is_free else facts.currency,
            self.feed.spread_seconds,
            html,
            version,
        )
        return encode_event(msgspec.json.encode(message), name="numbers")


class LiveEvents:
    """The watched events of this process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._settings, self._secret = database.resources.settings, database.resources.secret
        self._watched: dict[int, list[WatchedEvent]] = {}
        self._changes = AnnouncedChanges(database, [CHANGE_CHANNEL], self._is_watched, self._update, POLL_SECONDS)
        self.listening: Callable[[], AbstractContextManager[None]] = self._changes.listening

    def _is_watched(self, event_id: int | None) -> bool:
        return bool(self._watched) if event_id is None else event_id in self._watched

    async def watch(
        self, event_id: int, language: Language, *, framed: bool, is_released: bool = False
    ) -> WatchedEvent:
        """The present facts of an event, for a new reader. Raises `not_found`."""
        event = self._find(event_id, language, framed=framed, is_released=is_released)
        event.used_at = time.monotonic()
        if not event.is_fresh or self._changes.is_pending(event_id):
            if event.reading is None or event.reading.done():
                event.reading = create_shared_task(self._read({event_id}), name=f"read of event {event_id}")
                event.reading.add_done_callback(_retrieve_error)
            # If one waiting request is cancelled, the others still get the facts.
            await asyncio.shield(event.reading)
        if event.facts is None:
            self._watched.pop(event_id, None)
            raise NOT_FOUND(f"No event has the id {event_id}.")
        return event

    def _find(self, event_id: int, language: Language, *, framed: bool, is_released: bool) -> WatchedEvent:
        events = self._watched.setdefault(event_id, [])
        for event in events:
            if (event.language, event.framed, event.is_released) == (language, framed, is_released):
                return event
        events.append(WatchedEvent(event_id, language, framed=framed, is_released=is_released))
        return events[-1]

    async def _update(self, event_ids: Set[int] | None) -> None:
        for event_id, events in [*self._watched.items()]:
            events[:] = [event for event in events if not event.is_idle]
            if not events:
                del self._watched[event_id]
        ids = self._watched.keys() if event_ids is None else event_ids & self._watched.keys()
        if ids:
            await self._read(ids)

    async def _read(self, event_ids: Set[int]) -> None:
        """Read the facts of events, and publish what has changed. The streams of events that are not public end."""
        started_at = time.monotonic()
        rows = await self._database.read(lambda reader: find_facts(reader, [*event_ids]))
        facts_by_id = {facts.id: facts for facts in rows}
        for event_id in event_ids:
            facts = facts_by_id.get(event_id)
            for event in self._watched.get(event_id, ()):
                if event.read_at > started_at:
                    # Another read began later and ended earlier. It is not known which of them is newer.
                    self._changes.announce(str(event.event_id))
                    continue
                event.read_at = started_at
                if facts is None:
                    event.withdraw()
                # The form is valid for two hours, so it is rendered again from time to time.
                elif facts != event.facts or event.half_hour_number != half_hour_number():
                    event.half_hour_number = half_hour_number()
                    event.show(facts, self._render_parts(facts, event))

    def _render_parts(self, facts: LiveEventFacts, watched: WatchedEvent) -> Mapping[str, RenderedPart]:
        """Render the parts of the page that change. They are given by name."""
        language, framed = watched.language, watched.framed
        form = form_of(
            facts,
            self._settings,
            self._secret,
            language,
            refund_days=facts.refund_days,
            queue=read_event_queue(facts.queue),
            is_released=watched.is_released,
            framed=framed,
        )
        values: dict[str, Any] = {
            "event": facts,
            "closed": facts.is_closed,
            "left": facts.left,
            "waitlist_left": facts.waitlist_left,
            "digits": digits(facts.currency),
            "numbered": facts.numbered,
            "opening": read_opening(facts.opening),
            "zone": facts.timezone or "UTC",
            "form": form,
            "framed": framed,
        }
        names = ("places", "fair_order") if framed else ("places", "register_bar", "fair_order")
        html = {name: SITE.render(f"pages/event/{name}.html", language=language, **values) for name in names}
        form_html = SITE.render("pages/registration/form_part.html", language=language, **values)
        # The HTML of the form has a token, which differs each time.
        opening: Opening | None = values["opening"]
        form_versions = [form.status, opening and opening.status, form.price, form.status == "queue" and facts.queue]
        form_part = RenderedPart(repr(form_versions), form_html)
        return {**{name: RenderedPart(html[name], html[name]) for name in names}, "form_part": form_part}


def _retrieve_error(task: asyncio.Task[None]) -> None:
    """Retrieve the error of a read, so that asyncio does not log it if no request waits any more."""
    if not task.cancelled():
        task.exception()


async def find_facts(reader: Reader, event_ids: Sequence[int]) -> list[LiveEventFacts]:
    """The facts of those events that exist and are public."""
    return await reader.rows(
        LiveEventFacts,
        f"""
        select events.id, {STATUS} as status, events.pricing_mode, events.current_price,
               events.min_price, events.max_price, events.currency, events.capacity, events.registered_count,
               events.waitinglist_capacity, events.waitlisted_count, events.seats_passed_on, organizers.payouts_ready,
               coalesce(rule.refund_days, 0) as refund_days,
               concat_ws('.', texts.version, {DETAILS}) as details, md5({DETAILS}) as version,
               ({NUMBERED_COUNT}) as numbered, events.datetime, events.timezone,
               events.cancellation_hours, {OPENING} as opening, {EVENT_QUEUE} as queue
          from events
          join users as organizers on organizers.id = events.organizer_id
          left join lateral (select refund_days from payout_accounts
                              where organizer_id = organizers.id and is_confirmed limit 1) as rule on true
          left join lateral (select xmin::text as version from event_texts
                              where event_id = events.id limit 1) as texts on true
         where events.id = any(%(event_ids)s) and {is_public()}
        """,
        {"event_ids": list(event_ids)},
    )


def routes(
    database: Database, limits: Limits, live_events: LiveEvents, streams: Streams, reader: ReleaseTokenReader
) -> Sequence[Route]:
    is_secure = database.resources.settings.base_url.startswith("https://")

    def route(path: str, name: str, *, framed: bool) -> Route:
        cookie = ReleaseCookie(reader, is_secure=is_secure, framed=framed)

        async def answer(_: Caller, request: Request) -> Reply:
            return await open_stream(request, live_events, streams, cookie, framed=framed)

        return Route(path, Handler(Access(name), limits, answer, envelope(Problem.body), methods=("GET",)))

    return [
        route("/events/{event_id}/stream", "event_stream", framed=False),
        route("/events/{event_id}/embed/stream", "framed_event_stream", framed=True),
    ]


async def open_stream(
    request: Request, live_events: LiveEvents, streams: Streams, cookie: ReleaseCookie, *, framed: bool
) -> Reply:
    """Open a stream. Raises `not_found`, `rate_limited`, and `service_unavailable`."""
    owners: Mapping[StreamOwner, object] = {"address": address(request.scope)}
    event_id = id_of(request.fields["event_id"])
    event = await live_events.watch(event_id, language_of(request), framed=framed)
    if (
        event.facts
        and (queue := read_event_queue(event.facts.queue))
        and not event.facts.is_closed
        and await cookie.read(request, queue.id)
    ):
        event = await live_events.watch(event_id, language_of(request), framed=framed, is_released=True)
    position, start = -1, encode_retry()

    async def pending() -> bytes:
        nonlocal position, start
        if event.facts is None:
            # It is not public any more. The page fetches itself, and is not found.
            raise EndOfStream(start + (b"" if framed else encode_notice("changed", event.feed)))
        messages = event.feed.since(position)
        position = event.feed.position
        chunk = start + (event.snapshot() if messages is None else b"".join(messages))
        start = b""
        if event.facts.is_closed:
            # Nothing will change any more.
            raise EndOfStream(chunk + encode_notice("end", event.feed))
        return chunk

    streams.require_room(owners)
    return EventStream(200, streams=streams, name="event", feed=event.feed, pending=pending, owners=owners)
