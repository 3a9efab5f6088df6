"""Sending the details of a registration again to the registered address.

Every visitor can type any address into a form. So the owner of the address gets at most one such mail an hour for a
registration, and none after the mails about it were stopped.
"""

import msgspec

from holdfast.events.registrations.own_registration import OwnRegistrationCommand
from holdfast.events.resources import Tx
from holdfast.kit.contract.caller import Caller


class SendDetails(OwnRegistrationCommand):
    """Asks to send the details of a registration again."""


async def send_again(tx: Tx, caller: Caller, command: SendDetails) -> None:
    """Put a mail into the outbox, unless one was sent in the last hour or the mails were stopped."""
    await tx.run(
        """
        -- Locked by its key first: with all conditions, the registrations of a status may be read before the statistics
        -- of a new table are made.
        with own as materialized (
            select * from registrations
             where event_id = %(event_id)s and user_id = (select id from users where public_id = %(user_id)s)
               for no key update),
        due as (
            update registrations set details_at = now() from own
             where (registrations.event_id, registrations.user_id) = (own.event_id, own.user_id)
               and own.arrival = %(arrival)s and own.notify and own.status in ('registered', 'waitlisted', 'in_draw')
               and (own.details_at is null or own.details_at < now() - interval '1 hour')
         returning own.event_id, own.arrival, own.name, own.language, own.status, own.reason)
        insert into mails (kind, thread, recipient, arguments)
        select mail_kind(status::text, 'repeated'),
               'registration ' || event_id || ' ' || users.public_id, users.email,
               jsonb_build_object('organizer_id', (select organizer_id from events where id = %(event_id)s),
                                  'event_id', event_id, 'user_id', users.public_id, 'arrival', arrival,
                                  'name', due.name, 'language', due.language, 'reason', due.reason)
          from due, users
         where users.public_id = %(user_id)s
        """,
        msgspec.structs.asdict(command),
    )
