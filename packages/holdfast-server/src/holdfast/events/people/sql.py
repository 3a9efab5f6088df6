"""Statements on one person's data."""

import datetime as dt
from collections.abc import Sequence
from typing import LiteralString

import msgspec

from holdfast.events.log.model import changed_by
from holdfast.events.people.model import (
    AccountRow,
    AccountSelector,
    AddressHolders,
    AffectedRegistration,
    DataLink,
    ExportedEvent,
    ExportedOrganizer,
    ExportedPayment,
    ExportedRegistration,
)
from holdfast.events.resources import Reader, Tx
from holdfast.events.users.model import IS_UNPROVED, OWNS_EMAIL

ISSUED_AT: LiteralString = "(extract(epoch from data_link_at) * 1000000)::bigint"
"""The number by which a link is identified."""

IS_USABLE: LiteralString = f"""
    {ISSUED_AT} = %(issued)s and data_link_at > now() - interval '1 hour'
    and (data_link_holder is null or data_link_holder = %(holder)s)
"""

_ACCOUNT: LiteralString = "select id, public_id, email, name, role, slug, inserted_at, proved_at from users"

ACCOUNT: LiteralString = f"""
    {_ACCOUNT}
     where (email = %(email)s and {OWNS_EMAIL} or id = %(id)s or public_id = %(public_id)s) and erased_at is null
       and (%(issued)s::bigint is null or {IS_USABLE})
"""

BY_CARD: LiteralString = """
    left join lateral (select amount as paid_by_card from payments
                        where event_id = registrations.event_id and user_id = registrations.user_id
                          and arrival = registrations.arrival and state = 'paid'
                        order by id desc limit 1) as payment on true
"""

IS_TO_COME: LiteralString = "events.cancelled_at is null and events.datetime > now()"


async def find(reader: Reader, selector: AccountSelector) -> AccountRow | None:
    return await reader.row(AccountRow, ACCOUNT, msgspec.structs.asdict(selector))


async def lock(tx: Tx, selector: AccountSelector) -> AccountRow | None:
    """Lock the account: until the transaction ends, it gets no registrations and no mails. Returns the account.

    `FOR UPDATE`, because accepting a registration takes `FOR KEY SHARE`.
    """
    return await tx.row(AccountRow, ACCOUNT + " for update", msgspec.structs.asdict(selector))


async def find_holders(reader: Reader, email: str) -> AddressHolders:
    """The accounts with an address."""
    statement: LiteralString = f"{_ACCOUNT} where email = %(email)s and {OWNS_EMAIL}"
    account = await reader.row(AccountRow, statement, {"email": email})
    return AddressHolders(account, await find_organizer(reader, email))


async def find_organizer(reader: Reader, email: str) -> AccountRow | None:
    """The unproved organizer with an address."""
    return await reader.row(AccountRow, f"{_ACCOUNT} where email = %(email)s and {IS_UNPROVED}", {"email": email})


async def export_organizer(reader: Reader, id: int) -> ExportedOrganizer | None:
    """An organizer, without its events."""
    return await reader.row(
        ExportedOrganizer,
        """
        select name, slug, inserted_at as since, password_hash is not null as has_password,
               array(select name from api_keys where user_id = users.id order by id) as keys
          from users where id = %(id)s and slug is not null
        """,
        {"id": id},
    )


async def list_events(reader: Reader, organizer_id: int) -> list[ExportedEvent]:
    return await reader.rows(
        ExportedEvent,
        "select id, title, datetime, cancelled_at from events where organizer_id = %(id)s order by id",
        {"id": organizer_id},
    )


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
        f"""
        select event_id, events.title as event, events.datetime, end_datetime as ends_at, events.timezone,
               events.cancelled_at as event_cancelled_at, coalesce(organizers.name, organizers.slug) as organizer,
               status::text, reason, received_at, settled_at, promoted_at,
               (select stored_at from check_in_scans as scans
                 where scans.event_id = registrations.event_id and scans.user_id = registrations.user_id and is_entry)
               as entered_at, registrations.name, language,
               notify as mails_wanted, paid_by_card, amount_paid as noted_amount, amount_due, held_until,
               cancels_at, (select count(*) from push_subscriptions as browsers
                              where browsers.event_id = registrations.event_id
                                and browsers.user_id = registrations.user_id) as push_browsers, currency,
               details_at as details_sent_again_at, log_number, nonce, logged_as
          from registrations
          join events on events.id = event_id
          join users as organizers on organizers.id = events.organizer_id {BY_CARD}
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


async def list_affected(reader: Reader, user_id: int) -> list[AffectedRegistration]:
    """A person's registrations as erasing treats them, in the order of their dates."""
    return await reader.rows(
        AffectedRegistration,
        f"""
        select event_id, title, datetime, timezone, status::text, coalesce(paid_by_card, amount_paid) as amount_paid,
               currency, {IS_TO_COME} as is_to_come
          from registrations join events on events.id = event_id {BY_CARD}
         where user_id = %(user_id)s order by datetime, event_id
        """,
        {"user_id": user_id},
    )


async def delete_personal_details(tx: Tx, user_id: int) -> None:
    """Remove the data that a person gave organizers. From now on the person gets no mails about these registrations,
    and no push messages."""
    await tx.run("delete from push_subscriptions where user_id = %(user_id)s", {"user_id": user_id})
    await tx.run(
        """
        update registrations set name = null, language = null, notify = false, details_at = null
         where user_id = %(user_id)s
        """,
        {"user_id": user_id},
    )


async def delete_registrations(tx: Tx, user_id: int, event_ids: Sequence[int]) -> None:
    await tx.run(
        f"""
        delete from registrations using {changed_by("person")}
         where user_id = %(user_id)s and event_id = any(%(event_ids)s)
        """,
        {"user_id": user_id, "event_ids": list(event_ids)},
    )


async def delete_nonces(tx: Tx, user_id: int) -> None:
    """Remove what opens the commitments in public logs. From now on these entries are about no known person."""
    await tx.run(
        """
        update registrations set nonce = null, logged_as = null, form_digest = null where user_id = %(user_id)s
        """,
        {"user_id": user_id},
    )


async def erase_account(tx: Tx, user_id: int, public_id: str) -> None:
    """Remove the address and the name, and replace the public id: links and handles that others have become invalid."""
    await tx.run("update payments set checkout = null where user_id = %(user_id)s", {"user_id": user_id})
    await tx.run(
        """
        update users set email = null, name = null, password_hash = null, public_id = %(public_id)s,
                         proved_at = null, data_link_at = null, data_link_holder = null, erased_at = now()
         where id = %(user_id)s
        """,
        {"user_id": user_id, "public_id": public_id},
    )


async def insert_person(tx: Tx, email: str, public_id: str) -> int | None:
    """Insert an account for the person with an address. Returns its id; None if one exists. Waits for other inserts."""
    return await tx.value(
        f"""
        insert into users (public_id, email) values (%(public_id)s, %(email)s)
            on conflict (email) where {OWNS_EMAIL} do nothing returning id
        """,
        {"public_id": public_id, "email": email},
    )


async def delete_person(tx: Tx, id: int) -> None:
    """Delete an account without dependent rows."""
    await tx.run("delete from users where id = %(id)s", {"id": id})


async def move_identity(tx: Tx, giver: int, taker: int, public_id: str) -> None:
    """Move a person's identity from one account to another. The giver gets a new public id, and loses its address."""
    accounts = {"giver": giver, "taker": taker}
    await tx.run("select move_registrations(%(giver)s, %(taker)s)", accounts)
    [identity] = await tx.tuples(
        "select public_id, data_link_at, data_link_holder from users where id = %(giver)s", accounts
    )
    await erase_account(tx, giver, public_id)
    await tx.run(
        """
        update users set public_id = %(public_id)s, data_link_at = %(link_at)s, data_link_holder = %(link_holder)s
         where id = %(taker)s
        """,
        {**accounts, **dict(zip(("public_id", "link_at", "link_holder"), identity, strict=True))},
    )


async def send_link(tx: Tx, event_id: int, public_id: str, arrival: int, language: str) -> None:
    """Send a new link to the person of a registration, at most one an hour."""
    statement = _send_link_statement("""
        select id from users join registrations on registrations.user_id = id
         where public_id = %(public_id)s and event_id = %(event_id)s and arrival = %(arrival)s
    """)
    await tx.run(statement, {"event_id": event_id, "public_id": public_id, "arrival": arrival, "language": language})


async def send_own_link(tx: Tx, id: int, language: str) -> None:
    """Send a new link to the person with an account, at most one an hour."""
    await tx.run(_send_link_statement("%(id)s::bigint"), {"id": id, "language": language})


def _send_link_statement(person: LiteralString) -> LiteralString:
    """The statement that puts a mail with a new link into the outbox. `person`: the id of the account."""
    return f"""
        with due as (
            update users set data_link_at = now(), data_link_holder = null
             where id = ({person}) and (data_link_at is null or data_link_at < now() - interval '1 hour')
         returning public_id, email, {ISSUED_AT} as issued)
        -- A person waits for this mail: it goes before those that are waiting already.
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
        returning public_id, {ISSUED_AT} as issued
        """,
        {"id": id},
    )
    return DataLink(*link)


async def use_link(tx: Tx, selector: AccountSelector) -> None:
    """Let a link work for its present holder alone, if no other has used it before."""
    await tx.run(
        f"update users set data_link_holder = %(holder)s where public_id = %(public_id)s and {IS_USABLE}",
        msgspec.structs.asdict(selector),
    )


async def find_unused_links(reader: Reader, links: Sequence[DataLink]) -> set[DataLink]:
    """The links that are unused and still work."""
    rows = await reader.tuples(
        f"""
        select person.public_id, sent.issued
          from json_to_recordset(%(sent)s::json) as sent (public_id text, issued bigint)
         cross join lateral (select public_id from users
                              where public_id = sent.public_id and {ISSUED_AT} = sent.issued
                                and data_link_holder is null and data_link_at > now() - interval '1 hour'
                              limit 1) as person
        """,
        {"sent": msgspec.json.encode([link._asdict() for link in links]).decode()},
    )
    return {DataLink(*row) for row in rows}


async def now(reader: Reader) -> dt.datetime:
    return await reader.value("select now()")
