"""The operations on events."""

from collections.abc import Mapping, Sequence, Set

import msgspec
from msgspec import UNSET

from holdfast.events.draws.drawing import name_draw
from holdfast.events.draws.model import DRAW_IS_FIXED, LOG_IS_NEEDED
from holdfast.events.events import sql, text
from holdfast.events.events.model import (
    CHANGE_CHANNEL,
    ENDS_TOO_EARLY,
    HALF_PIN,
    OPENS_BEFORE,
    OPENS_TOO_LATE,
    PAST_DATE,
    CancelEvent,
    CreateEvent,
    Event,
    EventRow,
    GetEvent,
    UpdateEvent,
    is_in_order,
    moved_end,
    to_api,
)
from holdfast.events.organizers.operations import owner
from holdfast.events.photos import acceptance
from holdfast.events.pricing.model import Reason, errors_of_bounds, errors_of_price, first_price
from holdfast.events.pricing.operations import begin_again, record_first_prices, reprice
from holdfast.events.problems import EVENT_HAS_REGISTRATIONS, QUOTA_EXCEEDED
from holdfast.events.resources import Conclusion, Reader, Steps, Tx
from holdfast.events.seats import held_seats, settlement
from holdfast.events.texts.rendered_text import RenderedText
from holdfast.events.users.model import ORGANIZER_CHANNEL
from holdfast.events.users.quotas import require_quota
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Errors, sent_fields
from holdfast.kit.contract.messages import message
from holdfast.kit.contract.problems import (
    FORBIDDEN,
    NOT_FOUND,
    RATE_LIMITED,
    VALIDATION_FAILED,
    Problem,
    invalid,
    refuses,
)
from holdfast.kit.operations.operation import Batch
from holdfast.kit.postgres.pagination import OffsetPage, Page

EDITABLE = (
    *("title", "body", "datetime", "ends_at", "address", "location_name", "latitude", "longitude", "image_keys"),
    *("timezone", "cancellation_hours"),
    *("price", "min_price", "max_price", "capacity", "waitinglist_capacity"),
    *("recurrence_frequency", "recurrence_interval", "published", "public_log"),
)
UNCHANGEABLE = ("pricing_mode", "currency")

_UNKNOWN_ORGANIZER = message("no organizer has this id")


async def list(reader: Reader, caller: Caller, command: OffsetPage) -> Page[Event]:
    """List events, oldest first, cancelled and past ones included."""
    page = await sql.list_events(reader, caller.tenant_id, command)
    return Page([to_api(row, reader.resources.settings) for row in page.data], page.pagination)


@refuses(NOT_FOUND, FORBIDDEN)
async def get(reader: Reader, batch: Batch[GetEvent]) -> Sequence[Event | Problem]:
    """Read one event, with its registration count and current price."""
    rows = await sql.find_events(reader, {call.command.event_id for call in batch.calls})
    events = {id: to_api(row, reader.resources.settings) for id, row in rows.items()}
    return [
        _access_problem(call.caller, id := call.command.event_id, rows.get(id)) or events[id] for call in batch.calls
    ]


@refuses(FORBIDDEN, VALIDATION_FAILED, QUOTA_EXCEEDED, RATE_LIMITED)
async def create(steps: Steps, caller: Caller, command: CreateEvent) -> Conclusion[Event]:
    """Create an event. It takes registrations at once.

    Publish its `public_url`, `embed_url` or `embed_code`.
    """
    html = await prepare(steps, caller, command)
    return await steps.conclude(lambda tx: publish(tx, caller, command, html))


async def prepare(steps: Steps, caller: Caller, command: CreateEvent) -> RenderedText:
    """Accept the photos of an event, and render its text. Raises `validation_failed`."""
    uploads = await acceptance.find_uploads(steps, caller, command.image_keys)
    if uploads or text.takes_long(command.body):
        organizer_id = owner(caller, command.organizer_id)
        await steps.read(lambda reader: _require_keys(reader, caller, organizer_id, command.image_keys))
    await _accept_uploads(steps, caller, uploads)
    return await text.render(steps, caller, command.body)


async def publish(tx: Tx, caller: Caller, command: CreateEvent, html: RenderedText | None) -> Event:
    """Create an event whose photos are accepted.

    html    its text as HTML; None: it is rendered when the event is first shown
    """
    organizer_id = owner(caller, command.organizer_id)
    if unknown := await acceptance.unknown_key_errors(tx, caller, organizer_id, command.image_keys):
        raise invalid({"image_keys": unknown})
    limit = tx.resources.settings.events_per_organizer
    await require_quota(tx, organizer_id, message("events that are neither cancelled nor over"), limit, sql.COUNT_OPEN)
    await _require_quota_of_text(tx, organizer_id)
    first = first_price(command.pricing_mode, command.price, command.min_price, command.max_price, command.currency)
    public_log = command.public_log and tx.resources.settings.public_logs
    draw = await name_draw(tx, "opens_at", command.opens_at, is_logged=public_log)
    takes_entries = command.opens_at is not None
    columns = {**msgspec.structs.asdict(command), "current_price": first, "public_log": public_log, **draw}
    id = await sql.insert_event(tx, {**columns, "organizer_id": organizer_id, "takes_entries": takes_entries})
    if id is None:
        raise invalid({"organizer_id": [_UNKNOWN_ORGANIZER]})
    if html:
        await text.store(tx, id, command.body, html)
    await record_first_prices(tx, [id])
    await tx.notify(CHANGE_CHANNEL, str(id))
    return await _present_stored(tx, id)


@refuses(NOT_FOUND, FORBIDDEN, VALIDATION_FAILED, QUOTA_EXCEEDED, RATE_LIMITED, EVENT_HAS_REGISTRATIONS)
async def update(steps: Steps, caller: Caller, command: UpdateEvent) -> Conclusion[Event]:
    """Change an event. A cancelled one stays cancelled.

    New seats of a higher `capacity` go to the waiting list. A dynamic price goes on from the new `price` and bounds. A
    new `datetime` alone moves `ends_at` by as much.
    """
    html = await prepare_change(steps, caller, command)
    return await steps.conclude(lambda tx: change(tx, caller, command, html))


async def prepare_change(steps: Steps, caller: Caller, command: UpdateEvent) -> RenderedText | None:
    """Accept the new photos of an event, and render its new text if there is one. Raises `validation_failed`."""
    body = None if command.body is UNSET else command.body
    keys = [] if command.image_keys is UNSET else command.image_keys
    uploads = await acceptance.find_uploads(steps, caller, keys)
    if uploads or (body is not None and text.takes_long(body)):
        await steps.read(lambda reader: _require_possible(reader, caller, command))
    await _accept_uploads(steps, caller, uploads)
    return None if body is None else await text.render(steps, caller, body)


async def _accept_uploads(steps: Steps, caller: Caller, uploads: Sequence[str]) -> None:
    """Make photos of uploads. Raises `rate_limited` and `validation_failed`."""
    if uploads:
        await steps.resources.limits.admit("photos", caller)
        await acceptance.accept_uploads(steps, caller, uploads)


async def _require_keys(reader: Reader, caller: Caller, organizer_id: int, keys: Sequence[str]) -> None:
    """Raise `validation_failed` if an organizer's event cannot show photos with these keys."""
    if unknown := await acceptance.foreign_key_errors(reader, caller, organizer_id, keys):
        raise invalid({"image_keys": unknown})


async def _require_possible(reader: Reader, caller: Caller, command: UpdateEvent) -> None:
    """Check what costs little before anything is decoded or rendered for a change of an event; `change` checks all.

    Raises `not_found`, `forbidden` and `validation_failed`.
    """
    before = await find(reader, caller, command.event_id)
    after = msgspec.structs.replace(before, **sent_fields(command, *EDITABLE))
    if command.ends_at is UNSET:
        after.ends_at = moved_end(before.ends_at, before.datetime, after.datetime)
    organizer_id = before.organizer_id if command.organizer_id is UNSET else owner(caller, command.organizer_id)
    new_keys = [key for key in after.image_keys if key not in before.image_keys]
    # A draw is looked at in the transaction, and what depends on it.
    errors = _refused_changes(command, before, after) if command.opens_at is UNSET else {}
    if unknown := await acceptance.foreign_key_errors(reader, caller, organizer_id, new_keys):
        errors["image_keys"] = unknown
    if errors:
        raise invalid(errors)


async def change(tx: Tx, caller: Caller, command: UpdateEvent, html: RenderedText | None) -> Event:
    """Change an event. `html`: its new text as HTML; None: its text stays."""
    if command.published is False or command.public_log is False:
        await sql.lock_out_registrations(tx, command.event_id)
    before = await lock(tx, caller, command.event_id)
    if before.public_log and command.public_log is False:
        # People with a promise of the log are in it before it is closed.
        await settlement.settle_event(tx, before.id)
        before = await lock(tx, caller, command.event_id)
    after = msgspec.structs.replace(before, **sent_fields(command, *EDITABLE))
    after.public_log = after.public_log and (before.public_log or tx.resources.settings.public_logs)
    after = await _change_draw(tx, command, before, after)
    if command.ends_at is UNSET:
        after.ends_at = moved_end(before.ends_at, before.datetime, after.datetime)
    if command.organizer_id is not UNSET:
        after.organizer_id = owner(caller, command.organizer_id)
    if caller.is_agent and not command.ends_registration:
        await _require_date_ahead(tx, before, after)
    new_keys = [key for key in after.image_keys if key not in before.image_keys]
    errors = _refused_changes(command, before, after)
    if unknown := await acceptance.unknown_key_errors(tx, caller, after.organizer_id, new_keys):
        errors["image_keys"] = unknown
    if errors:
        raise invalid(errors)
    if before.published and not after.published:
        await _require_no_registrations(tx, before.id)
    if _text_length(after) > _text_length(before):
        await _require_quota_of_text(tx, after.organizer_id)
    if not await sql.update_event(tx, msgspec.structs.asdict(after)):
        raise invalid({"organizer_id": [_UNKNOWN_ORGANIZER]})
    if html:
        await text.store(tx, before.id, after.body, html)
    if after.capacity > before.capacity or before.status == "expired":
        # The date may be in the future again: seats that were freed after the event took place are given away now.
        await held_seats.promote(tx, [before.id])
    await _change_price(tx, before, after)
    return await _present_stored(tx, before.id)


@refuses(NOT_FOUND, FORBIDDEN)
async def cancel(tx: Tx, caller: Caller, command: CancelEvent) -> Event:
    """Cancel an event for good. It leaves public listings, keeps its data, and takes no registrations.

    Pending ones are rejected.
    """
    row = await lock(tx, caller, command.event_id)
    await sql.cancel_event(tx, row.id)
    return await _present_stored(tx, row.id)


async def find(reader: Reader, caller: Caller, event_id: int) -> EventRow:
    """An event that the caller may read. Raises `not_found` and `forbidden`."""
    return _require_access(caller, event_id, await sql.find_event(reader, event_id))


async def lock(tx: Tx, caller: Caller, event_id: int) -> EventRow:
    """Lock an event until the transaction ends, and return it. Raises `not_found` and `forbidden`."""
    return _require_access(caller, event_id, await sql.lock_event(tx, event_id))


async def group_by_owner(
    reader: Reader, event_ids: Set[int], organizer_ids: Sequence[int]
) -> Mapping[int, Sequence[int]]:
    """The ids of the events by organizer. Events of other organizers are left out."""
    rows = await reader.tuples(
        """
        select organizer_id, array_agg(id order by id) from events
         where id = any(%(event_ids)s) and organizer_id = any(%(organizer_ids)s) group by organizer_id
        """,
        {"event_ids": [*event_ids], "organizer_ids": organizer_ids},
    )
    return dict(rows)


async def store_photos(tx: Tx, event: EventRow, keys: Sequence[str]) -> None:
    """Store the photos of an event."""
    await sql.update_image_keys(tx, event.id, keys)
    await tx.notify(ORGANIZER_CHANNEL, event.organizer_slug)


async def _require_quota_of_text(tx: Tx, organizer_id: int) -> None:
    limit = tx.resources.settings.text_per_organizer
    await require_quota(tx, organizer_id, message("bytes of text in all its events"), limit, sql.TEXT)


def _text_length(event: EventRow) -> int:
    """The number of characters in the texts of an event."""
    return sum(len(text or "") for text in (event.title, event.body, event.address, event.location_name))


def _require_access(caller: Caller, event_id: int, row: EventRow | None) -> EventRow:
    if problem := _access_problem(caller, event_id, row):
        raise problem
    assert row
    return row


def _access_problem(caller: Caller, event_id: int, row: EventRow | None) -> Problem | None:
    """Why a caller may not read the row with an id; None if it may."""
    if row is None:
        return NOT_FOUND(f"No event has the id {event_id}.")
    if not caller.may_access(row.organizer_id):
        return FORBIDDEN(f"Event {event_id} belongs to another organizer.")
    return None


def _refused_changes(command: UpdateEvent, before: EventRow, after: EventRow) -> Errors:
    """The error messages of an update that is not acceptable, by field; empty when it is."""
    errors: Errors = {
        name: [message("cannot change; cancel the event and create a new one")]
        for name, value in sent_fields(command, *UNCHANGEABLE).items()
        if value != getattr(before, name)
    }
    if after.capacity < before.registered_count:
        errors["capacity"] = [
            message("must be at least the number of seats taken, %(count)s", count=before.registered_count)
        ]
    if after.draw_at and after.draw_at >= after.datetime:
        errors["opens_at" if command.datetime is UNSET else "datetime"] = [
            OPENS_TOO_LATE if command.datetime is UNSET else OPENS_BEFORE
        ]
    if after.takes_entries and not after.public_log:
        errors["public_log"] = [LOG_IS_NEEDED]
    if not is_in_order(after.datetime, after.ends_at):
        errors["ends_at"] = [ENDS_TOO_EARLY]
    bounds = sent_fields(command, "min_price", "max_price")
    pin = sent_fields(command, "latitude", "longitude")
    if pin and (after.latitude is None) != (after.longitude is None):
        errors |= {name: [HALF_PIN] for name in pin}
    return (
        errors
        | errors_of_bounds(after.pricing_mode, **bounds)
        | errors_of_price(after.pricing_mode, after.price, after.min_price, after.max_price)
    )


async def _change_draw(tx: Tx, command: UpdateEvent, before: EventRow, after: EventRow) -> EventRow:
    """The event after an update, with its draw. Raises `validation_failed` if it cannot be so.

    After the first registration, or once the event has opened, only a void draw can be given up. The entries get their
    places in the order of arrival then.
    """
    draw_at = before.draw_at if command.opens_at is UNSET else command.opens_at
    is_changed, is_abandoned = draw_at != before.draw_at, draw_at is None and before.draw_status == "void"
    if not is_changed and (before.published or not after.published):
        return after
    is_fixed = before.published and (before.is_closed or await sql.has_arrivals(tx, before.id))
    if is_changed and is_fixed and not is_abandoned:
        raise invalid({"opens_at": [DRAW_IS_FIXED]})
    draw = await name_draw(tx, "opens_at", draw_at, is_logged=after.public_log)
    return msgspec.structs.replace(after, **draw, takes_entries=draw_at is not None or is_abandoned)


async def _require_date_ahead(reader: Reader, before: EventRow, after: EventRow) -> None:
    """Raise `validation_failed` if a change moves a published event from the future into the past.

    Agents mistake the year. The event would be over at once, and its people would be told the wrong date.
    """
    if not (before.published and after.published) or before.cancelled_at or after.datetime >= before.datetime:
        return
    now = await reader.value("select now()")
    if after.datetime <= now < before.datetime:
        raise invalid({"datetime": [PAST_DATE]})


async def _require_no_registrations(tx: Tx, event_id: int) -> None:
    if await sql.has_registrations(tx, event_id):
        text = message("Event %(id)s has registrations, so it cannot become a draft again.", id=event_id)
        raise EVENT_HAS_REGISTRATIONS(text)


async def _change_price(tx: Tx, before: EventRow, after: EventRow) -> None:
    """Compute the price again if it depends on what was changed. A draft has its first price."""
    reason = _price_change_reason(before, after)
    if not (before.published and after.published):
        if reason or before.published != after.published:
            await begin_again(tx, before.id)
    elif reason:
        await reprice(tx, [before.id], reason)


def _price_change_reason(before: EventRow, after: EventRow) -> Reason | None:
    """The reason why an update changes the price; None if the price does not depend on the changes."""
    if (before.price, before.min_price, before.max_price) != (after.price, after.min_price, after.max_price):
        return "manual_change"
    if (before.capacity, before.datetime) != (after.capacity, after.datetime):
        return "other"
    return None


async def _present_stored(tx: Tx, id: int) -> Event:
    """A stored event. The page of its organizer changes before this process answers."""
    row = await sql.find_event(tx, id)
    assert row
    await tx.notify(ORGANIZER_CHANNEL, row.organizer_slug)
    return to_api(row, tx.resources.settings)
