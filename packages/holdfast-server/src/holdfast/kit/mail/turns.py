"""Turns: which due mails are sent next. Owners take turns, and so do the shards of their mailboxes."""

from collections.abc import Sequence
from typing import Any, LiteralString

from holdfast.kit.mail.outbox import OWNER, Mail
from holdfast.kit.postgres.database import Reader


async def due_mails(reader: Reader[Any], shards: Sequence[tuple[int, str]], limit: int) -> list[Mail]:
    """The next due mails of shards, at most `limit`: of each thread the first that is not held.

    `is_behind` of a mail says whether a held one is before it.

    The first half of what a shard gives is for mails of no owner, such as links to sign in. After these, owners take
    turns, and mails to many people at once come last. Shards take turns too.

    shards    numbers of shards, each with the owner who has the first turn
    """
    return await reader.rows(
        Mail,
        DUE_MAILS,
        {
            "shards": [number for number, _ in shards],
            "first_owners": [owner or FIRST_OWNER for _, owner in shards],
            "limit": limit,
            "no_owner_places": limit // 2,
        },
    )


FIRST_OWNER = " "
"""A text before each owner, and after the empty one of mails of no owner."""


def next_owner(owner: str) -> str:
    """A text between this owner and the next one, with which the next turn begins.

    An owner is a number. No other number sorts between it and itself with a space.
    """
    return f"{owner} "


class OwnerTurns:
    """The owner with whom the next lease begins: each second turn is for mails without an owner."""

    def __init__(self) -> None:
        self.first_owner = FIRST_OWNER
        self.no_owner_first = True

    def advance(self, owners: Sequence[str]) -> None:
        """Go on after the last owner of the leased shards. A shard with mails of no owner has an empty one."""
        if owners:
            self.no_owner_first = not self.no_owner_first
        if named_owners := [owner for owner in owners if owner]:
            self.first_owner = next_owner(named_owners[-1])


IS_DUE: LiteralString = "ended_at is null and hold is null and due_at <= now()"

SHARD: LiteralString = "mail_share(recipient)"
"""SQL: the shard of a mail, as the index `mails_in_shares` has it."""

# With `limit 1` PostgreSQL reads an index, even if its statistics do not know yet what was stored just now.
IS_BLOCKED: LiteralString = """
    coalesce((select true from mails as earlier
               where earlier.thread = mails.thread and earlier.ended_at is null and earlier.id < mails.id
                 and earlier.hold is null
               order by id limit 1), false)
"""


def owners_in_turn(condition: LiteralString, first_owner: LiteralString) -> LiteralString:
    """SQL: the owners of due mails, in the order of their turns. A `where` can follow.

    An index is read from owner to owner, in ranges of owners from `first` to before `last`: mails of no owner; the
    owners from the first one on, then those before it; and both again for mails to many people at once (`bulk`). It is
    read no further as soon as there are enough owners.

    condition      which mails, beside the due ones
    first_owner    the owner who has the first turn
    """
    mails: LiteralString = f"select {OWNER} from mails where {IS_DUE} and {condition} and mails.bulk = owner_range.bulk"
    is_inside: LiteralString = "owner < coalesce(owner_range.last, owner || 'x')"
    return f"""
        select owner_range.bulk, due_owner.owner, row_number() over () as turn
          from (values (false, '', ' '), (false, {first_owner}, null), (false, ' ', {first_owner}),
                       (true, {first_owner}, null), (true, '', {first_owner})) as owner_range (bulk, first, last)
         cross join lateral (
            with recursive next_owner (owner) as (
                ({mails} and {OWNER} >= owner_range.first order by {OWNER} limit 1)
                union all
                select ({mails} and {OWNER} > next_owner.owner order by {OWNER} limit 1)
                  from next_owner where {is_inside})
            select owner from next_owner where {is_inside}) as due_owner
    """


DUE_MAILS: LiteralString = f"""
    select id, kind, thread, recipient, arguments, inserted_at, attempts, is_behind, owner, shard
      from unnest(%(shards)s::integer[], %(first_owners)s::text[]) with ordinality as leased (shard, first_owner, rank)
     cross join lateral (
        with owners as materialized (
            {owners_in_turn(f"{SHARD} = leased.shard", "leased.first_owner")}
             where (
                select true from mails
                 where {IS_DUE} and {SHARD} = leased.shard and mails.bulk = owner_range.bulk
                   and {OWNER} = due_owner.owner and not {IS_BLOCKED}
                 order by due_at, id limit 1)
             limit %(limit)s)
        select first_mails.*, owner,
               coalesce((select true from mails as earlier
                          where earlier.thread = first_mails.thread and earlier.ended_at is null
                            and earlier.id < first_mails.id
                          order by id limit 1), false) as is_behind,
               row_number() over (
                   order by owners.bulk, owner <> '' or place > %(no_owner_places)s, place, turn) as place_in_shard
          from owners
         cross join lateral (
            select *, row_number() over (order by due_at, id) as place
              from (select * from mails
                     where {IS_DUE} and {SHARD} = leased.shard and mails.bulk = owners.bulk and {OWNER} = owners.owner
                       and not {IS_BLOCKED}
                     order by due_at, id limit %(limit)s) as mails) as first_mails
         order by place_in_shard
         limit %(limit)s) as due
     order by due.bulk, place_in_shard, rank
     limit %(limit)s
"""


async def seconds_until_next_due(reader: Reader[Any]) -> float | None:
    """Seconds until the next deferred mail is due, or a lease of a shard ends; None if there is neither."""
    return await reader.value(
        """
        select extract(epoch from min(due_at) - clock_timestamp())::float8
          from ((select due_at from mails
                  where ended_at is null and hold is null and not bulk and due_at > now() order by due_at limit 1)
                union all
                (select due_at from mails
                  where ended_at is null and hold is null and bulk and due_at > now() order by due_at limit 1)
                union all
                select due_at from mail_shares where due_at > now()) as next
        """
    )
