"""Statements that read levels for operations, and that change them."""

from collections.abc import Sequence
from typing import Any, LiteralString

import msgspec

from holdfast.inventory.partner_webhooks import inbox
from holdfast.inventory.partner_webhooks.model import WaitingWebhook
from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.shopify.domains import CART_CHECK
from holdfast.inventory.sync.model import (
    PUSH_STREAK,
    CartCheck,
    Drift,
    ListUnsyncedPools,
    LocationPercent,
    LocationShare,
    Rule,
    Spreading,
    SyncStatus,
    WaitReason,
)
from holdfast.inventory.sync.planning import CHANGED_ITEMS

OF_POOL: LiteralString = """
    item_gid in (select item_gid from catalog_variants join members
                    on members.shop_id = %(shop_id)s and variant_gid = gid
                  where catalog_variants.shop_id = %(shop_id)s and pool_id = %(pool_id)s)
"""

TOO_MUCH = (
    "Each location shows the whole quantity, so the same stock can be sold once at each of them. Name one location, or"
    " the share of each: holdfast inventory shop locations SHOP_DOMAIN --share LOCATION=PERCENT."
)
NOWHERE = (
    "No open location has a share, so no level is set. Name one location, or the share of each: holdfast inventory shop"
    " locations SHOP_DOMAIN --share LOCATION=PERCENT."
)


async def read_status(reader: Reader, shop_id: int, pool_id: int | None) -> SyncStatus:
    """How far the levels of a shop, or of one pool, are set at the platform."""
    # Read before the changes: a level that is planned meanwhile is at most counted twice.
    [(version, everything)] = await reader.tuples(
        """
        select max(planned_version), coalesce(bool_or(planned_version < 0 or coalesce(changes, 0) <> planned_changes),
                                              false)
          from syncs left join catalogs using (shop_id) where shop_id = %(shop_id)s
        """,
        {"shop_id": shop_id},
    )
    [row] = await reader.tuples(
        f"""
        with linked as (
            select item_gid from catalog_variants
             where shop_id = %(shop_id)s
               and exists (select from members where members.shop_id = %(shop_id)s and variant_gid = gid)),
        unplanned as materialized (
            select item_gid from ({CHANGED_ITEMS}) as concerned join linked using (item_gid))
        select exists (select from installs
                        where shop_id = %(shop_id)s and uninstalled_at is null and broken is null) as connected,
               (select coalesce((select broken from installs where shop_id = %(shop_id)s),
                                (select error from syncs where shop_id = %(shop_id)s))) as error,
               counted.*, to_json(late) as lag, to_json(import) as imported,
               coalesce((select rule from catalogs where shop_id = %(shop_id)s), 'one') as rule
          from (select count(target) as levels,
                       count(*) filter (where parked is null and (wanted <> available or unplanned)) as pending,
                       count(target) filter (where suspect_at is not null and available <> expected) as unexplained,
                       count(target) filter (where parked is not null) as parked
                  from levels
                 cross join lateral (select item_gid in (select item_gid from unplanned) as unplanned) as planning
                 where shop_id = %(shop_id)s and (target is not null or unplanned)
                   and (%(pool_id)s::bigint is null or {OF_POOL})) as counted,
               (select percentile_cont(0.5) within group (order by seconds) as p50,
                       percentile_cont(0.99) within group (order by seconds) as p99, count(*) as count
                  from sync_lags where shop_id = %(shop_id)s and pushed_at > now() - interval '1 hour') as late,
               (select case when max(requested_at) is null then 'none' when max(finished_at) is null then 'running'
                            else 'done' end as status,
                       coalesce(max(objects), 0) as objects, coalesce(max(stored_lines), 0) as stored,
                       max(requested_at) as requested_at, max(finished_at) as finished_at, max(error) as error
                  from catalogs where shop_id = %(shop_id)s) as import
        """,
        {"shop_id": shop_id, "pool_id": pool_id, "version": version, "everything": everything},
    )
    location_spread = await spreading(reader, shop_id)
    fields: dict[str, Any] = dict(
        zip(
            SyncStatus.__struct_fields__,
            (
                *row,
                location_spread.locations,
                location_spread.warning,
                await cart_check(reader, shop_id),
                [
                    *of_webhooks(await inbox.list_retrying_order_webhooks(reader, shop_id)),
                    *(call for call in await unanswered_calls(reader, shop_id, pool_id) if call.error),
                ],
                await subscription_errors(reader, shop_id),
            ),
            strict=True,
        )
    )
    return msgspec.convert(fields, SyncStatus, from_attributes=True)


async def cart_check(reader: Reader, shop_id: int) -> CartCheck:
    """The progress of the numbers for the cart check, of the whole shop."""
    [row] = await reader.rows(
        CartCheck,
        """
        select coalesce((select %(scope)s = any(scopes) and uninstalled_at is null from installs
                          where shop_id = %(shop_id)s), false) as granted,
               count(*) filter (where wanted <> '[]') as variants,
               count(*) filter (where read_again or wanted <> coalesce(written, '[]')) as pending,
               coalesce((select numbers_error from syncs where shop_id = %(shop_id)s), max(refused)) as error
          from cart_numbers where shop_id = %(shop_id)s
        """,
        {"shop_id": shop_id, "scope": CART_CHECK},
    )
    return row


async def subscription_errors(reader: Reader, shop_id: int) -> list[str]:
    errors = await reader.value(
        "select subscription_errors from installs where shop_id = %(shop_id)s", {"shop_id": shop_id}
    )
    return errors or []


async def spreading(reader: Reader, shop_id: int) -> Spreading:
    """How the quantities of a shop are spread over its locations, of which at most 100 are named."""
    [(rule, settable, is_imported)] = await reader.tuples(
        """
        select coalesce(max(rule), 'one'), (select count(*) from settable_locations where shop_id = %(shop_id)s),
               count(finished_at) > 0
          from catalogs where shop_id = %(shop_id)s
        """,
        {"shop_id": shop_id},
    )
    locations = await reader.rows(
        LocationShare,
        """
        select gid, name, active, fulfillment_service,
               case when %(rule)s <> 'all' then share_to - share_from when fulfillment_service = false then 100 else 0
                    end as percent
          from locations where shop_id = %(shop_id)s order by share_from, name, gid limit 100
        """,
        {"shop_id": shop_id, "rule": rule},
    )
    warning: str | None = None
    if rule == "all" and settable > 1:
        warning = TOO_MUCH
    elif is_imported and not settable:
        warning = NOWHERE
    return Spreading(rule, locations, warning)


async def list_drift(reader: Reader, shop_id: int, pool_id: int | None, limit: int) -> list[Drift]:
    """The levels that differ from their pools, by variant."""
    return await reader.rows(
        Drift,
        f"""
        select variant.gid as variant_gid, location_gid, available as platform, target as expected,
               available - target as difference,
               case when parked is not null then 'parked' when expected <> available then 'unexplained'
                    else 'pending' end as cause,
               parked as note
          from levels
         cross join lateral (select min(gid) as gid from catalog_variants
                              where catalog_variants.shop_id = %(shop_id)s
                                and catalog_variants.item_gid = levels.item_gid) as variant
         where shop_id = %(shop_id)s and target is not null and variant.gid is not null
           and (available <> target or parked is not null) and (%(pool_id)s::bigint is null or {OF_POOL})
         order by variant.gid, location_gid limit %(limit)s
        """,
        {"shop_id": shop_id, "pool_id": pool_id, "limit": limit},
    )


async def list_unsynced_pools(reader: Reader, shop_id: int, command: ListUnsyncedPools) -> list[int]:
    """The ids of pools with levels that differ, one more than a page."""
    rows = await reader.tuples(
        """
        select id from pools
         where shop_id = %(shop_id)s and id > %(after)s and status_key <> 'archived'
           and id in (select pool_id from levels
                        join catalog_variants as catalog on catalog.shop_id = %(shop_id)s
                                                       and catalog.item_gid = levels.item_gid
                        join members on members.shop_id = %(shop_id)s and variant_gid = catalog.gid
                       where levels.shop_id = %(shop_id)s and target is not null
                         and (available <> target or parked is not null))
           and (%(query)s::text is null
                or fold_text(name_key) like (select search_pattern(%(query)s)))
         order by id limit %(limit)s
        """,
        {
            "shop_id": shop_id,
            "after": command.after(int) or 0,
            "query": command.query,
            "limit": command.limit + 1,
        },
    )
    return [id for (id,) in rows]


async def has_pool(reader: Reader, shop_id: int, pool_id: int) -> bool:
    return await reader.value(
        "select exists (select from pools where shop_id = %(shop_id)s and id = %(pool_id)s)",
        {"shop_id": shop_id, "pool_id": pool_id},
    )


async def levels_of_pool(reader: Reader, shop_id: int, pool_id: int) -> list[tuple[str, str]]:
    """The levels of a pool's variants: item and location."""
    rows: Sequence[tuple[str, str]] = await reader.tuples(
        f"""
        select item_gid, location_gid from levels
         where shop_id = %(shop_id)s and {OF_POOL} order by item_gid, location_gid limit 5000
        """,
        {"shop_id": shop_id, "pool_id": pool_id},
    )
    return [*rows]


def of_webhooks(webhooks: Sequence[WaitingWebhook]) -> list[WaitReason]:
    """The webhooks about orders for which differences wait."""
    return [
        WaitReason(
            f"The webhook {webhook.topic} has not been counted yet.",
            webhook.topic,
            None,
            webhook.received_at,
            webhook.attempts,
            webhook.next_attempt_at,
            webhook.error,
        )
        for webhook in webhooks
    ]


async def unanswered_calls(reader: Reader, shop_id: int, pool_id: int | None) -> list[WaitReason]:
    """The call to the platform whose answer could explain a difference. A shop has one call at a time.

    pool_id    only differences of its variants; None: of all
    """
    rows = await reader.tuples(
        f"""
        select variants, pushes.inserted_at, coalesce(attempts, 0), leased_until, error
          from pushes
          left join syncs on syncs.shop_id = pushes.shop_id
         cross join lateral (select count(distinct item_gid) as variants
                               from levels where levels.push_id = pushes.id) as pushed_levels
         where pushes.shop_id = %(shop_id)s
           and exists (select from levels
                        where shop_id = %(shop_id)s and suspect_at is not null
                          and item_gid in (select item_gid from levels where push_id = pushes.id)
                          and (%(pool_id)s::bigint is null or {OF_POOL}))
        """,
        {"shop_id": shop_id, "pool_id": pool_id},
    )
    return [
        WaitReason(
            f"A call to the platform about {variants} variant{'s' * (variants != 1)} has not been answered yet.",
            None,
            variants,
            inserted_at,
            attempts,
            next_attempt_at if error else None,
            error,
        )
        for variants, inserted_at, attempts, next_attempt_at, error in rows
    ]


async def end_grace(tx: Tx, shop_id: int, pool_id: int) -> None:
    """End the grace of the differences of a pool."""
    await tx.run(
        f"""
        update levels set suspect_at = clock_timestamp()
         where shop_id = %(shop_id)s and suspect_at is not null and {OF_POOL}
        """,
        {"shop_id": shop_id, "pool_id": pool_id},
    )


async def mark_levels_to_set(tx: Tx, shop_id: int, pool_id: int) -> list[tuple[str, str, bool]]:
    """Mark the levels of a pool to be set again, whatever was changed at the platform.

    Returns them by item and location, each with whether what is expected of it begins again: no call changes it now.
    """
    rows: Sequence[tuple[str, str, bool]] = await tx.tuples(
        f"""
        update levels
           set parked = null, {PUSH_STREAK} = 1, read_again = push_id is null, suspect_at = null,
               expected = case when push_id is null then available else expected end
         where shop_id = %(shop_id)s and target is not null and {OF_POOL}
        returning item_gid, location_gid, push_id is null
        """,
        {"shop_id": shop_id, "pool_id": pool_id},
    )
    return [*rows]


async def set_rule(tx: Tx, shop_id: int, rule: Rule, shares: Sequence[LocationPercent]) -> None:
    """Spread quantities by a rule from now on. Locations that are not named have no share."""
    ends = [sum(share.percent for share in shares[: index + 1]) for index in range(len(shares))]
    await tx.run(
        """
        with location_share as (
            select * from unnest(%(locations)s::text[], %(ends)s::int[], %(percents)s::int[])
                       as location_share (gid, share_to, percent)),
        shared as (
            update locations set share_to = coalesce(location_share.share_to, 0),
                                 share_from = coalesce(location_share.share_to - location_share.percent, 0)
              from locations as present left join location_share on location_share.gid = present.gid
             where locations.shop_id = %(shop_id)s and present.shop_id = %(shop_id)s and locations.gid = present.gid)
        insert into catalogs (shop_id, rule, changes) values (%(shop_id)s, %(rule)s, 1)
            on conflict (shop_id) do update set rule = excluded.rule, changes = catalogs.changes + 1
        """,
        {
            "shop_id": shop_id,
            "locations": [share.location_gid for share in shares],
            "ends": ends,
            "percents": [share.percent for share in shares],
            "rule": rule,
        },
    )
