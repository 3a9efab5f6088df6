"""Finds people at the entrance who have no code with them, by their name or address."""

from typing import Any, LiteralString

from holdfast.accounts.signin.addresses import canonical
from holdfast.events.check_in import reading
from holdfast.events.check_in.model import Entry, Found
from holdfast.events.check_in.sql import who
from holdfast.events.registrations import containing
from holdfast.events.registrations.containing import CONTAINS
from holdfast.events.registrations.model import NAME
from holdfast.events.resources import Tx
from holdfast.kit.caller import Caller

MOST = 20

OF_EVENT: LiteralString = "event_id = %(event_id)s"
ORDER: LiteralString = "status, received_at, arrival"
"""The order of the index of an event."""


async def find(tx: Tx, caller: Caller, event_id: int, text: str) -> list[Found]:
    """Those people of an event whose name or address contains a text, those with a seat first."""
    sought = canonical(text)
    params = {"seen_by": caller.tenant_id, "event_id": event_id, "text": sought, "limit": MOST}

    async def read(listed: LiteralString) -> list[tuple[Any, ...]]:
        return await tx.tuples(
            f"""
            select found.name, email, status, public_id, arrival,
                   entry.id::text, entry.device, entry.told_at, entry.stored_at
              from (select {NAME} as name, users.email, status::text, users.public_id, arrival, registrations.user_id
                    {who(listed)} {CONTAINS}
                     order by {ORDER} limit %(limit)s) as found
              left join lateral (select * from check_in_scans
                                  where event_id = %(event_id)s and user_id = found.user_id and is_entry limit 1)
                   as entry on true
            """,
            params,
        )

    rows = await containing.search(tx, event_id, sought, [OF_EVENT], ORDER, MOST, read)
    secret = tx.resources.secret
    return [
        Found(
            name,
            email,
            status,
            str(reading.codes(secret, event_id, public_id, arrival)[0]),
            None if entry[0] is None else Entry(*entry),
        )
        for name, email, status, public_id, arrival, *entry in rows
    ]
