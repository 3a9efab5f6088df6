"""Numbers for the cart check: what each variant draws on, as the function at the platform reads it before payment.

One row a variant, and only the newest state counts. What is written is dated: where the service has not been for a
week, numbers say nothing, and stop no sale.
"""

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString

import msgspec
from msgspec import Struct

from holdfast.inventory.resources import Tx

AT_ONCE = 25
"""The most metafields that one call writes: the platform takes no more."""

APART_SECONDS = 2
"""Seconds from one writing of a variant to the next. Levels come first: there a call sets ten times as many."""

VALID_DAYS, RENEWED_DAYS = 8, 4
"""For how many days numbers are valid, and after how many they are written again if nothing else changes."""

REST_SECONDS, SOON_SECONDS = 300.0, 5.0
"""Seconds after which writing is tried again that the platform does not allow, and such as it did not answer."""

_TO_WRITE: LiteralString = "(read_again or wanted <> coalesce(written, '[]')) and refused is null"
_WRITTEN: LiteralString = "wanted <> '[]' and refused is null"

DUE: LiteralString = f"""
    (select greatest(numbers_rest_until, each.due)
       from (select least(
                (select min(case when read_again then now()
                                 else coalesce(written_at + interval '2 seconds', now()) end)
                   from cart_numbers where cart_numbers.shop_id = syncs.shop_id and {_TO_WRITE}),
                (select min(written_at) + interval '4 days'
                   from cart_numbers where cart_numbers.shop_id = syncs.shop_id and {_WRITTEN})) as due) as each
      where each.due is not null)
"""
"""When the next numbers of a shop are due; null: there are none to be written."""


class Numbers(Struct, frozen=True):
    """What is to be written of a variant.

    pools     each as its id, the units of one sale, and the units that can be sold
    digest    how the platform names what it has; None: it has nothing
    until     the last day on which the numbers are valid
    """

    variant_gid: str
    pools: list[tuple[int, int, int]]
    version: int
    digest: str | None
    until: str

    @property
    def value(self) -> str:
        """The metafield, as `extensions/cart-check` reads it."""
        return msgspec.json.encode({"v": self.version, "until": self.until, "pools": self.pools}).decode()


class Found(Struct, frozen=True):
    """What the platform has of a variant. `pools`: None if there is nothing that can be read."""

    variant_gid: str
    digest: str | None
    pools: Any


class Unwritable(Struct, frozen=True):
    """A variant whose numbers the platform refused. `why`: None: it has others than were expected."""

    variant_gid: str
    why: str | None


class Rereading(Struct, frozen=True):
    """Variants of which is to be read what the platform has."""

    variant_gids: list[str]


async def reckon(tx: Tx, shop_id: int, since: int, *, everything: bool) -> None:
    """Reckon the numbers of the variants whose pools have changed since a version; or of all."""
    await tx.run(
        """
        with concerned as (
            select variant_gid as gid from members join pools on pools.id = pool_id
             where pools.shop_id = %(shop_id)s and (%(everything)s or pools.version > %(since)s)
             union
            select gid from variants where shop_id = %(shop_id)s and version > %(since)s and not %(everything)s),
        reckoned as (
            select gid, coalesce(jsonb_agg(jsonb_build_array(pools.id, units_per_sale,
                                                             greatest(0, on_hand - held - buffer)) order by pools.id)
                                 filter (where status = 'active' and not allow_negative), '[]') as wanted
              from concerned
              left join members on members.shop_id = %(shop_id)s and variant_gid = gid
              left join pools on pools.id = pool_id
             group by gid)
        insert into cart_numbers (shop_id, variant_gid, wanted, version)
        select %(shop_id)s, gid, wanted, version
          from reckoned join shared_inventories on shop_id = %(shop_id)s
         order by gid
            on conflict (shop_id, variant_gid) do update
           set wanted = excluded.wanted, version = excluded.version, refused = null
         where cart_numbers.wanted <> excluded.wanted
        """,
        {"shop_id": shop_id, "since": since, "everything": everything},
    )


async def forget(tx: Tx, shop_id: int) -> None:
    """Forget the numbers of a shop: it does not grant any more that they are written, or it begins anew."""
    await tx.run("delete from cart_numbers where shop_id = %(shop_id)s", {"shop_id": shop_id})
    await tx.run(
        """
        update syncs set numbers = false, numbers_error = null, numbers_rest_until = null where shop_id = %(shop_id)s
        """,
        {"shop_id": shop_id},
    )


async def next_writing(tx: Tx, shop_id: int) -> list[Numbers] | Rereading | None:
    """What is to be written next, or to be read before; None: nothing now."""
    unknown = await tx.tuples(
        f"""
        select variant_gid from cart_numbers join syncs using (shop_id)
         where shop_id = %(shop_id)s and {_TO_WRITE} and read_again
           and (numbers_rest_until is null or numbers_rest_until <= clock_timestamp()) limit %(limit)s
        """,
        {"shop_id": shop_id, "limit": AT_ONCE},
    )
    if unknown:
        return Rereading([gid for (gid,) in unknown])
    rows = await tx.rows(
        Numbers,
        f"""
        with chosen as (
            (select variant_gid, wanted, version, digest, written_at from cart_numbers
              where shop_id = %(shop_id)s and {_TO_WRITE}
                and (written_at is null or written_at <= (select clock_timestamp()) - %(apart)s * interval '1 second')
              order by written_at nulls first limit %(limit)s)
             union
            (select variant_gid, wanted, version, digest, written_at from cart_numbers
              where shop_id = %(shop_id)s and {_WRITTEN}
                and written_at <= (select clock_timestamp()) - %(renewed)s * interval '1 day'
              order by written_at limit %(limit)s))
        select variant_gid, wanted as pools, version, digest,
               to_char(clock_timestamp() at time zone 'UTC' + %(valid)s * interval '1 day', 'YYYY-MM-DD') as until
          from chosen
         where exists (select from syncs where shop_id = %(shop_id)s
                          and (numbers_rest_until is null or numbers_rest_until <= clock_timestamp()))
         order by chosen.written_at nulls first limit %(limit)s
        """,
        {
            "shop_id": shop_id,
            "limit": AT_ONCE,
            "apart": APART_SECONDS,
            "renewed": RENEWED_DAYS,
            "valid": VALID_DAYS,
        },
    )
    return rows or None


async def written(tx: Tx, shop_id: int, done: Sequence[Numbers], digests: Mapping[str, str]) -> None:
    """Store that the platform has numbers, and how it names them."""
    given = [{"gid": each.variant_gid, "pools": each.pools, "digest": digests.get(each.variant_gid)} for each in done]
    await tx.run(
        """
        with given as (select * from json_to_recordset(%(given)s) as given (gid text, pools jsonb, digest text))
        update cart_numbers
           set written = pools, digest = given.digest, written_at = clock_timestamp(), read_again = given.digest is null
          from given where shop_id = %(shop_id)s and variant_gid = gid
        """,
        {"shop_id": shop_id, "given": msgspec.json.encode(given).decode()},
    )
    await tx.run(
        """
        update syncs set numbers_error = null, numbers_rest_until = null
         where shop_id = %(shop_id)s and numbers_error is not null
        """,
        {"shop_id": shop_id},
    )


async def refused(tx: Tx, shop_id: int, unwritable: Sequence[Unwritable]) -> None:
    """Store that the platform has written nothing, and what was wrong with some of it, which then waits a while."""
    await tx.run(
        """
        with given as (
            select * from json_to_recordset(%(given)s) as given (variant_gid text, why text))
        update cart_numbers
           set read_again = read_again or why is null, refused = left(why, 500), written_at = clock_timestamp()
          from given where shop_id = %(shop_id)s and cart_numbers.variant_gid = given.variant_gid
        """,
        {"shop_id": shop_id, "given": msgspec.json.encode(unwritable).decode()},
    )


async def found(tx: Tx, shop_id: int, asked: Sequence[str], there: Sequence[Found]) -> None:
    """Store what the platform has of variants that were asked for; those that are not there have nothing."""
    await tx.run(
        """
        with given as (
            select * from json_to_recordset(%(given)s) as given (variant_gid text, digest text, pools jsonb))
        update cart_numbers
           set read_again = false, digest = given.digest,
               written = case when jsonb_typeof(pools) = 'array' then pools end
          from unnest(%(asked)s::text[]) as asked (gid) left join given on given.variant_gid = asked.gid
         where shop_id = %(shop_id)s and cart_numbers.variant_gid = asked.gid
        """,
        {"shop_id": shop_id, "asked": [*asked], "given": msgspec.json.encode(there).decode()},
    )


async def rest(tx: Tx, shop_id: int, error: str, seconds: float) -> None:
    """Write nothing for a while."""
    await tx.run(
        """
        update syncs set numbers_error = left(%(error)s, 1000),
                         numbers_rest_until = clock_timestamp() + %(seconds)s * interval '1 second'
         where shop_id = %(shop_id)s
        """,
        {"shop_id": shop_id, "error": error, "seconds": seconds},
    )
