"""The last payment of a removed registration, for a person who still has its page open."""

from typing import Literal

from msgspec import Struct

from holdfast.events.registrations.own_registration import OwnRegistrationCommand
from holdfast.events.resources import Reader
from holdfast.kit.contract.caller import Caller


class GetRemovedPayment(OwnRegistrationCommand):
    """Asks for the last payment of a registration that was removed."""


class RemovedPayment(Struct, frozen=True):
    """The last payment of a registration that was removed.

    is_unpaid    whether no money has arrived; money that arrives now is refunded in full
    refunded, refund_outlook    as in `OwnRegistration`
    """

    is_unpaid: bool
    currency: str
    refunded: int
    refund_outlook: Literal["back", "waits", "lost"] | None


async def last_payment(reader: Reader, caller: Caller, command: GetRemovedPayment) -> RemovedPayment | None:
    """Read the last payment of a registration that was removed; None if there is none."""
    return await reader.row(
        RemovedPayment,
        """
        select state in ('opening', 'open') as is_unpaid, currency, refunded,
               case when refunded > 0 then coalesce((
                   select case blocked_by_dispute(payments.intent_id)
                               when 'open' then 'waits' when 'lost' then 'lost' end
                     from refunds where payment_id = payments.id and state <> 'made' limit 1), 'back') end
               as refund_outlook
          from payments
         where event_id = %(event_id)s and arrival = %(arrival)s
           and user_id = (select id from users where public_id = %(user_id)s)
           and not exists (select from registrations
                            where registrations.event_id = payments.event_id
                              and registrations.user_id = payments.user_id
                              and registrations.arrival = payments.arrival)
         order by id desc limit 1
        """,
        {"event_id": command.event_id, "user_id": command.user_id, "arrival": command.arrival},
    )
