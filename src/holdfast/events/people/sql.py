"""Statements on one person's data."""

import datetime as dt
from collections.abc import Sequence
from typing import LiteralString

import msgspec

from holdfast.events.people.model import Account, ExportedRegistration, Given, Named
from holdfast.events.resources import Reader, Tx

FIND: LiteralString = """
    select id, public_id, email, name, role, slug, inserted_at from users
     where (email = %(email)s or id = %(id)s or public_id = %(public_id)s) and erased_at is null
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
               status::text, reason, received_at, settled_at, promoted_at, registrations.name, language,
               notify as mails_wanted, amount_paid, currency, details_at as details_sent_again_at
          from registrations
          join events on events.id = event_id
          join users as organizers on organizers.id = organizer_id
         where user_id = %(user_id)s order by received_at, arrival
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
    await tx.run(
        """
        update users set email = null, name = null, password_hash = null, public_id = %(public_id)s,
                         data_link_at = null, data_link_holder = null, erased_at = now()
         where id = %(user_id)s
        """,
        {"user_id": user_id, "public_id": public_id},
    )


async def now(reader: Reader) -> dt.datetime:
    return await reader.value("select now()")
