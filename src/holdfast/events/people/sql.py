"""Statements on one person's data."""

import datetime as dt
from collections.abc import Sequence
from typing import LiteralString

import msgspec

from holdfast.events.people.links import DataLink
from holdfast.events.people.model import Account, ExportedPayment, ExportedRegistration, Given, Named
from holdfast.events.resources import Reader, Tx

ISSUED: LiteralString = "(extract(epoch from data_link_at) * 1000000)::bigint"
"""By this number a link is known."""

IS_USABLE: LiteralString = f"""
    {ISSUED} = %(issued)s and data_link_at > now() - interval '1 hour'
    and (data_link_holder is null or data_link_holder = %(holder)s)
"""

FIND: LiteralString = f"""
    select id, public_id, email, name, role, slug, inserted_at, proved_at from users
     where (email = %(email)s or id = %(id)s or public_id = %(public_id)s) and erased_at is null
       and (%(issued)s::bigint is null or {IS_USABLE})
"""

IS_TO_COME: LiteralString = "events.cancelled_at is null and events.datetime > now()"


async def find(reader: Reader, named: Named) -> Account | None:
    return await reader.row(Account, FIND, msgspec.structs.asdict(named))


async def lock(tx: Tx, named: Named) -> Account | None:
    """The account, locked: until the transaction ends, nobody can be registered with it, and nothing is mailed to it.

    `FOR UPDATE`, since accepting a registration takes `FOR KEY SHARE`.
    """
    return await tx.row(Account, FIND + " for update", msgspec.structs.asdict(named))


async def lock_events(tx: Tx, user_id: int) -> None:
    """Lock the events that a person is registered for, in the order in which settlement locks them."""
    await tx.run(
        """
        select from events where id in (select event_id from registrations where user_id = %(user_id)s)
         order by id for no key update
        """,
        {"user_id": user_id},
    )


async def list_registrations(reader: Reader, user_id: int) -> list[ExportedRegistration]:
    return await reader.rows(
        ExportedRegistration,
        """
        select event_id, events.title as event, events.datetime, events.timezone,
               events.cancelled_at as event_cancelled_at, coalesce(organizers.name, organizers.slug) as organizer,
               status::text, reason, received_at, settled_at, promoted_at,
               (select stored_at from check_in_scans as scans
                 where scans.event_id = registrations.event_id and scans.user_id = registrations.user_id and is_entry)
               as entered_at, registrations.name, language,
               notify as mails_wanted, amount_paid, amount_due, held_until, currency,
               details_at as details_sent_again_at
          from registrations
          join events on events.id = event_id
          join users as organizers on organizers.id = events.organizer_id
         where user_id = %(user_id)s order by received_at, arrival
        """,
        {"user_id": user_id},
    )


async def list_payments(reader: Reader, user_id: int) -> list[ExportedPayment]:
    return await reader.rows(
        ExportedPayment,
        """
        select event_id, state::text, amount, refunded, currency, intent_id as reference, inserted_at, paid_at
          from payments where user_id = %(user_id)s order by id
        """,
        {"user_id": user_id},
    )


async def list_given(reader: Reader, user_id: int) -> list[Given]:
    """A person's registrations as erasing treats them, in the order of their dates."""
    return await reader.rows(
        Given,
        f"""
        select event_id, title, datetime, timezone, status::text, amount_paid, currency, {IS_TO_COME} as is_to_come
          from registrations join events on events.id = event_id
         where user_id = %(user_id)s order by datetime, event_id
        """,
        {"user_id": user_id},
    )


async def forget_what_was_told(tx: Tx, user_id: int) -> None:
    """Remove what a person told organizers. From now on nothing mails the person about these registrations."""
    await tx.run(
        """
        update registrations set name = null, language = null, notify = false, details_at = null
         where user_id = %(user_id)s
        """,
        {"user_id": user_id},
    )


async def delete_registrations(tx: Tx, user_id: int, event_ids: Sequence[int]) -> None:
    await tx.run(
        "delete from registrations where user_id = %(user_id)s and event_id = any(%(event_ids)s)",
        {"user_id": user_id, "event_ids": list(event_ids)},
    )


async def erase_account(tx: Tx, user_id: int, public_id: str) -> None:
    """Remove the address and the name, and replace the public id: links and handles that others keep lead nowhere."""
    await tx.run("update payments set checkout = null where user_id = %(user_id)s", {"user_id": user_id})
    await tx.run(
        """
        update users set email = null, name = null, password_hash = null, public_id = %(public_id)s,
                         proved_at = null, data_link_at = null, data_link_holder = null, erased_at = now()
         where id = %(user_id)s
        """,
        {"user_id": user_id, "public_id": public_id},
    )


async def send_link(tx: Tx, event_id: int, user_id: str, arrival: int, language: str) -> None:
    """Send a new link to the person of a registration, at most one an hour."""
    statement = _sending("""
        select id from users join registrations on registrations.user_id = id
         where public_id = %(user_id)s and event_id = %(event_id)s and arrival = %(arrival)s
    """)
    await tx.run(statement, {"event_id": event_id, "user_id": user_id, "arrival": arrival, "language": language})


async def send_own_link(tx: Tx, id: int, language: str) -> None:
    """Send a new link to the person with an account, at most one an hour."""
    await tx.run(_sending("%(id)s::bigint"), {"id": id, "language": language})


def _sending(person: LiteralString) -> LiteralString:
    """The statement that puts a mail with a new link into the outbox. `person`: the id of the account."""
    return f"""
        with due as (
            update users set data_link_at = now(), data_link_holder = null
             where id = ({person}) and (data_link_at is null or data_link_at < now() - interval '1 hour')
         returning public_id, email, {ISSUED} as issued)
        -- Somebody waits for this mail: it goes before those that are waiting already.
        insert into mails (kind, thread, recipient, arguments, due_at)
        select 'own_data', 'person ' || public_id, email,
               jsonb_build_object('user_id', public_id, 'issued', issued, 'language', %(language)s::text),
               now() - interval '1 hour'
          from due
    """


async def make_link(tx: Tx, id: int) -> DataLink:
    """A new link to the data of a person. From now on no other works."""
    [link] = await tx.tuples(
        f"""
        update users set data_link_at = now(), data_link_holder = null where id = %(id)s
        returning public_id, {ISSUED} as issued
        """,
        {"id": id},
    )
    return DataLink(*link)


async def use_link(tx: Tx, named: Named) -> None:
    """Let a link work for its present holder alone, if nobody has used it before."""
    await tx.run(
        f"update users set data_link_holder = %(holder)s where public_id = %(public_id)s and {IS_USABLE}",
        msgspec.structs.asdict(named),
    )


async def find_unused(reader: Reader, sent: Sequence[DataLink]) -> set[DataLink]:
    """Those of the links that nobody has used yet and that still work."""
    rows = await reader.tuples(
        f"""
        select person.public_id, sent.issued
          from json_to_recordset(%(sent)s::json) as sent (user_id text, issued bigint)
         cross join lateral (select public_id from users
                              where public_id = sent.user_id and {ISSUED} = sent.issued and data_link_holder is null
                                and data_link_at > now() - interval '1 hour' limit 1) as person
        """,
        {"sent": msgspec.json.encode([each._asdict() for each in sent]).decode()},
    )
    return {DataLink(*each) for each in rows}


async def now(reader: Reader) -> dt.datetime:
    return await reader.value("select now()")
