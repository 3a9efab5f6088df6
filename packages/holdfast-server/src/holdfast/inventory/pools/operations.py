"""Operations on pools and their members. Operations on quantities are in `stock`."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from holdfast.inventory.cursor import cursor_page
from holdfast.inventory.pools import membership, sql
from holdfast.inventory.pools.model import (
    ArchivePool,
    ChangePool,
    CreatePool,
    EffectiveChange,
    FindSourcePools,
    FindVariant,
    GetPool,
    LinkVariants,
    ListPools,
    MemberFields,
    PausePool,
    Pool,
    PoolChange,
    PoolList,
    PoolsByName,
    PoolWithMembers,
    RestorePool,
    ResumePool,
    SourcePool,
    UnlinkVariants,
    UpdateMember,
    UpdatePool,
    VariantList,
)
from holdfast.inventory.problems import NAME_TAKEN, POOL_HAS_HOLDS, POOL_NOT_ACTIVE, STALE, no_pool
from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.stock.shop_versions import STOCK_CHANNEL, increase_version, lock_shop
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Repeatable, sent_fields
from holdfast.kit.contract.problems import (
    DAILY_LIMIT_REACHED,
    INSUFFICIENT_SCOPE,
    NOT_FOUND,
    VALIDATION_FAILED,
    Problem,
    invalid,
    refuses,
)
from holdfast.kit.operations.operation import Batch

MAX_POOLS_PER_VARIANT = 50
"""The most pools that one variant may draw on: a bound for what one change reads."""


async def find_by_id(reader: Reader, shop_id: int, ids: Collection[int]) -> dict[int, Pool]:
    rows = await reader.rows(
        Pool,
        sql.SELECT_POOL + "where shop_id = %(shop_id)s and id = any(%(ids)s)",
        {"shop_id": shop_id, "ids": [*ids]},
    )
    return {pool.id: pool for pool in rows}


async def find_by_name(reader: Reader, shop_id: int, names: Collection[str]) -> PoolsByName:
    """The pools of those names that are not archived. The database decides which names are the same."""
    keys = dict(
        await reader.tuples("select name, lower(name) from unnest(%(names)s::text[]) as name", {"names": [*names]})
    )
    rows = await reader.rows(
        Pool,
        sql.SELECT_POOL
        + """
         where shop_id = %(shop_id)s and id = any(array(
               select named.id from unnest(%(keys)s::text[]) as key
                cross join lateral (select id from pools where shop_id = %(shop_id)s and name_key = key
                                                           and status <> 'archived' limit 1) as named))
        """,
        {"shop_id": shop_id, "keys": [*keys.values()]},
    )
    keys_by_id = dict(
        await reader.tuples(
            "select id, name_key from pools where shop_id = %(shop_id)s and id = any(%(ids)s)",
            {"shop_id": shop_id, "ids": [pool.id for pool in rows]},
        )
    )
    return PoolsByName(keys, {keys_by_id[pool.id]: pool for pool in rows})


async def save(tx: Tx, shop_id: int, version: int, pools: Sequence[Mapping[str, Any]]) -> None:
    """Create pools, and change those with an `id`. Null fields stay as they are."""
    await tx.run(
        """
        with pool as (
            select * from json_to_recordset(%(pools)s) as pool (
                id bigint, name text, unit text, buffer bigint, low_stock_at bigint)),
        changed_pool as (
            update pools
               set name = coalesce(pool.name, pools.name), unit = coalesce(pool.unit, pools.unit),
                   buffer = coalesce(pool.buffer, pools.buffer),
                   low_stock_at = coalesce(pool.low_stock_at, pools.low_stock_at), version = %(version)s
              from pool where shop_id = %(shop_id)s and pools.id = pool.id)
        insert into pools (shop_id, name, unit, buffer, low_stock_at, version)
        select %(shop_id)s, name, coalesce(unit, 'units'), coalesce(buffer, 0), low_stock_at, %(version)s
          from pool where id is null
        """,
        {"shop_id": shop_id, "version": version, "pools": msgspec.json.encode(pools).decode()},
    )


@refuses(VALIDATION_FAILED)
async def list(reader: Reader, caller: Caller, command: ListPools) -> PoolList:
    """List the shop's pools with what they hold."""
    rows = await sql.list_pools(reader, caller.tenant, command)
    pools, cursor = cursor_page(rows, command, lambda pool: pool.id)
    return PoolList(pools, cursor)


async def find_source_pools(
    reader: Reader, caller: Caller, command: FindSourcePools
) -> Mapping[str, Sequence[SourcePool]]:
    """The pools that variants draw on, by the ids of the variants."""
    rows = await reader.tuples(
        """
        select variant_gid, pool.id, pool.name, units_per_sale
          from members
         cross join lateral (select id, name from pools
                              where shop_id = %(shop_id)s and id = members.pool_id limit 1) as pool
         where members.shop_id = %(shop_id)s and variant_gid = any(%(gids)s)
         order by variant_gid, pool.id
        """,
        {"shop_id": caller.tenant, "gids": command.gids},
    )
    return {
        gid: [SourcePool(*pool) for _, *pool in rows_of_gid] for gid, rows_of_gid in groupby(rows, key=itemgetter(0))
    }


@refuses(NOT_FOUND)
async def get(reader: Reader, batch: Batch[GetPool]) -> Sequence[PoolWithMembers | Problem]:
    """Read one pool, with the variants that draw on it and how many of each can be sold."""
    commands = [call.command for call in batch.calls]
    pools = await find_by_id(reader, batch.tenant_id, {command.pool_id for command in commands})
    detailed = {command.pool_id for command in commands if command.include_members} & pools.keys()
    members = await membership.find_members(reader, batch.tenant_id, detailed) if detailed else {}
    return [
        sql.with_members(pool, members.get(pool.id, ()) if command.include_members else ())
        if (pool := pools.get(command.pool_id))
        else no_pool(command.pool_id)
        for command in commands
    ]


async def find_variant(reader: Reader, caller: Caller, command: FindVariant) -> VariantList:
    """Find variants by global id, SKU or text, with the pools they draw on."""
    return VariantList(await membership.find_variants(reader, caller.tenant, command))


@refuses(INSUFFICIENT_SCOPE, VALIDATION_FAILED, NAME_TAKEN, DAILY_LIMIT_REACHED)
async def create(tx: Tx, caller: Caller, command: CreatePool) -> PoolChange:
    """Create a pool, with its first quantity and the variants that draw on it."""
    if command.quantity:
        membership.require_stock_scope(caller)
    gids = _require_distinct("members", [member.variant_gid for member in command.members])
    await lock_shop(tx, caller.tenant)
    if await sql.is_name_in_use(tx, caller.tenant, command.name):
        raise NAME_TAKEN(f"Another pool is named {command.name}.")

    async def apply_change(version: int) -> int:
        pool_id = await sql.insert_pool(tx, caller.tenant, version, command)
        if command.members:
            await link_many(tx, caller.tenant, version, [(pool_id, member) for member in command.members])
        if command.quantity:
            await membership.add_stock(tx, caller, pool_id, "set", command.quantity, "create_pool", command.reason)
        return pool_id

    return await _store_change(tx, caller, gids, apply_change, command)


@refuses(NOT_FOUND, POOL_NOT_ACTIVE, STALE, NAME_TAKEN, VALIDATION_FAILED)
async def update(tx: Tx, caller: Caller, command: UpdatePool) -> PoolChange:
    """Change the given fields of a pool. The unit is a word: changing it converts nothing."""
    fields = sent_fields(command, "name", "unit", "buffer", "low_stock_at", "allow_negative", "policy")
    if not fields:
        raise invalid({"name": ["name at least one field to change"]})

    async def apply_change(version: int, pool: Pool) -> None:
        if "name" in fields and await sql.is_name_in_use(tx, caller.tenant, fields["name"], pool.id):
            raise NAME_TAKEN(f"Another pool is named {fields['name']}.")
        await sql.update_pool(tx, caller.tenant, pool.id, version, fields)

    return await _change_pool(tx, caller, command, apply_change)


@refuses(NOT_FOUND, POOL_NOT_ACTIVE, STALE)
async def pause(tx: Tx, caller: Caller, command: PausePool) -> PoolChange:
    """Pause a pool: storefronts are no longer told of its variants. Its stock can still be counted."""
    return await _change_pool(
        tx, caller, command, lambda version, pool: sql.set_status(tx, caller.tenant, pool.id, version, "paused")
    )


@refuses(NOT_FOUND, POOL_NOT_ACTIVE, STALE)
async def resume(tx: Tx, caller: Caller, command: ResumePool) -> PoolChange:
    """Let a paused pool go on."""
    return await _change_pool(
        tx, caller, command, lambda version, pool: sql.set_status(tx, caller.tenant, pool.id, version, "active")
    )


@refuses(NOT_FOUND, POOL_NOT_ACTIVE, STALE, POOL_HAS_HOLDS)
async def archive(tx: Tx, caller: Caller, command: ArchivePool) -> PoolChange:
    """Put a pool away. Its history stays; its stock cannot change until it is restored."""

    async def apply_change(version: int, pool: Pool) -> None:
        if pool.held:
            raise POOL_HAS_HOLDS(f"Pool {pool.id} has {pool.held} {pool.unit} on hold.")
        if command.release_variants:
            members = await membership.find_members(tx, caller.tenant, [pool.id])
            gids = [member.variant_gid for member in members.get(pool.id, ())]
            await membership.delete_members(tx, caller.tenant, pool.id, version, gids)
        await sql.set_status(tx, caller.tenant, pool.id, version, "archived")

    return await _change_pool(tx, caller, command, apply_change)


@refuses(NOT_FOUND, POOL_NOT_ACTIVE, STALE, NAME_TAKEN)
async def restore(tx: Tx, caller: Caller, command: RestorePool) -> PoolChange:
    """Bring an archived pool back, active and with the stock it had."""

    async def apply_change(version: int, pool: Pool) -> None:
        if await sql.is_name_in_use(tx, caller.tenant, pool.name, pool.id):
            raise NAME_TAKEN(f"Another pool is named {pool.name} by now.", hint="Rename that one with update_pool.")
        await sql.set_status(tx, caller.tenant, pool.id, version, "active")

    return await _change_pool(tx, caller, command, apply_change, archived=True)


@refuses(NOT_FOUND, POOL_NOT_ACTIVE, STALE, INSUFFICIENT_SCOPE, VALIDATION_FAILED, DAILY_LIMIT_REACHED)
async def link(tx: Tx, caller: Caller, command: LinkVariants) -> PoolChange:
    """Let variants draw on a pool. A variant that draws on several pools is a kit.

    Linking a variant again sets its units_per_sale.
    """
    gids = _require_distinct("members", [member.variant_gid for member in command.members])

    if command.initial != "keep_pool":
        membership.require_stock_scope(caller)

    async def apply_change(version: int, pool: Pool) -> None:
        platform_units = 0
        if command.initial != "keep_pool":
            platform_units = await membership.platform_quantity(tx, caller.tenant, pool.id, command.members)
        await link_many(tx, caller.tenant, version, [(pool.id, member) for member in command.members])
        if platform_units:
            reason = "What the platform had of the variants that were linked."
            await membership.add_stock(tx, caller, pool.id, "import", platform_units, "link_variants", reason)

    return await _change_pool(tx, caller, command, apply_change, gids)


async def link_many(tx: Tx, shop_id: int, version: int, links: Sequence[tuple[int, MemberFields]]) -> None:
    """Let variants draw on pools, named by their ids. Raises `validation_failed` for a kit of too many pools."""
    await membership.insert_members(tx, shop_id, version, links)
    if oversized_kits := await membership.find_oversized_kits(
        tx, shop_id, {member.variant_gid for _, member in links}, MAX_POOLS_PER_VARIANT
    ):
        raise invalid({"members": [f"{oversized_kits[0]} would draw on more than {MAX_POOLS_PER_VARIANT} pools"]})


@refuses(NOT_FOUND, POOL_NOT_ACTIVE, STALE)
async def update_member(tx: Tx, caller: Caller, command: UpdateMember) -> PoolChange:
    """Change how much of a pool one sale of a variant takes. What was sold before stays."""

    async def apply_change(version: int, pool: Pool) -> None:
        await _require_members(tx, caller, pool, [command.variant_gid])
        await membership.set_units(tx, caller.tenant, pool.id, command.variant_gid, command.units_per_sale)
        await sql.update_pool(tx, caller.tenant, pool.id, version, {})

    return await _change_pool(tx, caller, command, apply_change)


@refuses(NOT_FOUND, POOL_NOT_ACTIVE, STALE, VALIDATION_FAILED)
async def unlink(tx: Tx, caller: Caller, command: UnlinkVariants) -> PoolChange:
    """Let variants no longer draw on a pool."""
    gids = _require_distinct("variant_gids", command.variant_gids)

    async def apply_change(version: int, pool: Pool) -> None:
        await _require_members(tx, caller, pool, gids)
        await membership.delete_members(tx, caller.tenant, pool.id, version, gids)
        await sql.update_pool(tx, caller.tenant, pool.id, version, {})

    return await _change_pool(tx, caller, command, apply_change, gids)


async def _change_pool(
    tx: Tx,
    caller: Caller,
    command: ChangePool,
    apply_change: Callable[[int, Pool], Awaitable[None]],
    variant_gids: Collection[str] = (),
    *,
    archived: bool = False,
) -> PoolChange:
    """Lock the shop, check that the pool is as expected, and change it with `apply_change(version, pool)`.

    variant_gids    variants that are concerned beside those of the pool
    archived        whether the pool must be archived, instead of active or paused
    """
    await lock_shop(tx, caller.tenant)
    pool = await _require_expected_pool(tx, caller, command, archived=archived)
    members = await membership.find_members(tx, caller.tenant, [pool.id])
    gids = {*variant_gids, *(member.variant_gid for member in members.get(pool.id, ()))}

    async def apply_to_pool(version: int) -> int:
        await apply_change(version, pool)
        return pool.id

    return await _store_change(tx, caller, gids, apply_to_pool, command)


async def _require_expected_pool(reader: Reader, caller: Caller, command: ChangePool, *, archived: bool) -> Pool:
    """The pool of a command. Raises `not_found`, `pool_not_active`, or `stale` if it is not as expected."""
    pool = (await find_by_id(reader, caller.tenant, [command.pool_id])).get(command.pool_id)
    if pool is None:
        raise no_pool(command.pool_id)
    if (pool.status == "archived") != archived:
        raise POOL_NOT_ACTIVE(
            f"Pool {pool.id} is {pool.status}.",
            hint="Only an archived pool can be restored." if archived else "Bring it back with restore_pool first.",
        )
    if command.expected_version not in {None, pool.version}:
        raise STALE(
            f"Pool {pool.id} has version {pool.version}, not {command.expected_version}.",
            current={"pool_id": pool.id, "version": pool.version, "quantity": pool.on_hand},
        )
    return pool


async def _store_change(
    tx: Tx,
    caller: Caller,
    variant_gids: Collection[str],
    apply_change: Callable[[int], Awaitable[int]],
    command: Repeatable,
) -> PoolChange:
    """Increase the version of the shop, change a pool by `apply_change(version)`, which returns its id. Announce it.

    Returns the pool, and how many of the variants can be sold before and after.
    """
    before = await membership.effective_quantities(tx, caller.tenant, variant_gids)
    version = await increase_version(tx, caller.tenant)
    pool_id = await apply_change(version)
    pool = (await find_by_id(tx, caller.tenant, [pool_id]))[pool_id]
    members = await membership.find_members(tx, caller.tenant, [pool_id])
    after = await membership.effective_quantities(tx, caller.tenant, variant_gids)
    affected = [EffectiveChange(gid, before[gid], after[gid]) for gid in sorted(before) if before[gid] != after[gid]]
    await tx.notify(STOCK_CHANNEL, f"{caller.tenant} {pool.version}")
    if command.dry_run:
        pool.version = None
    return PoolChange(pool.version, command.dry_run, sql.with_members(pool, members.get(pool_id, ())), affected)


async def _require_members(reader: Reader, caller: Caller, pool: Pool, variant_gids: Collection[str]) -> None:
    members = await membership.find_members(reader, caller.tenant, [pool.id])
    linked_gids = {member.variant_gid for member in members.get(pool.id, ())}
    if unlinked_gids := sorted({*variant_gids} - linked_gids):
        raise NOT_FOUND(
            f"Not linked to pool {pool.id}: {', '.join(unlinked_gids)}.", hint="get_pool shows the variants of a pool."
        )


def _require_distinct(field: str, variant_gids: Sequence[str]) -> Sequence[str]:
    """The variants. Raises `validation_failed` if one is named twice."""
    first = {gid: index for index, gid in reversed([*enumerate(variant_gids)])}
    for index, gid in enumerate(variant_gids):
        if first[gid] < index:
            raise invalid({field: [f"{field}[{index}] names the same variant as {field}[{first[gid]}]"]})
    return variant_gids
