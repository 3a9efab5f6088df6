"""Finds people without a code at the entrance, by name or mail address."""

from typing import Any, LiteralString

from holdfast.accounts.signin.addresses import canonical
from holdfast.events.check_in import code_reader
from holdfast.events.check_in.model import PersonMatch, StoredScan
from holdfast.events.check_in.sql import people_of_event
from holdfast.events.registrations import substring_search
from holdfast.events.registrations.model import NAME
from holdfast.events.registrations.substring_search import CONTAINS
from holdfast.events.resources import Tx
from holdfast.kit.contract.caller import Caller

MAX_MATCHES = 20

OF_EVENT: LiteralString = "event_id = %(event_id)s"
ORDER: LiteralString = "status, received_at, arrival"
"""The order of the index on the registrations of an event."""


async def find(tx: Tx, caller: Caller, event_id: int, text: str) -> list[PersonMatch]:
    """The people of an event whose name or mail address contains the text; people with a seat come first."""
    sought = canonical(text)
    params = {"seen_by": caller.tenant_id, "event_id": event_id, "text": sought, "limit": MAX_MATCHES}

    async def read(registration_query: LiteralString) -> list[tuple[Any, ...]]:
        return await tx.tuples(
            f"""
            select person.name, email, status, public_id, arrival,
                   entry.id::text, entry.device, entry.told_at, entry.stored_at
              from (select {NAME} as name, users.email, status::text, users.public_id, arrival, registrations.user_id
                    {people_of_event(registration_query)} {CONTAINS}
                     order by {ORDER} limit %(limit)s) as person
              left join lateral (select * from check_in_scans
                                  where event_id = %(event_id)s and user_id = person.user_id and is_entry limit 1)
                   as entry on true
            """,
            params,
        )

    rows = await substring_search.search(tx, event_id, sought, [OF_EVENT], ORDER, MAX_MATCHES, read)
    secret = tx.resources.secret
    return [
        PersonMatch(
            name,
            email,
            status,
            str(code_reader.short_codes(secret, event_id, public_id, arrival)[0]),
            None if entry[0] is None else StoredScan(*entry),
        )
        for name, email, status, public_id, arrival, *entry in rows
    ]
