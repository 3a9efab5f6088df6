"""One's own registration, behind a signed link: looking at it, handing it back, and stopping its mails.

Whoever has the link may do all of this. Looking changes nothing, since programs that check mails follow their links.
"""

import datetime as dt
from collections.abc import Sequence
from typing import Literal, LiteralString

import msgspec
from msgspec import Struct

from holdfast.events.registrations import seating, sql
from holdfast.events.registrations.cancellation import cancels_until
from holdfast.events.registrations.links import Link
from holdfast.events.resources import Reader, Tx
from holdfast.kit.caller import Caller
from holdfast.kit.command import Command, Id
from holdfast.kit.modes import Batch
from holdfast.kit.problems import NOT_FOUND, Problem, refuses

Standing = Literal["pending", "held", "registered", "waitlisted", "rejected"]


class OwnCommand(Command):
    """Names a registration as its link does."""

    event_id: Id
    user_id: str
    arrival: Id


class LookAtOwn(OwnCommand):
    """Asks how a registration stands."""


class CancelOwn(OwnCommand):
    """Asks to hand a registration back."""


class StopMails(OwnCommand):
    """Asks to send no more mails about a registration."""


class Own(Struct, frozen=True):
    """A registration and its event, as the person may see them.

    age             seconds since it was received
    position        the place on the waiting list: 1 is the first; 0 without one
    waiting         how many are on the waiting list
    amount_due      what has to be paid for the seat, in minor units; None: nothing
    held_until      until when the seat is held
    payment_url     where it can be paid; None: not, or not yet
    refunded        what goes back, or went back, of what was paid
    refundable      what goes back if it is cancelled now
    now             the time of the database
    """

    event_id: int
    user_id: str
    arrival: int
    status: Standing
    reason: str | None
    notify: bool
    amount_due: int | None
    amount_paid: int
    currency: str
    held_until: dt.datetime | None
    payment_url: str | None
    refunded: int
    refundable: int
    promoted_at: dt.datetime | None
    age: int
    position: int
    title: str
    datetime: dt.datetime
    timezone: str | None
    location_name: str | None
    address: str | None
    cancellation_hours: int
    cancelled_at: dt.datetime | None
    waiting: int
    organizer_name: str | None
    organizer_slug: str
    now: dt.datetime

    @property
    def until(self) -> dt.datetime:
        """Until when it can be handed back."""
        return cancels_until(self.status, self.datetime, self.cancellation_hours, self.promoted_at)

    @property
    def can_be_cancelled(self) -> bool:
        return self.status != "rejected" and self.cancelled_at is None and self.now < self.until


class Cancelled(Struct, frozen=True):
    """The registration as it was; and whether it was removed, or else it was too late."""

    own: Own
    done: bool


@refuses(NOT_FOUND)
async def look(reader: Reader, batch: Batch[LookAtOwn]) -> Sequence[Own | Problem]:
    """Read how registrations stand. One that was removed, or replaced by a newer one, is not found."""
    found = await find_own(reader, [call.command for call in batch.calls])
    return [each or NOT_FOUND("There is no such registration any more.") for each in found]


@refuses(NOT_FOUND)
async def cancel(tx: Tx, caller: Caller, command: CancelOwn) -> Cancelled:
    """Remove a registration, unless it is too late. A seat it held goes to the first on the waiting list."""
    await sql.lock_event_of(tx, command.event_id)
    [own] = await find_own(tx, [command])
    if own is None:
        raise NOT_FOUND("There is no such registration any more.")
    if not own.can_be_cancelled:
        return Cancelled(own, done=False)
    if own.amount_due and not own.refundable:
        await keep_payment(tx, own)
    await sql.delete_registration(tx, own.event_id, own.user_id)
    if own.status in ("registered", "held"):
        await seating.pass_on(tx, [own.event_id])
    return Cancelled(own, done=True)


async def keep_payment(tx: Tx, own: Own) -> None:
    """Leave what was paid with the organizer: by the rule for cancellations it is too late to get it back."""
    await tx.run(
        """
        update payments set kept = amount - refunded from users
         where event_id = %(event_id)s and users.id = user_id and users.public_id = %(user_id)s
           and arrival = %(arrival)s and state = 'paid'
        """,
        {"event_id": own.event_id, "user_id": own.user_id, "arrival": own.arrival},
    )


async def stop_mails(tx: Tx, caller: Caller, command: StopMails) -> None:
    """Send no more mails about a registration. There is nothing to stop for one that was removed."""
    await tx.run(
        """
        update registrations set notify = false
         where event_id = %(event_id)s and user_id = (select id from users where public_id = %(user_id)s)
           and arrival = %(arrival)s and notify
        """,
        msgspec.structs.asdict(command),
    )


OWN: LiteralString = """
    -- Of those who ask about one waiting list, each knows who is the next before it. They count only the people
    -- between them, so the list is counted once for all of them.
    with found as (
        select own.user_id as public_id, registrations.*,
               lag(received_at, 1, '-infinity') over line as last_received_at,
               lag(registrations.arrival, 1, 0::bigint) over line as last_arrival
          from json_to_recordset(%(own)s::json) as own (event_id bigint, user_id text, arrival bigint)
         cross join lateral (select id from users where public_id = own.user_id limit 1) as users
         cross join lateral (select * from registrations
                              where event_id = own.event_id and user_id = users.id limit 1) as registrations
         where registrations.arrival = own.arrival
        window line as (partition by registrations.event_id, status order by received_at, registrations.arrival))
    select found.event_id, found.public_id as user_id, found.arrival, found.status::text, found.reason, found.notify,
           found.amount_due, found.amount_paid, coalesce(payment.currency, events.currency) as currency,
           found.held_until, payment.url as payment_url,
           coalesce(payment.refunded, 0) as refunded,
           case when events.datetime - payment.refund_days * interval '1 day' > now()
                then payment.paid - payment.refunded else 0 end as refundable, found.promoted_at,
           extract(epoch from clock_timestamp() - found.received_at)::integer as age,
           (sum(people_between.number)
                over (partition by found.event_id, found.status order by found.received_at, found.arrival))::bigint
           as position,
           events.title, events.datetime, events.timezone, events.location_name, events.address,
           events.cancellation_hours, events.cancelled_at, events.waitlisted_count as waiting,
           organizers.name as organizer_name, organizers.slug as organizer_slug, clock_timestamp() as now
      from found
     cross join lateral (select count(*) as number from registrations as others
                          where found.status = 'waitlisted' and others.status = 'waitlisted'
                            and others.event_id = found.event_id
                            and (others.received_at, others.arrival) > (last_received_at, last_arrival)
                            and (others.received_at, others.arrival) <= (found.received_at, found.arrival))
           as people_between
     cross join lateral (select * from events where id = found.event_id limit 1) as events
      left join lateral (select case when state = 'open' then url end as url, refunded, refund_days, currency,
                                case when state = 'paid' then amount - kept else 0 end as paid from payments
                          where found.amount_due is not null and event_id = found.event_id
                            and user_id = found.user_id and arrival = found.arrival
                          order by id desc limit 1) as payment on true
     cross join lateral (select name, slug from users where id = events.organizer_id limit 1) as organizers
"""


async def find_own(reader: Reader, commands: Sequence[OwnCommand]) -> list[Own | None]:
    """The registrations that links name, in the order given; None for one that was removed or is a newer one."""
    links = [Link(each.event_id, each.user_id, each.arrival) for each in commands]
    asked = [link._asdict() for link in {*links}]
    rows = await reader.rows(Own, OWN, {"own": msgspec.json.encode(asked).decode()})
    found = {Link(each.event_id, each.user_id, each.arrival): each for each in rows}
    return [found.get(link) for link in links]
