"""When registrations that are stored arrived, and what their commitments in public logs are made of."""

import datetime as dt
from collections.abc import Sequence
from typing import LiteralString, NamedTuple

import msgspec

from holdfast.events.resources import Tx


class Stamp(NamedTuple):
    """The stamp of a registration; all None if there is none.

    nonce        the nonce of its commitment; None: no log has it, or will have it
    logged_as    the public id in its commitment; None: the present one of the person
    """

    received_at: dt.datetime | None
    nonce: str | None
    logged_as: str | None


LOGGED_NONCE: LiteralString = """
    case when log_number is not null
              or status = 'pending'
                 and exists (select from logs where logs.event_id = registrations.event_id and closed_at is null)
         then nonce::text end
"""
"""SQL: the nonce of a row of `registrations`, if a log has the registration, or will have it."""

LOGGED_AT: LiteralString = """
    coalesce((select entered_at from event_entries
               where event_entries.event_id = registrations.event_id and ticket = log_number limit 1), received_at)
"""
"""SQL: when a row of `registrations` came, as a log says it: a draw gives it another `received_at`."""

FIND: LiteralString = f"""
    select {LOGGED_AT}, {LOGGED_NONCE}, logged_as
      from json_to_recordset(%(people)s::json) as person (index integer, event_id bigint, public_id text)
      left join lateral (select id from users where users.public_id = person.public_id limit 1) as users on true
      left join lateral (select * from registrations
                          where event_id = person.event_id and user_id = users.id limit 1) as registrations on true
     order by index
"""


async def find_stamps(tx: Tx, people: Sequence[tuple[int, str | None]], commits: bool) -> list[Stamp]:
    """The stamps of the registrations of (event, public id of a person), in the order of `people`.

    commits    whether the transaction is committed with it
    """
    rows = [
        {"index": index, "event_id": event_id, "public_id": public_id}
        for index, (event_id, public_id) in enumerate(people)
    ]
    find = tx.tuples_and_commit if commits else tx.tuples
    stamps = await find(FIND, {"people": msgspec.json.encode(rows).decode()})
    return [Stamp(*stamp) for stamp in stamps]
