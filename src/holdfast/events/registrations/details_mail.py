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
        with due as (
            update registrations set details_at = now()
             where event_id = %(event_id)s and user_id = (select id from users where public_id = %(user_id)s)
               and arrival = %(arrival)s and notify and status in ('registered', 'waitlisted')
               and (details_at is null or details_at < now() - interval '1 hour')
         returning event_id, arrival, name, language, status, reason)
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
