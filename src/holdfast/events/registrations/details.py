"""Sending the details of a registration again, to the address that was registered.

Anybody can type an address into a form. So its owner gets at most one such mail an hour for a registration, and none
after the mails about it were stopped.
"""

import msgspec

from holdfast.events.registrations.own import OwnCommand
from holdfast.events.resources import Tx
from holdfast.kit.caller import Caller


class SendDetails(OwnCommand):
    """Asks to send the details of a registration again."""


async def send_again(tx: Tx, caller: Caller, command: SendDetails) -> None:
    """Put a mail into the outbox, unless one was sent in the last hour or the mails were stopped."""
    await tx.run(
        """
        with due as (
            update registrations set details_at = now()
             where event_id = %(event_id)s and user_id = (select id from users where public_id = %(user_id)s)
               and arrival = %(arrival)s and notify and status in ('registered', 'waitlisted')
               and (details_at is null or details_at < now() - interval '1 hour')
         returning organizer_id, event_id, arrival, name, language, status)
        insert into mails (kind, thread, recipient, arguments)
        select case status when 'registered' then 'seat_again' else 'waitlisted_again' end,
               'registration ' || event_id || ' ' || users.public_id, users.email,
               jsonb_build_object('organizer_id', organizer_id, 'event_id', event_id, 'user_id', users.public_id,
                                  'arrival', arrival, 'name', due.name, 'language', due.language)
          from due, users
         where users.public_id = %(user_id)s
        """,
        msgspec.structs.asdict(command),
    )
