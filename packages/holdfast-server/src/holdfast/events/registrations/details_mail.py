"""The details of a registration, sent again to the registered address.

Every visitor can type any address into a form. So the owner of the address gets at most one such mail an hour for a
registration, and none after the mails about it were stopped.
"""

import msgspec

from holdfast.events.registrations.links import OwnRegistrationCommand
from holdfast.events.resources import Tx
from holdfast.kit.contract.caller import Caller


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
