"""The numbers for the cart check: what each variant draws on, as the function at the platform reads it.

One row for each variant, and only the newest values count: they are written to metafields of variants at the platform,
unless it has newer ones. Numbers carry a date: where none were written for a week, they are void, and stop no sale.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, LiteralString

import msgspec
import structlog
from msgspec import Raw, Struct

from holdfast.inventory.resources import Steps, Tx
from holdfast.inventory.shopify.admin import Query
from holdfast.inventory.shopify.platform_client import PlatformRefusal, PlatformUnreachable
from holdfast.inventory.sync.level_calls import call_in_time

log = structlog.get_logger()

MAX_METAFIELDS_PER_CALL = 25
"""The most metafields in one call: a limit of the platform."""

MIN_WRITE_INTERVAL_SECONDS = 2
"""Seconds from one write of a variant to the next. Levels come first: one call sets ten times as many."""

VALID_DAYS, RENEWED_DAYS = 8, 4
"""The days for which numbers are valid, and those after which they are written again if nothing else changes."""

REFUSED_RETRY_SECONDS, UNREACHABLE_RETRY_SECONDS = 300.0, 5.0
"""Seconds until the next try after the platform has refused a write, and after it has not answered."""

_TO_WRITE: LiteralString = "(read_again or wanted <> coalesce(written, '[]')) and refused is null"
_WRITTEN: LiteralString = "wanted <> '[]' and refused is null"

DUE: LiteralString = f"""
    (select greatest(numbers_rest_until, next_write.due)
       from (select least(
                (select min(case when read_again then now()
                                 else coalesce(written_at + interval '2 seconds', now()) end)
                   from cart_numbers where cart_numbers.shop_id = syncs.shop_id and {_TO_WRITE}),
                (select min(written_at) + interval '4 days'
                   from cart_numbers where cart_numbers.shop_id = syncs.shop_id and {_WRITTEN})) as due) as next_write
      where next_write.due is not null)
"""
"""When the next numbers of a shop are due; null: none are to be written."""

STALE_CODES = frozenset({"STALE_OBJECT", "INVALID_COMPARE_DIGEST"})
RETRYABLE_CODES = frozenset({"INTERNAL_ERROR"})


class CartNumbers(Struct, frozen=True):
    """The numbers to write of a variant.

    pools     of each its id, the units of one sale, and the units that can be sold
    digest    the platform's digest of the present value; None: it has none
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


class PlatformNumbers(Struct, frozen=True):
    """The numbers of a variant at the platform. `pools`: None if there is no readable value."""

    variant_gid: str
    digest: str | None
    pools: Any


class NumbersRefusal(Struct, frozen=True):
    """A variant whose numbers the platform refused. `why`: None: the platform has other numbers than expected."""

    variant_gid: str
    why: str | None


class NumbersReading(Struct, frozen=True):
    """Variants whose numbers are to be read from the platform."""

    variant_gids: list[str]


async def compute(tx: Tx, shop_id: int, since: int, *, everything: bool) -> None:
    """Compute the numbers of all variants, or of those whose pools have changed since a version."""
    await tx.run(
        """
        with concerned as (
            select variant_gid as gid from members join pools on pools.id = pool_id
             where pools.shop_id = %(shop_id)s and (%(everything)s or pools.version > %(since)s)
             union
            select gid from variants where shop_id = %(shop_id)s and version > %(since)s and not %(everything)s),
        computed as (
            select gid, coalesce(jsonb_agg(jsonb_build_array(pools.id, units_per_sale,
                                                             greatest(0, on_hand - held - buffer)) order by pools.id)
                                 filter (where status = 'active' and not allow_negative), '[]') as wanted
              from concerned
              left join members on members.shop_id = %(shop_id)s and variant_gid = gid
              left join pools on pools.id = pool_id
             group by gid)
        insert into cart_numbers (shop_id, variant_gid, wanted, version)
        select %(shop_id)s, gid, wanted, version
          from computed join shared_inventories on shop_id = %(shop_id)s
         order by gid
            on conflict (shop_id, variant_gid) do update
           set wanted = excluded.wanted, version = excluded.version, refused = null
         where cart_numbers.wanted <> excluded.wanted
        """,
        {"shop_id": shop_id, "since": since, "everything": everything},
    )


async def forget(tx: Tx, shop_id: int) -> None:
    """Delete the numbers of a shop: it no longer grants their writing, or it starts again."""
    await tx.run("delete from cart_numbers where shop_id = %(shop_id)s", {"shop_id": shop_id})
    await tx.run(
        """
        update syncs set numbers = false, numbers_error = null, numbers_rest_until = null where shop_id = %(shop_id)s
        """,
        {"shop_id": shop_id},
    )


async def next_writing(tx: Tx, shop_id: int) -> list[CartNumbers] | NumbersReading | None:
    """The numbers to write next, or the variants to read first; None: nothing is due."""
    unknown = await tx.tuples(
        f"""
        select variant_gid from cart_numbers join syncs using (shop_id)
         where shop_id = %(shop_id)s and {_TO_WRITE} and read_again
           and (numbers_rest_until is null or numbers_rest_until <= clock_timestamp()) limit %(limit)s
        """,
        {"shop_id": shop_id, "limit": MAX_METAFIELDS_PER_CALL},
    )
    if unknown:
        return NumbersReading([gid for (gid,) in unknown])
    rows = await tx.rows(
        CartNumbers,
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
            "limit": MAX_METAFIELDS_PER_CALL,
            "apart": MIN_WRITE_INTERVAL_SECONDS,
            "renewed": RENEWED_DAYS,
            "valid": VALID_DAYS,
        },
    )
    return rows or None


async def store_written(
    tx: Tx, shop_id: int, written_numbers: Sequence[CartNumbers], digests: Mapping[str, str]
) -> None:
    """Store that the platform has these numbers, and their digests."""
    records = [
        {"gid": numbers.variant_gid, "pools": numbers.pools, "digest": digests.get(numbers.variant_gid)}
        for numbers in written_numbers
    ]
    await tx.run(
        """
        with number as (select * from json_to_recordset(%(records)s) as number (gid text, pools jsonb, digest text))
        update cart_numbers
           set written = pools, digest = number.digest, written_at = clock_timestamp(),
               read_again = number.digest is null
          from number where shop_id = %(shop_id)s and variant_gid = gid
        """,
        {"shop_id": shop_id, "records": msgspec.json.encode(records).decode()},
    )
    await tx.run(
        """
        update syncs set numbers_error = null, numbers_rest_until = null
         where shop_id = %(shop_id)s and numbers_error is not null
        """,
        {"shop_id": shop_id},
    )


async def store_refusals(tx: Tx, shop_id: int, unwritable: Sequence[NumbersRefusal]) -> None:
    """Store that the platform has written nothing, and why. Variants with an error wait a while."""
    await tx.run(
        """
        with refusal as (
            select * from json_to_recordset(%(records)s) as refusal (variant_gid text, why text))
        update cart_numbers
           set read_again = read_again or why is null, refused = left(why, 500), written_at = clock_timestamp()
          from refusal where shop_id = %(shop_id)s and cart_numbers.variant_gid = refusal.variant_gid
        """,
        {"shop_id": shop_id, "records": msgspec.json.encode(unwritable).decode()},
    )


async def store_read(
    tx: Tx, shop_id: int, variant_gids: Sequence[str], platform_numbers: Sequence[PlatformNumbers]
) -> None:
    """Store the numbers at the platform of the variants that were read; those without an entry have none."""
    await tx.run(
        """
        with reading as (
            select * from json_to_recordset(%(records)s) as reading (variant_gid text, digest text, pools jsonb))
        update cart_numbers
           set read_again = false, digest = reading.digest,
               written = case when jsonb_typeof(pools) = 'array' then pools end
          from unnest(%(gids)s::text[]) as request (gid) left join reading on reading.variant_gid = request.gid
         where shop_id = %(shop_id)s and cart_numbers.variant_gid = request.gid
        """,
        {"shop_id": shop_id, "gids": [*variant_gids], "records": msgspec.json.encode(platform_numbers).decode()},
    )


async def pause_writing(tx: Tx, shop_id: int, error: str, seconds: float) -> None:
    """Write nothing for a while."""
    await tx.run(
        """
        update syncs set numbers_error = left(%(error)s, 1000),
                         numbers_rest_until = clock_timestamp() + %(seconds)s * interval '1 second'
         where shop_id = %(shop_id)s
        """,
        {"shop_id": shop_id, "error": error, "seconds": seconds},
    )


NAMESPACE, KEY = "$app:stock", "pools"
"""The metafield. `$app` is a namespace that no other app can write to."""


class _Owner(Struct):
    id: str | None = None


class _Metafield(Struct, rename="camel"):
    compare_digest: str
    owner: _Owner


class _WriteError(Struct, rename="camel"):
    code: str | None
    message: str
    element_index: int | None


class _WritePayload(Struct, rename="camel"):
    metafields: list[_Metafield] | None = None
    user_errors: list[_WriteError] = []


class _WriteAnswer(Struct, rename="camel"):
    metafields_set: _WritePayload


class _MetafieldValue(Struct, rename="camel"):
    compare_digest: str
    value: str


class _VariantNode(Struct):
    id: str = ""
    metafield: _MetafieldValue | None = None


class _ReadAnswer(Struct):
    nodes: list[_VariantNode | None]


class _MetafieldJson(Struct):
    pools: Raw


WRITE = Query(
    "write_numbers",
    """
    mutation WriteNumbers($metafields: [MetafieldsSetInput!]!) {
      metafieldsSet(metafields: $metafields) {
        metafields { compareDigest owner { ... on ProductVariant { id } } }
        userErrors { code message elementIndex }
      }
    }
    """,
    _WriteAnswer,
    cost=15,
)
READ_NUMBERS = Query(
    "read_numbers",
    """
    query ReadNumbers($ids: [ID!]!, $namespace: String!, $key: String!) {
      nodes(ids: $ids) {
        ... on ProductVariant { id metafield(namespace: $namespace, key: $key) { compareDigest value } }
      }
    }
    """,
    _ReadAnswer,
    cost=60,
)


async def write(steps: Steps, shop_id: int, work: Sequence[CartNumbers]) -> None:
    """Write numbers, and store the result. A failure does not delay the levels."""
    metafields = [
        {
            "ownerId": numbers.variant_gid,
            "namespace": NAMESPACE,
            "key": KEY,
            "type": "json",
            "value": numbers.value,
            "compareDigest": numbers.digest,
        }
        for numbers in work
    ]
    try:
        payload = (await call_in_time(steps, shop_id, WRITE, {"metafields": metafields})).metafields_set
    except (PlatformRefusal, PlatformUnreachable) as error:
        await _pause_after_error(steps, shop_id, error)
        return
    if any(error.code in RETRYABLE_CODES for error in payload.user_errors):
        await _pause_after_error(
            steps, shop_id, PlatformUnreachable(f"The platform failed: {payload.user_errors[0].message}")
        )
    elif payload.user_errors:
        unwritable = _unwritable(work, payload.user_errors)
        await steps.transact(partial(store_refusals, shop_id=shop_id, unwritable=unwritable))
    else:
        digests = {
            metafield.owner.id: metafield.compare_digest for metafield in payload.metafields or () if metafield.owner.id
        }
        await steps.transact(partial(store_written, shop_id=shop_id, written_numbers=work, digests=digests))


def _unwritable(work: Sequence[CartNumbers], errors: Sequence[_WriteError]) -> list[NumbersRefusal]:
    """The refusal of each variant; of all variants if an error names none."""
    why: dict[str, str | None] = {}
    for error in errors:
        text = None if error.code in STALE_CODES else f"{error.code or 'REFUSED'}: {error.message}"
        index = error.element_index
        concerned = work if index is None or not 0 <= index < len(work) else work[index : index + 1]
        for numbers in concerned:
            why[numbers.variant_gid] = why.get(numbers.variant_gid) or text
    return [NumbersRefusal(gid, text) for gid, text in why.items()]


async def read(steps: Steps, shop_id: int, work: NumbersReading) -> None:
    """Read the metafields of variants, and store their values."""
    variables = {"ids": work.variant_gids, "namespace": NAMESPACE, "key": KEY}
    try:
        answer = await call_in_time(steps, shop_id, READ_NUMBERS, variables)
    except (PlatformRefusal, PlatformUnreachable) as error:
        await _pause_after_error(steps, shop_id, error)
        return
    platform_numbers = [_platform_numbers(variant) for variant in answer.nodes if variant and variant.id]
    await steps.transact(
        partial(
            store_read,
            shop_id=shop_id,
            variant_gids=work.variant_gids,
            platform_numbers=platform_numbers,
        )
    )


def _platform_numbers(variant: _VariantNode) -> PlatformNumbers:
    metafield = variant.metafield
    if metafield is None:
        return PlatformNumbers(variant.id, None, None)
    try:
        pools = msgspec.json.decode(metafield.value, type=_MetafieldJson).pools
    except msgspec.DecodeError:
        return PlatformNumbers(variant.id, metafield.compare_digest, None)
    return PlatformNumbers(variant.id, metafield.compare_digest, pools)


async def _pause_after_error(steps: Steps, shop_id: int, error: PlatformRefusal | PlatformUnreachable) -> None:
    """Store the error, and write nothing for a while."""
    log.warning("the numbers for the cart check are not written", shop=shop_id, error=str(error))
    seconds = REFUSED_RETRY_SECONDS
    if isinstance(error, PlatformUnreachable):
        seconds = max(error.retry_after or 0.0, UNREACHABLE_RETRY_SECONDS)
    await steps.transact(partial(pause_writing, shop_id=shop_id, error=str(error), seconds=seconds))
