"""Writes the numbers for the cart check to metafields of variants at the platform, unless it has newer ones."""

from collections.abc import Sequence
from functools import partial

import msgspec
import structlog
from msgspec import Raw, Struct

from holdfast.inventory.resources import Steps
from holdfast.inventory.shopify.admin import Query
from holdfast.inventory.shopify.platform import PlatformRefusal, PlatformUnreachable
from holdfast.inventory.sync import cart_check_numbers
from holdfast.inventory.sync.cart_check_numbers import CartNumbers, NumbersReading, NumbersRefusal, PlatformNumbers
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
READ = Query(
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
        payload = (await ask_in_time(steps, shop_id, WRITE, {"metafields": metafields})).metafields_set
    except (PlatformRefusal, PlatformUnreachable) as error:
        await _pause_writing(steps, shop_id, error)
        return
    if any(error.code in PASSING for error in payload.user_errors):
        await _pause_writing(
            steps, shop_id, PlatformUnreachable(f"The platform failed: {payload.user_errors[0].message}")
        )
    elif payload.user_errors:
        unwritable = _unwritable(work, payload.user_errors)
        await steps.transact(partial(cart_check_numbers.store_refusals, shop_id=shop_id, unwritable=unwritable))
    else:
        digests = {
            metafield.owner.id: metafield.compare_digest for metafield in payload.metafields or () if metafield.owner.id
        }
        await steps.transact(partial(cart_check_numbers.store_written, shop_id=shop_id, done=work, digests=digests))


def _unwritable(work: Sequence[CartNumbers], errors: Sequence[_WriteError]) -> list[NumbersRefusal]:
    """Return the refusal of each variant; of all variants if an error names none."""
    why: dict[str, str | None] = {}
    for error in errors:
        text = None if error.code in STALE else f"{error.code or 'REFUSED'}: {error.message}"
        place = error.element_index
        concerned = work if place is None or not 0 <= place < len(work) else work[place : place + 1]
        for numbers in concerned:
            why[numbers.variant_gid] = why.get(numbers.variant_gid) or text
    return [NumbersRefusal(gid, text) for gid, text in why.items()]


async def read(steps: Steps, shop_id: int, work: NumbersReading) -> None:
    """Read the metafields of variants, and store their values."""
    variables = {"ids": work.variant_gids, "namespace": NAMESPACE, "key": KEY}
    try:
        answer = await ask_in_time(steps, shop_id, READ, variables)
    except (PlatformRefusal, PlatformUnreachable) as error:
        await _pause_writing(steps, shop_id, error)
        return
    platform_numbers = [_platform_numbers(variant) for variant in answer.nodes if variant and variant.id]
    await steps.transact(
        partial(
            cart_check_numbers.store_read,
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


async def _pause_writing(steps: Steps, shop_id: int, error: PlatformRefusal | PlatformUnreachable) -> None:
    """Store the error, and write nothing for a while."""
    log.warning("the numbers for the cart check are not written", shop=shop_id, error=str(error))
    seconds = cart_check_numbers.REFUSED_RETRY_SECONDS
    if isinstance(error, PlatformUnreachable):
        seconds = max(error.retry_after or 0.0, cart_check_numbers.UNREACHABLE_RETRY_SECONDS)
    await steps.transact(partial(cart_check_numbers.pause_writing, shop_id=shop_id, error=str(error), seconds=seconds))
