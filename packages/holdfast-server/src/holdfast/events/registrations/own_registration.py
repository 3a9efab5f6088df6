"""A person's own registration, behind a signed link: read it, confirm an entry, stop its mails.
`own_cancellations.py` ends it.

Every holder of the link may do all of this. Reading changes nothing, because mail scanners follow links. An entry of a
draw is confirmed by a link that was only mailed to its address; the account keeps the time, so the person confirms
once, for all draws.
"""

import datetime as dt
from collections.abc import Sequence
from typing import Any, Literal, LiteralString

import msgspec
from msgspec import Struct

from holdfast.events.organizers.branding import LOGO
from holdfast.events.photos.model import PHOTO_SIZES
from holdfast.events.registrations import sql
from holdfast.events.registrations.address_correction import CAN_BE_CORRECTED
from holdfast.events.registrations.links import Link, OwnRegistrationCommand
from holdfast.events.registrations.model import UNDO_SECONDS, RegistrationStatus, cancellation_deadline, refund_deadline
from holdfast.events.resources import Reader, Tx
from holdfast.events.seats.drawn import DRAWN_PLACE, IS_CONFIRMED
from holdfast.events.seats.intake import ADVISORY_LOCK_ID
from holdfast.events.users.model import PUBLIC_ACCENT, PUBLIC_NAME
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND, Problem, refuses
from holdfast.kit.operations.operation import Batch

RefundOutlook = Literal["back", "waits", "lost"]
"""The status of refunds. `back`: they are made, or will be. `waits`: a dispute is not decided. `lost`: the bank of the
card has given the money back itself."""


class GetOwnRegistration(OwnRegistrationCommand):
    """Asks for a registration and its status."""


class StopMails(OwnRegistrationCommand):
    """Asks to send no more mails about a registration."""


class OwnRegistration(Struct, frozen=True):
    """A registration and its event, as the person may see them. Amounts are in minor units.

    age                 seconds since it was received
    position            the place on the waiting list: 1 is the first
    waiting_count       the number of people who wait for a free seat, counted like `position`
    amount_due          the price of the seat; None: nothing is due
    held_until          the time until which the seat is held
    cancels_at          when it is cancelled, unless the person undoes that; None: it stays
    payment_url         the page on which it can be paid; None: it cannot be paid, or not yet
    amount_paid         the amount paid by card; else the amount that the organizer has noted
    is_closing          whether the time to pay is over, and the processor has not closed its page yet
    refunded            the sum of the refunds, also of those that are still to be made
    refund_outlook      status of the refunds
    refundable          the amount that is refunded if it is cancelled now, or else when the person asked to cancel it
    refund_days         a cancellation earlier than this many days before the event is refunded in full; None: no
                        payment by card
    disputed            `open`: a dispute about the payment is not decided, and nothing is refunded before that; `lost`:
                        the bank of the card has given the money back itself
    masked_email        the address with the first character of the mailbox only; None: the person was erased
    can_be_corrected    whether the browser that sent its form can correct its address
    photo               the key of the first photo of the event, or None
    photo_sizes         its sizes, if it has them, as JSON has them
    accent, logo        the accent and the file of the logo of the organizer, or None
    now                 the time of the database
    mails_wait          whether mails wait until the organizer proves its address
    log_number          its number in the order of arrivals; None: no public log has it
    arrivals            how many registrations of the event are numbered
    moved, removed      how many registrations the organizer has moved and removed since the log began
    draw_...            the draw with which the event opens, as `events` has it; `draw_at` None: it has none
    is_confirmed        whether its entry of a draw is confirmed
    drawn_place         its place in the drawn order; None: it was not drawn, or not yet
    """

    event_id: int
    public_id: str
    arrival: int
    status: RegistrationStatus
    reason: str | None
    notify: bool
    amount_due: int | None
    amount_paid: int
    currency: str
    held_until: dt.datetime | None
    cancels_at: dt.datetime | None
    payment_url: str | None
    is_closing: bool
    refunded: int
    refund_outlook: RefundOutlook | None
    refundable: int
    refund_days: int | None
    disputed: Literal["open", "lost"] | None
    promoted_at: dt.datetime | None
    age: int
    position: int
    title: str
    datetime: dt.datetime
    ends_at: dt.datetime | None
    timezone: str | None
    location_name: str | None
    address: str | None
    cancellation_hours: int
    cancelled_at: dt.datetime | None
    waiting_count: int
    organizer_name: str | None
    organizer_slug: str
    accent: str | None
    logo: str | None
    now: dt.datetime
    mails_wait: bool
    log_number: int | None
    arrivals: int
    moved: int
    removed: int
    draw_at: dt.datetime | None
    draw_round: int | None
    draw_round_at: dt.datetime | None
    draw_entries: int | None
    drawn_at: dt.datetime | None
    draw_void_at: dt.datetime | None
    is_confirmed: bool
    drawn_place: int | None
    masked_email: str | None
    can_be_corrected: bool
    photo: str | None
    photo_sizes: Any

    @property
    def waits_for_draw(self) -> bool:
        """Whether its place is drawn, or follows those that are drawn."""
        is_entering = self.status == "pending" and self.draw_at is not None and self.drawn_at is None
        return self.status == "in_draw" or is_entering

    @property
    def is_late_for_draw(self) -> bool:
        """Whether it came after the list of the draw had closed."""
        return self.draw_entries is not None and self.log_number is not None and self.log_number > self.draw_entries

    @property
    def cancellable_until(self) -> dt.datetime:
        """The deadline for cancelling it."""
        return cancellation_deadline(self.status, self.datetime, self.cancellation_hours, self.promoted_at)

    @property
    def refund_until(self) -> dt.datetime:
        """The time until which a cancellation is refunded in full."""
        seat_until = cancellation_deadline("registered", self.datetime, self.cancellation_hours, self.promoted_at)
        return refund_deadline(self.datetime, self.refund_days or 0, seat_until)

    @property
    def can_be_cancelled(self) -> bool:
        return self.status != "rejected" and self.cancelled_at is None and self.now < self.cancellable_until

    @property
    def has_next_person(self) -> bool:
        """Whether a person waits who gets the seat, or moves up on the waiting list, if this one is cancelled."""
        return self.waiting_count > (self.position if self.status == "waitlisted" and self.reason is None else 0)


@refuses(NOT_FOUND)
async def get(reader: Reader, batch: Batch[GetOwnRegistration]) -> Sequence[OwnRegistration | Problem]:
    """Read registrations. One that was removed, or replaced by a newer one, is not found."""
    registrations = await find_own_registrations(reader, [call.command for call in batch.calls])
    return [registration or NOT_FOUND("There is no such registration any more.") for registration in registrations]


async def stop_mails(tx: Tx, caller: Caller, command: StopMails) -> None:
    """Send no more mails about a registration. A removed registration has no mails to stop."""
    await tx.run(
        """
        update registrations set notify = false
         where event_id = %(event_id)s and user_id = (select id from users where public_id = %(public_id)s)
           and arrival = %(arrival)s and notify
        """,
        msgspec.structs.asdict(command),
    )


REFUND_OUTLOOK: LiteralString = """
    case when refunded > 0 then coalesce((
        select case blocked_by_dispute(payments.intent_id) when 'open' then 'waits' when 'lost' then 'lost' end
          from refunds where payment_id = payments.id and state <> 'made' limit 1), 'back') end"""
"""SQL: the status of the refunds of a row of `payments`; null: there are none."""

_PEOPLE_BETWEEN = sql.number_waiting(
    "registration.event_id", "last_received_at, last_arrival", "registration.received_at, registration.arrival"
)

FIND_OWN: LiteralString = f"""
    -- Each registration of the request knows the one before it on the same waiting list, and counts only the people
    -- between them. So the list is counted once for all of them.
    with registration as (
        select link.public_id, registrations.*, users.proved_at, users.masked_email,
               lag(received_at, 1, '-infinity') over line as last_received_at,
               lag(registrations.arrival, 1, 0::bigint) over line as last_arrival
          from json_to_recordset(%(own)s::json) as link (event_id bigint, public_id text, arrival bigint)
         cross join lateral (select id, proved_at,
                                    left(email, 1) || '•••@' || split_part(email, '@', -1) as masked_email
                               from users where public_id = link.public_id limit 1) as users
         cross join lateral (select * from registrations
                              where event_id = link.event_id and user_id = users.id limit 1) as registrations
         where registrations.arrival = link.arrival
        window line as (partition by registrations.event_id, status order by received_at, registrations.arrival))
    select registration.event_id, registration.public_id, registration.arrival,
           registration.status::text, registration.reason, registration.notify,
           registration.amount_due, coalesce(payment.received, registration.amount_paid) as amount_paid,
           coalesce(payment.currency, events.currency) as currency,
           registration.held_until, registration.cancels_at, payment.url as payment_url,
           coalesce(payment.is_closing, false) as is_closing,
           coalesce(payment.refunded, 0) as refunded, payment.refund_outlook,
           case when events.datetime - payment.refund_days * interval '1 day' > coalesce(
                         registration.cancels_at - %(undo)s * interval '1 second', now())
                then payment.paid - payment.refunded else 0 end as refundable, payment.refund_days, payment.disputed,
           registration.promoted_at,
           extract(epoch from clock_timestamp() - registration.received_at)::integer as age,
           (sum(people_between.number)
                over (partition by registration.event_id, registration.status
                      order by registration.received_at, registration.arrival))::bigint
           as position,
           events.title, events.datetime, events.end_datetime as ends_at, events.timezone, events.location_name,
           events.address, events.cancellation_hours, events.cancelled_at,
           events.waitlisted_count - moved_people.number as waiting_count,
           {PUBLIC_NAME} as organizer_name, organizers.slug as organizer_slug, {PUBLIC_ACCENT} as accent,
           {LOGO} as logo, clock_timestamp() as now,
           organizers.proved_at is null as mails_wait, registration.log_number,
           coalesce(log.arrivals, 0) as arrivals, coalesce(log.moved, 0) as moved,
           coalesce(log.removed, 0) as removed,
           events.draw_at, events.draw_round, events.draw_round_at, events.draw_entries, events.drawn_at,
           events.draw_void_at, {IS_CONFIRMED} as is_confirmed, {DRAWN_PLACE} as drawn_place,
           registration.masked_email, {CAN_BE_CORRECTED} as can_be_corrected,
           events.image_keys[1] as photo, {PHOTO_SIZES} as photo_sizes
      from registration
     cross join lateral (select case when registration.status = 'waitlisted' then {_PEOPLE_BETWEEN} else 0 end
                                as number) as people_between
     cross join lateral (select * from events where id = registration.event_id limit 1) as events
     cross join lateral (select count(*) as number from registrations
                          where registration.status = 'waitlisted' and event_id = registration.event_id
                            and status = 'waitlisted' and reason is not null) as moved_people
      left join lateral (select case when state = 'open' and ends_at > now() then url end as url,
                                state = 'open' and ends_at <= now() as is_closing,
                                case when state = 'paid' then amount end as received, refunded,
                                {REFUND_OUTLOOK} as refund_outlook, currency,
                                case when state in ('opening', 'open', 'paid') then refund_days end as refund_days,
                                case when state = 'paid' then blocked_by_dispute(payments.intent_id) end as disputed,
                                case when state = 'paid' then amount - kept else 0 end as paid from payments
                          where registration.amount_due is not null and event_id = registration.event_id
                            and user_id = registration.user_id and arrival = registration.arrival
                          order by id desc limit 1) as payment on true
     cross join lateral (select name, slug, proved_at, accent, logo_key from users
                          where id = events.organizer_id limit 1) as organizers
      left join lateral (select arrivals, moved, removed from logs
                          where registration.log_number is not null and event_id = registration.event_id
                          order by generation desc limit 1) as log on true
"""


async def find_own_registrations(
    reader: Reader, commands: Sequence[OwnRegistrationCommand]
) -> list[OwnRegistration | None]:
    """The registrations that links name, in the order of the links; None for one that was removed or replaced."""
    links = [Link(command.event_id, command.public_id, command.arrival) for command in commands]
    unique_links = [link._asdict() for link in {*links}]
    parameters = {"own": msgspec.json.encode(unique_links).decode(), "undo": UNDO_SECONDS}
    rows = await reader.rows(OwnRegistration, FIND_OWN, parameters)
    registrations = {Link(row.event_id, row.public_id, row.arrival): row for row in rows}
    return [registrations.get(link) for link in links]


class ConfirmOwnRegistration(OwnRegistrationCommand):
    """Says that the address of a registration is the person's own."""


@refuses(NOT_FOUND)
async def confirm(tx: Tx, caller: Caller, command: ConfirmOwnRegistration) -> None:
    """Store that the address of a registration is the person's own."""
    # First: a transaction that waits while it has the lock of the intake delays all settlements.
    await tx.run(
        "select from users where public_id = %(public_id)s for no key update", {"public_id": command.public_id}
    )
    # All who confirm in time, by the clock of the database, are stored before the list of a draw is read.
    await tx.run("select pg_advisory_xact_lock_shared(%(lock)s)", {"lock": ADVISORY_LOCK_ID})
    await tx.run(
        """
        update users set proved_at = clock_timestamp()
         where public_id = %(public_id)s and proved_at is null and role = 'user' and erased_at is null
           and exists (select from registrations
                        where event_id = %(event_id)s and user_id = users.id and arrival = %(arrival)s)
        """,
        msgspec.structs.asdict(command),
    )
    if (await find_own_registrations(tx, [command]))[0] is None:
        raise NOT_FOUND("There is no such registration any more.")
