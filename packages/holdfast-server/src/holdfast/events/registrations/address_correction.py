"""Correcting a mistyped address: the visitor whose form made a registration gives it to the right address.

Visitors can type the address of another person into a form, so the mistyped address may have an owner. What keeps
that person safe, and the order:

* Only the link to the outcome allows it, for half an hour. No one but the browser that sent the form has it (decision
  31).
* The owner of the address may want the registration. So it cannot be corrected after a second form with this address,
  after the mails were stopped, or after the person has come; and not for money: a seat that has a price stays.
* The owner is told that the registration is cancelled, and not where it went. The link that was mailed ends.
* The number and the time of arrival stay. The log has no new entry: its commitment goes on to name the first account
  (`logged_as`). Entries of a draw stay as they are.
"""

from typing import Literal, LiteralString

import msgspec
from msgspec import Struct

from holdfast.accounts.addresses import Email, address_error, canonical
from holdfast.events.registrations.links import Link, OwnRegistrationCommand
from holdfast.events.resources import Tx
from holdfast.events.users.model import OWNS_EMAIL, new_public_ids
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import rule
from holdfast.kit.contract.problems import refuses

CORRECTION_TIME: LiteralString = "interval '30 minutes'"
"""How long after a registration the visitor can correct its address."""

CAN_BE_CORRECTED: LiteralString = f"""
    (registration.form_digest is not null and registration.details_at is null and registration.notify
     and registration.status in ('registered', 'waitlisted') and registration.reason is null
     and registration.amount_due is null and registration.amount_paid = 0 and registration.cancels_at is null
     and events.draw_at is null and events.drawn_at is null and events.cancelled_at is null
     and events.datetime > now() and registration.received_at > now() - {CORRECTION_TIME})
"""
"""SQL: whether the address of `registration`, of `events`, can be corrected."""


class CorrectAddress(OwnRegistrationCommand):
    """Asks to give a registration to another address."""

    email: Email

    @rule("email")
    def _can_get_mails(self) -> str | None:
        return address_error(self.email)


class CorrectionResult(Struct, frozen=True):
    """What became of it.

    status   `known`: the new address is registered for the event already; `late`: it cannot be corrected any more.
             Both change nothing
    link     the registration of the new address
    """

    status: Literal["corrected", "known", "late"]
    link: Link | None = None


LOCK_EVENT: LiteralString = "select from events where id = %(event_id)s for no key update"

ADD_PERSON: LiteralString = """
    insert into users (public_id, email) values (%(new_public_id)s, %(email)s) on conflict do nothing
"""

FIND_PEOPLE: LiteralString = f"""
    select giver.id as giver, taker.id as taker, taker.public_id,
           exists (select from registrations
                    where event_id = %(event_id)s and registrations.user_id = taker.id) as is_known
      from (select id from users where public_id = %(public_id)s limit 1) as giver
     cross join (select id, public_id from users where email = %(email)s and {OWNS_EMAIL} limit 1) as taker
"""

ADDRESS_CORRECTION: LiteralString = f"""
    with registration as materialized (
        select * from registrations
         where event_id = %(event_id)s and user_id = %(giver)s and arrival = %(arrival)s for no key update),
    moved_registration as (
        update registrations
           set user_id = %(taker)s,
               logged_as = case when registration.nonce is not null
                                then coalesce(registration.logged_as, %(public_id)s) end
          from registration, events
         where (registrations.event_id, registrations.user_id) = (registration.event_id, registration.user_id)
           and events.id = registration.event_id and {CAN_BE_CORRECTED}
           and not exists (select from check_in_scans as scans
                            where (scans.event_id, scans.user_id) = (registration.event_id, registration.user_id))
        returning registrations.event_id, registrations.arrival, registrations.status::text, registrations.reason,
                  registrations.name, registrations.language, events.organizer_id),
    ended_subscription as (
        delete from push_subscriptions using moved_registration
         where push_subscriptions.event_id = moved_registration.event_id and push_subscriptions.user_id = %(giver)s),
    searched_registration as (
        update searched_registrations
           set user_id = %(taker)s, words = searched_words(%(email)s, coalesce(moved_registration.name, users.name))
          from moved_registration, users
         where searched_registrations.event_id = moved_registration.event_id
           and searched_registrations.user_id = %(giver)s
           and users.id = %(taker)s),
    new_mail as (
        insert into mails (kind, thread, recipient, arguments)
        select kind, 'registration ' || event_id || ' ' || public_id, email,
               jsonb_build_object('organizer_id', moved_registration.organizer_id, 'event_id', event_id,
                                  'user_id', public_id, 'arrival', arrival,
                                  'name', case when id = %(taker)s then moved_registration.name end,
                                  'language', moved_registration.language, 'reason', moved_registration.reason)
          from moved_registration cross join users
         cross join lateral (select case when id = %(taker)s then mail_kind('pending', status)
                                         else mail_kind(status, 'removed') end as kind) as mail
         where id in (%(giver)s, %(taker)s) and email is not null)
    select true from moved_registration
"""


@refuses()
async def correct(tx: Tx, caller: Caller, command: CorrectAddress) -> CorrectionResult:
    """Give a registration to the person with another address, who keeps its place. The result says if it cannot be."""
    names = {**msgspec.structs.asdict(command), "email": canonical(command.email)}
    await tx.run(LOCK_EVENT, names)
    await tx.run(ADD_PERSON, {**names, "new_public_id": new_public_ids(1)[0]})
    people = await tx.tuples(FIND_PEOPLE, names)
    if not people:
        return CorrectionResult("late")
    [(giver, taker, public_id, is_known)] = people
    if giver == taker:
        return CorrectionResult("corrected", Link(command.event_id, command.public_id, command.arrival))
    if is_known:
        return CorrectionResult("known")
    await tx.run("select hide_pending_arrivals(%(giver)s)", {"giver": giver})
    if not await tx.value(ADDRESS_CORRECTION, {**names, "giver": giver, "taker": taker}):
        return CorrectionResult("late")
    return CorrectionResult("corrected", Link(command.event_id, public_id, command.arrival))
