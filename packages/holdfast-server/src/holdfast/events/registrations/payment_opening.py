"""Opening a payment for each held seat, in the transaction that holds it."""

from collections.abc import Sequence
from typing import LiteralString

from holdfast.events.processor.currencies import by_currency
from holdfast.events.resources import Tx

PAYMENTS_CHANNEL: LiteralString = "payments"
"""The channel that wakes up all work with the payment processor (`payments/due.py`).

It is declared here because `payments` imports `registrations`, and not the other way round. SQL functions use the name
too.
"""

UNIT: LiteralString = by_currency("unit")


async def open_payments(tx: Tx, event_ids: Sequence[int]) -> None:
    """Open payments for those held seats of locked events that have no payment yet."""
    await tx.run(
        f"""
        with opened as (
            insert into payments (event_id, user_id, arrival, amount, fee, currency, account_id,
                                  refund_days, ends_at, language)
            select event_id, user_id, arrival, amount_due, div(amount_due * %(percent)s, 100 * {UNIT}) * {UNIT},
                   currency, account_id, coalesce(refund_days, 0), held_until, language
              from registrations
              join events on events.id = event_id
              left join payout_accounts on payout_accounts.organizer_id = events.organizer_id and is_confirmed
             where event_id = any(%(event_ids)s) and status = 'held'
               and not exists (select from payments as known
                                where known.event_id = registrations.event_id
                                  and known.user_id = registrations.user_id
                                  and known.arrival = registrations.arrival
                                  and known.state in ('opening', 'open'))
             order by received_at, registrations.arrival
         returning 1)
        select
        """,
        {"event_ids": list(event_ids), "percent": tx.resources.settings.platform_fee_percent},
    )
    await tx.notify(PAYMENTS_CHANNEL)
