"""What can be done with pools and their members. Quantities are the business of `stock`."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence

from holdfast.inventory.pools import membership, sql
from holdfast.inventory.pools.model import (
    ArchivePool,
    ChangePool,
    CreatePool,
    EffectiveChange,
    FindVariant,
    GetPool,
    LinkVariants,
    ListPools,
    MemberFields,
    PausePool,
    Pool,
    PoolChange,
    PoolList,
    PoolWithMembers,
    RestorePool,
    ResumePool,
    UnlinkVariants,
    UpdateMember,
    UpdatePool,
    VariantList,
)
from holdfast.inventory.problems import NAME_TAKEN, POOL_HAS_HOLDS, POOL_NOT_ACTIVE, STALE, no_pool
from holdfast.inventory.settings import Tx
from holdfast.inventory.stock import ledger
from holdfast.inventory.stock.book import CHANGES, Draft, Touched, bump, lock, write
from holdfast.inventory.stock.idempotency import once
from holdfast.inventory.stock.model import Write
from holdfast.kit.command import given
from holdfast.kit.cursor import paged
from holdfast.kit.operation import Call, Caller
from holdfast.kit.problems import INSUFFICIENT_SCOPE, NOT_FOUND, Problem, invalid

find_by_name = sql.find_by_name
save = sql.save_pools
linked = membership.linked
list_members = membership.list_members

MOST_POOLS = 50
"""Pools one variant may draw on: what one change has to look at stays bounded."""


async def list(tx: Tx, caller: Caller, command: ListPools) -> PoolList:
    """List the shop's pools with what they hold."""
    rows = await sql.list_pools(tx, caller.tenant, command)
    pools, cursor = paged(rows, command, lambda pool: pool.id)
    return PoolList(pools, cursor)


async def get(tx: Tx, calls: Sequence[Call[GetPool]]) -> Sequence[PoolWithMembers | Problem]:
    """Read one pool, with the variants that draw on it and how many of each can be sold."""
    shop_id = calls[0].caller.tenant
    pools = await sql.find_pools(tx, shop_id, {call.command.pool_id for call in calls})
    asked = {call.command.pool_id for call in calls if call.command.include_members} & pools.keys()
    members = await membership.find_members(tx, shop_id, asked) if asked else {}
    return [
        sql.with_members(pool, members.get(pool.id, ()) if call.command.include_members else ())
        if (pool := pools.get(call.command.pool_id))
        else no_pool(call.command.pool_id)
        for call in calls
    ]


async def find_variant(tx: Tx, caller: Caller, command: FindVariant) -> VariantList:
    """Find variants by global id, SKU or text, with the pools they draw on."""
    return VariantList(await membership.find_variants(tx, caller.tenant, command))


async def create(tx: Tx, caller: Caller, command: CreatePool) -> PoolChange:
    """Create a pool, with its first quantity and the variants that draw on it.

    A quantity above 0 needs the scope write_inventory too.
    """
    if command.quantity and not caller.has("write_inventory"):
        raise INSUFFICIENT_SCOPE(
            "A first quantity needs the scope write_inventory too.", scope="write_pools write_inventory"
        )
    _distinct(member.variant_gid for member in command.members)

    async def work() -> PoolChange:
        if await sql.is_name_taken(tx, caller.tenant, command.name):
            raise NAME_TAKEN(f"Another pool is named {command.name}.")

        async def make(version: int) -> int:
            pool_id = await sql.insert_pool(tx, caller.tenant, version, command)
            if command.members:
                await link_many(tx, caller.tenant, version, [(pool_id, member) for member in command.members])
            if command.quantity:
                await _fill(tx, caller, pool_id, command)
            return pool_id

        return await _change(tx, caller, [each.variant_gid for each in command.members], make, command.dry_run)

    await lock(tx, caller.tenant)
    return await once(tx, caller.tenant, "create_pool", command, PoolChange, work)


async def _fill(tx: Tx, caller: Caller, pool_id: int, command: CreatePool) -> None:
    def drafted(stock: ledger.Stock, _: Write) -> Draft:
        return Draft([ledger.Line(stock.pool(pool_id).id, "set", command.quantity)])

    call = Call(caller, Write(reason=command.reason))
    [answer] = await write(tx, [call], "create_pool", lambda _: Touched([pool_id]), drafted)
    if isinstance(answer, Problem):
        raise answer


async def update(tx: Tx, caller: Caller, command: UpdatePool) -> PoolChange:
    """Change a pool's name, unit, buffer, low-stock threshold, or whether it may go below zero.

    Only the fields given change. The unit is a word: changing it converts nothing.
    """
    fields = given(command, "name", "unit", "buffer", "low_stock_at", "allow_negative")
    if not fields:
        raise invalid({"name": ["name at least one field to change"]})

    async def make(version: int, pool: Pool) -> None:
        if "name" in fields and await sql.is_name_taken(tx, caller.tenant, fields["name"], pool.id):
            raise NAME_TAKEN(f"Another pool is named {fields['name']}.")
        await sql.update_pool(tx, caller.tenant, pool.id, version, fields)

    return await _configure(tx, caller, command, make)


async def pause(tx: Tx, caller: Caller, command: PausePool) -> PoolChange:
    """Pause a pool: storefronts are no longer told of its variants. Its stock can still be counted."""
    return await _configure(
        tx, caller, command, lambda version, pool: sql.set_status(tx, caller.tenant, pool.id, version, "paused")
    )


async def resume(tx: Tx, caller: Caller, command: ResumePool) -> PoolChange:
    """Let a paused pool go on."""
    return await _configure(
        tx, caller, command, lambda version, pool: sql.set_status(tx, caller.tenant, pool.id, version, "active")
    )


async def archive(tx: Tx, caller: Caller, command: ArchivePool) -> PoolChange:
    """Put a pool away. Its history stays; its stock can no longer be changed until it is restored."""

    async def make(version: int, pool: Pool) -> None:
        if pool.held:
            raise POOL_HAS_HOLDS(f"Pool {pool.id} holds {pool.held} {pool.unit} for somebody.")
        if command.release_variants:
            members = await membership.find_members(tx, caller.tenant, [pool.id])
            gids = [member.variant_gid for member in members.get(pool.id, ())]
            await membership.unlink(tx, caller.tenant, pool.id, version, gids)
        await sql.set_status(tx, caller.tenant, pool.id, version, "archived")

    return await _configure(tx, caller, command, make)


async def restore(tx: Tx, caller: Caller, command: RestorePool) -> PoolChange:
    """Bring an archived pool back, active and with the stock it had."""

    async def make(version: int, pool: Pool) -> None:
        if await sql.is_name_taken(tx, caller.tenant, pool.name, pool.id):
            raise NAME_TAKEN(f"Another pool is named {pool.name} by now.", hint="Rename that one with update_pool.")
        await sql.set_status(tx, caller.tenant, pool.id, version, "active")

    return await _configure(tx, caller, command, make, archived=True)


async def link(tx: Tx, caller: Caller, command: LinkVariants) -> PoolChange:
    """Let variants draw on a pool. A variant that draws on several pools is a kit.

    Linking a variant again sets its units_per_sale.
    """
    gids = _distinct(member.variant_gid for member in command.members)

    async def make(version: int, pool: Pool) -> None:
        await link_many(tx, caller.tenant, version, [(pool.id, member) for member in command.members])

    return await _configure(tx, caller, command, make, gids)


async def link_many(tx: Tx, shop_id: int, version: int, links: Sequence[tuple[int, MemberFields]]) -> None:
    """Let variants draw on pools, named by their ids. Raises `validation_failed` for a kit of too many pools."""
    await membership.link(tx, shop_id, version, links)
    if beyond := await membership.kits_beyond(tx, shop_id, {member.variant_gid for _, member in links}, MOST_POOLS):
        raise invalid({"variant_gid": [f"{beyond[0]} would draw on more than {MOST_POOLS} pools"]})


async def update_member(tx: Tx, caller: Caller, command: UpdateMember) -> PoolChange:
    """Change how much of a pool one sale of a variant takes. What was sold before stays as it was counted."""

    async def make(version: int, pool: Pool) -> None:
        await _expect_members(tx, caller, pool, [command.variant_gid])
        await membership.set_units(tx, caller.tenant, pool.id, command.variant_gid, command.units_per_sale)
        await sql.update_pool(tx, caller.tenant, pool.id, version, {})

    return await _configure(tx, caller, command, make)


async def unlink(tx: Tx, caller: Caller, command: UnlinkVariants) -> PoolChange:
    """Let variants no longer draw on a pool."""
    gids = _distinct(command.variant_gids)

    async def make(version: int, pool: Pool) -> None:
        await _expect_members(tx, caller, pool, gids)
        await membership.unlink(tx, caller.tenant, pool.id, version, gids)
        await sql.update_pool(tx, caller.tenant, pool.id, version, {})

    return await _configure(tx, caller, command, make, gids)


async def _configure(
    tx: Tx,
    caller: Caller,
    command: ChangePool,
    make: Callable[[int, Pool], Awaitable[None]],
    variant_gids: Collection[str] = (),
    *,
    archived: bool = False,
) -> PoolChange:
    """Change a pool that exists, once: lock its shop, make sure it is as expected, and `make(version, pool)`."""

    async def work() -> PoolChange:
        pool = await _expected(tx, caller, command, archived=archived)
        members = await membership.find_members(tx, caller.tenant, [pool.id])
        gids = {*variant_gids, *(member.variant_gid for member in members.get(pool.id, ()))}

        async def made(version: int) -> int:
            await make(version, pool)
            return pool.id

        return await _change(tx, caller, gids, made, command.dry_run)

    await lock(tx, caller.tenant)
    return await once(tx, caller.tenant, type(command).__name__, command, PoolChange, work)


async def _expected(tx: Tx, caller: Caller, command: ChangePool, *, archived: bool) -> Pool:
    """The pool a command is about. Raises `not_found`, `pool_not_active`, or `stale` when it is not as expected."""
    pool = (await sql.find_pools(tx, caller.tenant, [command.pool_id])).get(command.pool_id)
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


async def _change(
    tx: Tx, caller: Caller, variant_gids: Collection[str], make: Callable[[int], Awaitable[int]], dry_run: bool
) -> PoolChange:
    """Make a change of one version, and tell what it did. A dry run makes it all the same, and takes it back."""
    before = await membership.effective(tx, caller.tenant, variant_gids)
    await tx.run("savepoint change")
    version = await bump(tx, caller.tenant)
    pool_id = await make(version)
    pool = (await sql.find_pools(tx, caller.tenant, [pool_id]))[pool_id]
    members = await membership.find_members(tx, caller.tenant, [pool_id])
    after = await membership.effective(tx, caller.tenant, variant_gids)
    affected = [EffectiveChange(gid, before[gid], after[gid]) for gid in sorted(before) if before[gid] != after[gid]]
    if dry_run:
        await tx.run("rollback to savepoint change")
    else:
        await tx.notify(CHANGES, f"{caller.tenant} {pool.version}")
    return PoolChange(pool.version, dry_run, sql.with_members(pool, members.get(pool_id, ())), affected)


async def _expect_members(tx: Tx, caller: Caller, pool: Pool, variant_gids: Collection[str]) -> None:
    members = await membership.find_members(tx, caller.tenant, [pool.id])
    known = {member.variant_gid for member in members.get(pool.id, ())}
    if strangers := sorted({*variant_gids} - known):
        raise NOT_FOUND(
            f"Not linked to pool {pool.id}: {', '.join(strangers)}.", hint="get_pool shows the variants of a pool."
        )


def _distinct(variant_gids: Iterable[str]) -> Sequence[str]:
    """The variants named. Raises `validation_failed` when one is named twice."""
    gids = [*variant_gids]
    if len(set(gids)) < len(gids):
        raise invalid({"variant_gid": ["the same variant is named more than once"]})
    return gids
