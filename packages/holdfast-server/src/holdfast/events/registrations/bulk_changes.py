"""What an organizer does with several registrations of an event at once. A transaction does all of it, or nothing.

Their seats are filled again when all have moved or gone, so that no one of them gets the seat of another.
"""

from collections.abc import Collection, Mapping
from typing import Annotated, Literal, LiteralString

from msgspec import Meta, Struct

from holdfast.events.log.model import changed_by
from holdfast.events.paths import EventId
from holdfast.events.registrations import sql
from holdfast.events.registrations.refusals import REFUSALS
from holdfast.events.resources import Tx
from holdfast.events.seats import held_seats
from holdfast.events.users.model import PublicId
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import (
    FORBIDDEN,
    NOT_FOUND,
    refuses,
)
from holdfast.kit.operations.operation import Operation, single

MAX_BULK_REGISTRATIONS = 50
"""The most registrations of one command."""

SkipReason = Literal[
    "gone", "pending", "in_draw", "held", "registered", "waitlisted", "rejected", "entered", "event_cancelled"
]
"""Why nothing is done with a registration: there is none any more, or its status. `entered`: the person is in."""

REMOVABLE = ("pending", "in_draw", "held", "registered", "waitlisted")
"""The statuses of registrations that can be removed."""


class BulkCommand(Command):
    """Names registrations of one event."""

    event_id: EventId
    user_ids: Annotated[list[PublicId], Meta(min_length=1, max_length=MAX_BULK_REGISTRATIONS)]


class RemoveRegistrations(BulkCommand):
    """Asks to remove registrations."""


class MoveRegistrations(BulkCommand):
    """Asks to move people with a seat to the waiting list."""


class BulkResult(Struct, frozen=True):
    """The public ids of those with whom it was done, and of the others, with the reason."""

    done: list[str]
    skipped: dict[str, SkipReason]


CHOSEN_PEOPLE: LiteralString = f"""
    with chosen_person as materialized (
        select %(event_id)s::bigint as event_id, id as user_id from users cross join {changed_by("organizer")}
         where public_id = any(%(user_ids)s))
"""

REMOVAL: LiteralString = f"""
    {CHOSEN_PEOPLE}
    delete from registrations using chosen_person
     where registrations.event_id = chosen_person.event_id and registrations.user_id = chosen_person.user_id
"""

MOVE_TO_WAITING_LIST: LiteralString = f"""
    {CHOSEN_PEOPLE}
    update registrations set status = 'waitlisted', reason = 'by_organizer' from chosen_person
     where registrations.event_id = chosen_person.event_id and registrations.user_id = chosen_person.user_id
"""


@refuses(NOT_FOUND, FORBIDDEN)
async def remove(tx: Tx, caller: Caller, command: RemoveRegistrations) -> BulkResult:
    """Remove registrations. Seats that they had go to the first on the waiting list."""
    statuses = await _lock(tx, caller, command)
    result = _result(command, statuses, REMOVABLE)
    await _change(tx, command, REMOVAL, result)
    if any(statuses[user_id] in ("registered", "held") for user_id in result.done):
        await held_seats.refill_seats(tx, [command.event_id])
    return result


@refuses(NOT_FOUND, FORBIDDEN)
async def move(tx: Tx, caller: Caller, command: MoveRegistrations) -> BulkResult:
    """Move people with a seat to the waiting list, where they stay. Their seats go to the first who wait there."""
    statuses = await _lock(tx, caller, command)
    result = _result(command, statuses, ("registered",))
    await _change(tx, command, MOVE_TO_WAITING_LIST, result)
    if result.done:
        await held_seats.refill_seats(tx, [command.event_id])
    return result


async def _lock(tx: Tx, caller: Caller, command: BulkCommand) -> dict[str, SkipReason]:
    """The status of each registration that there is, by public id. Locks the event of the caller."""
    # Locked first: an event that is handed over at the same time is no more the caller's.
    await held_seats.lock_event_of(tx, command.event_id)
    organizer_id = await sql.organizer_of(tx, command.event_id)
    if organizer_id is None or not caller.may_access(organizer_id):
        raise REFUSALS["not_found" if organizer_id is None else "forbidden"](command.event_id)
    keys = [(command.event_id, user_id, caller.tenant_id) for user_id in command.user_ids]
    matches = await sql.find_registrations(tx, keys)
    return {match.public_id: match.status for match in matches if match and match.status}


def _result(command: BulkCommand, statuses: Mapping[str, SkipReason], changeable: Collection[SkipReason]) -> BulkResult:
    result = BulkResult([], {})
    for user_id in dict.fromkeys(command.user_ids):
        status = statuses.get(user_id, "gone")
        if status in changeable:
            result.done.append(user_id)
        else:
            result.skipped[user_id] = status
    return result


async def _change(tx: Tx, command: BulkCommand, statement: LiteralString, result: BulkResult) -> None:
    if result.done:
        await tx.run(statement, {"event_id": command.event_id, "user_ids": result.done})


REMOVE_REGISTRATIONS = Operation("remove_registrations", None, single(remove))

MOVE_REGISTRATIONS = Operation("move_registrations", None, single(move))

OPERATIONS = (REMOVE_REGISTRATIONS, MOVE_REGISTRATIONS)
"""Operations of the console alone: they have no routes of the API and no tools."""
