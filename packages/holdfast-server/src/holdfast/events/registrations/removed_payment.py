"""The last payment of a removed registration, for a person who still has its page open."""

from msgspec import Struct

from holdfast.events.registrations.links import OwnRegistrationCommand
from holdfast.events.registrations.own_registration import REFUND_OUTLOOK, RefundOutlook
from holdfast.events.resources import Reader
from holdfast.kit.contract.caller import Caller


class GetRemovedPayment(OwnRegistrationCommand):
    """Asks for the last payment of a registration that was removed."""


class RemovedPayment(Struct, frozen=True):
    """The last payment of a registration that was removed.

    is_unpaid                                whether no money has arrived; money that arrives now is refunded in full
    retained_amount                          what the organizer keeps, since it was too late for a refund
    refunded, refund_outlook, refund_days    as in `OwnRegistration`
    """

    is_unpaid: bool
    currency: str
    retained_amount: int
    refunded: int
    refund_outlook: RefundOutlook | None
    refund_days: int


async def last_payment(reader: Reader, caller: Caller, command: GetRemovedPayment) -> RemovedPayment | None:
    """Read the last payment of a registration that was removed; None if there is none."""
    return await reader.row(
        RemovedPayment,
        f"""
        select state in ('opening', 'open') as is_unpaid, currency, kept as retained_amount, refunded, refund_days,
               {REFUND_OUTLOOK} as refund_outlook
          from payments
         where event_id = %(event_id)s and arrival = %(arrival)s
           and user_id = (select id from users where public_id = %(public_id)s)
           and not exists (select from registrations
                            where registrations.event_id = payments.event_id
                              and registrations.user_id = payments.user_id
                              and registrations.arrival = payments.arrival)
         order by id desc limit 1
        """,
        {"event_id": command.event_id, "public_id": command.public_id, "arrival": command.arrival},
    )
