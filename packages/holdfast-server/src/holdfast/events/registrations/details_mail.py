"""The details of a registration, sent again to the registered address.

Every visitor can type any address into a form. So the owner of the address gets at most one such mail an hour for a
registration, and none after the mails about it were stopped.
"""

from typing import Literal, LiteralString

import msgspec
from msgspec import Struct

from holdfast.events.events import operations as events
from holdfast.events.paths import EventId
from holdfast.events.registrations.links import OwnRegistrationCommand
from holdfast.events.resources import Tx
from holdfast.events.users.model import PublicId
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, refuses
from holdfast.kit.operations.operation import Operation, single


class SendDetails(OwnRegistrationCommand):
    """Asks to send the details of a registration again.

    is_noted    whether only to note that another form has named its address: the mail about it has just gone out
    """

    is_noted: bool = False


async def send_again(tx: Tx, caller: Caller, command: SendDetails) -> None:
    """Put a mail into the outbox, unless one was sent in the last hour or the mails were stopped."""
    await tx.run(
        """
        -- Locked by its key first: with all conditions, the registrations of a status may be read before the statistics
        -- of a new table are made.
        with locked_row as materialized (
            select * from registrations
             where event_id = %(event_id)s and user_id = (select id from users where public_id = %(public_id)s)
               for no key update),
        due_row as (
            update registrations set details_at = now() from locked_row
             where (registrations.event_id, registrations.user_id) = (locked_row.event_id, locked_row.user_id)
               and locked_row.arrival = %(arrival)s and locked_row.notify
               and (locked_row.status in ('registered', 'waitlisted', 'in_draw') or %(is_noted)s)
               and (locked_row.details_at is null or locked_row.details_at < now() - interval '1 hour')
         returning locked_row.event_id, locked_row.arrival, locked_row.name, locked_row.language, locked_row.status,
                   locked_row.reason)
        insert into mails (kind, thread, recipient, arguments)
        select mail_kind(status::text, 'repeated'),
               'registration ' || event_id || ' ' || users.public_id, users.email,
               jsonb_build_object('organizer_id', (select organizer_id from events where id = %(event_id)s),
                                  'event_id', event_id, 'user_id', users.public_id, 'arrival', arrival,
                                  'name', due_row.name, 'language', due_row.language, 'reason', due_row.reason)
          from due_row, users
         where users.public_id = %(public_id)s and not %(is_noted)s
        """,
        msgspec.structs.asdict(command),
    )


ResendStatus = Literal["mail_sent", "mail_too_soon", "mail_unwanted"]
"""mail_too_soon: it was sent within the last hour; mail_unwanted: no mails go to the person"""


class ResendMail(Command):
    """Asks to send the mail about a registration again."""

    event_id: EventId
    user_id: PublicId


class ResendConditions(Struct, frozen=True):
    """What decides whether the mail is sent."""

    arrival: int
    has_mails: bool
    is_too_soon: bool


_CONDITIONS: LiteralString = """
    select arrival, notify and status in ('registered', 'waitlisted', 'in_draw') as has_mails,
           coalesce(details_at >= now() - interval '1 hour', false) as is_too_soon
      from registrations
     where event_id = %(event_id)s and user_id = (select id from users where public_id = %(user_id)s)
       for no key update
"""


@refuses(NOT_FOUND, FORBIDDEN)
async def resend(tx: Tx, caller: Caller, command: ResendMail) -> ResendStatus:
    """Send the mail about a registration again, unless it was sent within the last hour."""
    await events.find(tx, caller, command.event_id)
    values = {"event_id": command.event_id, "user_id": command.user_id}
    conditions = await tx.row(ResendConditions, _CONDITIONS, values)
    if conditions is None:
        raise NOT_FOUND("There is no such registration any more.", hint="See the list of registrations.")
    if not conditions.has_mails:
        return "mail_unwanted"
    if conditions.is_too_soon:
        return "mail_too_soon"
    details = SendDetails(event_id=command.event_id, public_id=command.user_id, arrival=conditions.arrival)
    await send_again(tx, caller, details)
    return "mail_sent"


RESEND_MAIL = Operation("send_mail_of_registration", None, single(resend))
OPERATIONS = (RESEND_MAIL,)
"""An operation of the console alone: it has no route of the API and no tool."""
