"""What can be done with events."""

import msgspec
from msgspec import UNSET

from holdfast.events.events import sql
from holdfast.events.events.model import (
    CancelEvent,
    CreateEvent,
    Event,
    EventRow,
    GetEvent,
    UpdateEvent,
    present,
)
from holdfast.events.images import acceptance
from holdfast.events.organizers.operations import owner
from holdfast.events.pricing.changes import begin, reprice
from holdfast.events.pricing.model import Reason, misfits
from holdfast.events.pricing.policy import first_price
from holdfast.events.problems import QUOTA_EXCEEDED
from holdfast.events.quotas import require_room
from holdfast.events.registrations import seating
from holdfast.events.resources import Concluded, Reader, Steps, Tx
from holdfast.kit.caller import Caller
from holdfast.kit.command import Errors, given
from holdfast.kit.pagination import OffsetPage, Page
from holdfast.kit.problems import FORBIDDEN, NOT_FOUND, VALIDATION_FAILED, invalid, refuses
from holdfast.kit.said import said

EDITABLE = (
    *("title", "body", "datetime", "address", "location_name", "latitude", "longitude", "image_keys"),
    *("timezone", "cancellation_hours"),
    *("price", "min_price", "max_price", "capacity", "waitinglist_capacity"),
    *("recurrence_frequency", "recurrence_interval"),
)
FIXED = ("pricing_mode", "currency")


async def list(reader: Reader, caller: Caller, command: OffsetPage) -> Page[Event]:
    """List events, oldest first, cancelled and past ones included.

    An organizer key sees its own.
    """
    page = await sql.list_events(reader, caller.tenant_id, command)
    return Page([present(row, reader.resources.settings) for row in page.data], page.pagination)


@refuses(NOT_FOUND, FORBIDDEN)
async def get(reader: Reader, caller: Caller, command: GetEvent) -> Event:
    """Read one event, with its live registration count and current price."""
    return present(await find(reader, caller, command.event_id), reader.resources.settings)


@refuses(FORBIDDEN, VALIDATION_FAILED, QUOTA_EXCEEDED)
async def create(steps: Steps, caller: Caller, command: CreateEvent) -> Concluded[Event]:
    """Create an event. It takes registrations at once.

    The answer has what to publish: `public_url`, `embed_url`, `embed_code`.
    """
    await acceptance.accept(steps, caller, command.image_keys)
    return await steps.conclude(lambda tx: publish(tx, caller, command))


async def publish(tx: Tx, caller: Caller, command: CreateEvent) -> Event:
    """Create an event whose photos are accepted."""
    organizer_id = owner(caller, command.organizer_id)
    if unknown := await acceptance.unknown(tx, caller, organizer_id, command.image_keys):
        raise invalid({"image_keys": unknown})
    most = tx.resources.settings.events_per_organizer
    await require_room(tx, organizer_id, said("events that are neither cancelled nor over"), most, sql.COUNT_OPEN)
    await _require_room_for_text(tx, organizer_id)
    first = first_price(command.pricing_mode, command.price, command.min_price, command.max_price, command.currency)
    stored = {**msgspec.structs.asdict(command), "current_price": first}
    id = await sql.insert_event(tx, {**stored, "organizer_id": organizer_id})
    if id is None:
        raise invalid({"organizer_id": [_UNKNOWN_ORGANIZER]})
    await begin(tx, [id])
    return await _shown(tx, id)


@refuses(NOT_FOUND, FORBIDDEN, VALIDATION_FAILED, QUOTA_EXCEEDED)
async def update(steps: Steps, caller: Caller, command: UpdateEvent) -> Concluded[Event]:
    """Change an event; every field is optional.

    Raising `capacity` gives the new seats to the first on the waiting list. A dynamic price goes on from the new
    `price` and bounds.
    """
    if command.image_keys is not UNSET:
        await acceptance.accept(steps, caller, command.image_keys)
    return await steps.conclude(lambda tx: change(tx, caller, command))


async def change(tx: Tx, caller: Caller, command: UpdateEvent) -> Event:
    before = await lock(tx, caller, command.event_id)
    after = msgspec.structs.replace(before, **given(command, *EDITABLE))
    if command.organizer_id is not UNSET:
        after.organizer_id = owner(caller, command.organizer_id)
    added = [key for key in after.image_keys if key not in before.image_keys]
    errors = _refused_changes(command, before, after)
    if unknown := await acceptance.unknown(tx, caller, after.organizer_id, added):
        errors["image_keys"] = unknown
    if errors:
        raise invalid(errors)
    if _text(after) > _text(before):
        await _require_room_for_text(tx, after.organizer_id)
    if not await sql.update_event(tx, msgspec.structs.asdict(after)):
        raise invalid({"organizer_id": [_UNKNOWN_ORGANIZER]})
    if after.capacity > before.capacity or before.status == "expired":
        # A seat that was freed after the event took place is given away now that its date is in the future again.
        await seating.promote(tx, [before.id])
    if reason := _why_the_price_changes(before, after):
        await reprice(tx, [before.id], reason)
    return await _shown(tx, before.id)


@refuses(NOT_FOUND, FORBIDDEN)
async def cancel(tx: Tx, caller: Caller, command: CancelEvent) -> Event:
    """Cancel an event, for good. Its data is kept; it leaves public listings and takes no more registrations.

    Registrations that still wait to be settled are rejected.
    """
    row = await lock(tx, caller, command.event_id)
    await sql.cancel_event(tx, row.id)
    return await _shown(tx, row.id)


async def find(reader: Reader, caller: Caller, event_id: int) -> EventRow:
    """An event that the caller may read. Raises `not_found` and `forbidden`."""
    return _accessible(caller, event_id, await sql.find_event(reader, event_id))


async def lock(tx: Tx, caller: Caller, event_id: int) -> EventRow:
    """An event, locked until this transaction ends. Raises `not_found` and `forbidden`."""
    return _accessible(caller, event_id, await sql.lock_event(tx, event_id))


show_photos = sql.update_image_keys

_UNKNOWN_ORGANIZER = said("no organizer has this id")


async def _require_room_for_text(tx: Tx, organizer_id: int) -> None:
    most = tx.resources.settings.text_per_organizer
    await require_room(tx, organizer_id, said("bytes of text in all its events"), most, sql.TEXT)


def _text(event: EventRow) -> int:
    """The characters of its texts."""
    return sum(len(text or "") for text in (event.title, event.body, event.address, event.location_name))


def _accessible(caller: Caller, event_id: int, row: EventRow | None) -> EventRow:
    if row is None:
        raise NOT_FOUND(f"No event has the id {event_id}.")
    if not caller.may_access(row.organizer_id):
        raise FORBIDDEN(f"Event {event_id} belongs to another organizer.")
    return row


def _refused_changes(command: UpdateEvent, before: EventRow, after: EventRow) -> Errors:
    """Why an update is not acceptable, by field; empty when it is."""
    errors: Errors = {
        name: [said("cannot change; cancel the event and create a new one")]
        for name, value in given(command, *FIXED).items()
        if value != getattr(before, name)
    }
    if after.capacity < before.registered_count:
        errors["capacity"] = [
            said("must be at least the number of seats taken, %(taken)s", taken=before.registered_count)
        ]
    return errors | misfits(after.pricing_mode, after.price, after.min_price, after.max_price)


def _why_the_price_changes(before: EventRow, after: EventRow) -> Reason | None:
    """The reason for which an update changes the price; None if it changes nothing that the price depends on."""
    if (before.price, before.min_price, before.max_price) != (after.price, after.min_price, after.max_price):
        return "manual_change"
    if (before.capacity, before.datetime) != (after.capacity, after.datetime):
        return "other"
    return None


async def _shown(reader: Reader, id: int) -> Event:
    row = await sql.find_event(reader, id)
    assert row
    return present(row, reader.resources.settings)
