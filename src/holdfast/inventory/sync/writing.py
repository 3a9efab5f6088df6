"""Numbers for the cart check, at the platform: written to metafields of variants, unless others are there."""

from collections.abc import Sequence
from functools import partial

import msgspec
import structlog
from msgspec import Raw, Struct

from holdfast.inventory.resources import Steps
from holdfast.inventory.shopify.admin import Query
from holdfast.inventory.shopify.platform import Refused, Unreachable
from holdfast.inventory.sync import numbers
from holdfast.inventory.sync.numbers import Found, Numbers, Rereading, Unwritable
from holdfast.inventory.sync.platform import ask_in_time

NAMESPACE, KEY = "$app:stock", "pools"
"""The metafield. `$app` is a namespace that no other app can write to."""

STALE = frozenset({"STALE_OBJECT", "INVALID_COMPARE_DIGEST"})
PASSING = frozenset({"INTERNAL_ERROR"})

log = structlog.get_logger()


class _Owner(Struct):
    id: str | None = None


class _Metafield(Struct, rename="camel"):
    compare_digest: str
    owner: _Owner


class _UserError(Struct, rename="camel"):
    code: str | None
    message: str
    element_index: int | None


class _Done(Struct, rename="camel"):
    metafields: list[_Metafield] | None = None
    user_errors: list[_UserError] = []


class _Written(Struct, rename="camel"):
    metafields_set: _Done


class _Value(Struct, rename="camel"):
    compare_digest: str
    value: str


class _Variant(Struct):
    id: str = ""
    metafield: _Value | None = None


class _Read(Struct):
    nodes: list[_Variant | None]


class _Pools(Struct):
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
    _Written,
    cost=15,
)
READ = Query(
    "read_numbers",
    """
    query ReadNumbers($ids: [ID!]!, $namespace: String!, $key: String!) {
      nodes(ids: $ids) {
        ... on ProductVariant { id metafield(namespace: $namespace, key: $key) { compareDigest value } }
      }
    }
    """,
    _Read,
    cost=60,
)


async def write(steps: Steps, shop_id: int, work: Sequence[Numbers]) -> None:
    """Write numbers, and store what came of it. What goes wrong with them does not hold the levels up."""
    wanted = [
        {
            "ownerId": each.variant_gid,
            "namespace": NAMESPACE,
            "key": KEY,
            "type": "json",
            "value": each.value,
            "compareDigest": each.digest,
        }
        for each in work
    ]
    try:
        done = (await ask_in_time(steps, shop_id, WRITE, {"metafields": wanted})).metafields_set
    except (Refused, Unreachable) as error:
        await _rest(steps, shop_id, error)
        return
    if any(error.code in PASSING for error in done.user_errors):
        await _rest(steps, shop_id, Unreachable(f"The platform failed: {done.user_errors[0].message}"))
    elif done.user_errors:
        unwritable = _unwritable(work, done.user_errors)
        await steps.transact(partial(numbers.refused, shop_id=shop_id, unwritable=unwritable))
    else:
        digests = {each.owner.id: each.compare_digest for each in done.metafields or () if each.owner.id}
        await steps.transact(partial(numbers.written, shop_id=shop_id, done=work, digests=digests))


def _unwritable(work: Sequence[Numbers], errors: Sequence[_UserError]) -> list[Unwritable]:
    """What was wrong with which variant; with all, if an error names none."""
    why: dict[str, str | None] = {}
    for error in errors:
        text = None if error.code in STALE else f"{error.code or 'REFUSED'}: {error.message}"
        place = error.element_index
        concerned = work if place is None or not 0 <= place < len(work) else work[place : place + 1]
        for each in concerned:
            why[each.variant_gid] = why.get(each.variant_gid) or text
    return [Unwritable(gid, text) for gid, text in why.items()]


async def read(steps: Steps, shop_id: int, work: Rereading) -> None:
    """Ask what the platform has of variants, and store it."""
    variables = {"ids": work.variant_gids, "namespace": NAMESPACE, "key": KEY}
    try:
        answer = await ask_in_time(steps, shop_id, READ, variables)
    except (Refused, Unreachable) as error:
        await _rest(steps, shop_id, error)
        return
    there = [_found(each) for each in answer.nodes if each and each.id]
    await steps.transact(partial(numbers.found, shop_id=shop_id, asked=work.variant_gids, there=there))


def _found(variant: _Variant) -> Found:
    metafield = variant.metafield
    if metafield is None:
        return Found(variant.id, None, None)
    try:
        pools = msgspec.json.decode(metafield.value, type=_Pools).pools
    except msgspec.DecodeError:
        return Found(variant.id, metafield.compare_digest, None)
    return Found(variant.id, metafield.compare_digest, pools)


async def _rest(steps: Steps, shop_id: int, error: Refused | Unreachable) -> None:
    """Nothing can be written now. It is tried again after a while."""
    log.warning("the numbers for the cart check are not written", shop=shop_id, error=str(error))
    seconds = numbers.REST_SECONDS
    if isinstance(error, Unreachable):
        seconds = max(error.retry_after or 0.0, numbers.SOON_SECONDS)
    await steps.transact(partial(numbers.rest, shop_id=shop_id, error=str(error), seconds=seconds))
