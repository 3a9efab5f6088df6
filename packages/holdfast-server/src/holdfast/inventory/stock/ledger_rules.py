"""The rules of the ledger: what a change does to the pools of a shop, or why it is refused.

A `Stock` is read while its shop is locked. Changes are applied to it in order of arrival. Each makes entries, or is
refused and changes nothing. This module reads neither the database nor a clock.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct

from holdfast.inventory.problems import HOLD_ENDED, NOT_ENOUGH_STOCK, POOL_NOT_ACTIVE, STALE, no_pool, not_linked
from holdfast.inventory.stock.model import Actor, AffectedVariant, Entry, EntryKind, PoolStock, StoredHold
from holdfast.kit.contract.problems import NOT_FOUND, invalid

MAX_AFFECTED_VARIANTS = 500
"""A change of more variants than this does not list how their quantities change."""

MAX_POOL_QUANTITY = 10**15
"""The most units that a pool can hold or lack: far below the limit of bigint, and exact in every JSON reader."""


class LedgerPool(Struct):
    """The row of a pool, with the variants that draw on it and their units per sale."""

    id: int
    name: str
    unit: str
    on_hand: int
    held: int
    buffer: int
    low_stock_at: int | None
    allow_negative: bool
    status: str
    version: int
    entry_count: int
    members: dict[str, int]

    @property
    def available(self) -> int:
        return max(0, self.on_hand - self.held - self.buffer)


class Posting(NamedTuple):
    """What a change does to one pool.

    by_variant    units that each variant takes of the pool, negative if they come back. None: not of a variant
    """

    pool_id: int
    kind: EntryKind
    delta: int
    held_delta: int = 0
    reverts_id: int | None = None
    by_variant: Mapping[str, int] | None = None


class ChangeCause(NamedTuple):
    """The actor of a change, its source, and its reason."""

    actor: Actor
    actor_id: int | None
    source: str
    source_ref: str | None = None
    reason: str | None = None
    hold_id: int | None = None


class AppliedChange(NamedTuple):
    """What a change did. `affected` is None if it may concern more than `MAX_AFFECTED_VARIANTS` variants."""

    entries: list[Entry]
    pools: list[PoolStock]
    affected: list[AffectedVariant] | None


class Stock:
    """The pools and holds of one shop that some calls need, and the pools that share variants with them.

    version        of the shop
    entry_count    the number of entries in its ledger
    now            the database's time
    """

    def __init__(
        self,
        version: int,
        entry_count: int,
        now: datetime,
        pools: Iterable[LedgerPool],
        holds: Iterable[StoredHold] = (),
    ) -> None:
        self.version = version
        self.entry_count = entry_count
        self.now = now
        self.pools: dict[int, LedgerPool] = {}
        self._pools_by_variant: dict[str, list[tuple[LedgerPool, int]]] = {}
        self.add_pools(pools)
        self.set_holds(holds)

    def add_pools(self, pools: Iterable[LedgerPool]) -> None:
        """Add the pools that it does not have yet. They were read at the version of the stock."""
        for pool in pools:
            if pool.id not in self.pools:
                self.pools[pool.id] = pool
                for gid, units in pool.members.items():
                    self._pools_by_variant.setdefault(gid, []).append((pool, units))

    def set_holds(self, holds: Iterable[StoredHold]) -> None:
        self._holds: Mapping[int, StoredHold] = {hold.id: hold for hold in holds}

    def require_pool(
        self, id: int, *, expected_version: int | None = None, expected_quantity: int | None = None
    ) -> LedgerPool:
        """A pool that may be changed, active or paused.

        Raises `not_found`, `pool_not_active` if it is archived, and `stale` if it is not as expected.
        """
        pool = self.pools.get(id)
        if pool is None:
            raise no_pool(id)
        if pool.status == "archived":
            raise POOL_NOT_ACTIVE(f"Pool {id} is archived.")
        for name, expected, present in (
            ("version", expected_version, pool.version),
            ("quantity", expected_quantity, pool.on_hand),
        ):
            if expected is not None and expected != present:
                raise STALE(
                    f"Pool {id} has {name} {present}, not {expected}.",
                    current={"pool_id": id, "version": pool.version, "quantity": pool.on_hand},
                )
        return pool

    def pools_of_variant(self, variant_gid: str) -> Sequence[tuple[LedgerPool, int]]:
        """The pools a variant draws on, each with the units that one sale takes."""
        return self._pools_by_variant.get(variant_gid, [])

    def require_pools(self, pool_id: int | None, variant_gid: str | None) -> Sequence[tuple[LedgerPool, int]]:
        """The pool of the id, or the pools that the variant draws on, each with the units that one sale takes.

        Raises `not_found`, and `pool_not_active` if one is archived.
        """
        if pool_id is not None:
            return [(self.require_pool(pool_id), 1)]
        pools = self.pools_of_variant(variant_gid or "")
        if not pools:
            raise not_linked(variant_gid or "")
        return [(self.require_pool(pool.id), units) for pool, units in pools]

    def require_hold(self, id: int) -> StoredHold:
        """A hold that has not ended. It may be past its `expires_at`, which callers check.

        Raises `not_found`, and `hold_ended`.
        """
        hold = self._holds.get(id)
        if hold is None:
            raise NOT_FOUND(f"No hold has the id {id}.", hint="list_holds shows the holds of the shop.")
        if hold.released_at:
            raise HOLD_ENDED(f"Hold {id} was sold." if hold.sold else f"Hold {id} was released or has expired.")
        return hold

    def available(self, variant_gid: str) -> int | None:
        """How many of a variant can be sold; None if storefronts do not show it.

        The view `availability` has the same rule in SQL.
        """
        least: int | None = None
        for pool, units in self._pools_by_variant.get(variant_gid, ()):
            if pool.status != "active":
                return None
            sellable = pool.available // units
            if least is None or sellable < least:
                least = sellable
        return least

    def apply(self, postings: Sequence[Posting], cause: ChangeCause) -> AppliedChange:
        """Apply all postings of a change, those of one pool added up, or none.

        Raises `not_enough_stock` if a decision, not a fact, takes more than is available, and `validation_failed` if a
        pool cannot hold the result.
        """
        postings = _add_up(postings)
        for posting in postings:
            self._require_enough(posting, cause.actor)
        changed_pools = [self.pools[posting.pool_id] for posting in postings]
        gids = {gid for pool in changed_pools for gid in pool.members}
        is_listed = len(gids) <= MAX_AFFECTED_VARIANTS
        listed_gids = gids if is_listed else ()
        before = self._available_by_variant(listed_gids)
        self.version += 1
        entries = [
            self._entry(posting, cause, self.entry_count + number) for number, posting in enumerate(postings, start=1)
        ]
        self.entry_count += len(entries)
        for pool, entry in zip(changed_pools, entries, strict=True):
            pool.on_hand, pool.held, pool.version = entry.balance_after, entry.held_after, self.version
            pool.entry_count += 1
        after = self._available_by_variant(listed_gids)
        affected = [
            AffectedVariant(gid, before[gid], after[gid]) for gid in sorted(before) if before[gid] != after[gid]
        ]
        return AppliedChange(entries, [_pool_stock(pool) for pool in changed_pools], affected if is_listed else None)

    def _require_enough(self, posting: Posting, actor: Actor) -> None:
        pool = self.pools[posting.pool_id]
        on_hand, held_units = pool.on_hand + posting.delta, pool.held + posting.held_delta
        if abs(on_hand) > MAX_POOL_QUANTITY or held_units > MAX_POOL_QUANTITY:
            raise invalid({"quantity": [f"pool {pool.id} can hold {MAX_POOL_QUANTITY} {pool.unit} at most"]})
        needs_stock = posting.kind == "hold" or (posting.delta < 0 and not pool.allow_negative)
        if not needs_stock or is_fact(posting.kind, actor):
            return
        available = _max_quantity(pool, posting)
        requested = posting.held_delta if posting.kind == "hold" else -posting.delta
        if requested > available:
            raise NOT_ENOUGH_STOCK(
                f"Pool {pool.id} ({pool.name}) has {available} {pool.unit} to give, not {requested}.",
                pool_id=pool.id,
                available=available,
                requested=requested,
            )

    def _entry(self, posting: Posting, cause: ChangeCause, id: int) -> Entry:
        pool = self.pools[posting.pool_id]
        return Entry(
            id=id,
            pool_id=pool.id,
            kind=posting.kind,
            delta=posting.delta,
            held_delta=posting.held_delta,
            balance_after=pool.on_hand + posting.delta,
            held_after=pool.held + posting.held_delta,
            reason=cause.reason,
            actor=cause.actor,
            source=cause.source,
            source_ref=cause.source_ref,
            by_variant=None if posting.by_variant is None else {**posting.by_variant},
            reverts_id=posting.reverts_id,
            hold_id=cause.hold_id,
            version=self.version,
            created_at=self.now,
        )

    def _available_by_variant(self, gids: Iterable[str]) -> dict[str, int]:
        """How many can be sold of each variant that storefronts show."""
        return {gid: number for gid in gids if (number := self.available(gid)) is not None}


def simulated_stock(pools: Mapping[int, tuple[int, Mapping[str, int]]]) -> Stock:
    """Stock that no shop has: active pools by id, each with its quantity and the units per sale of its variants."""
    return Stock(
        version=0,
        entry_count=0,
        now=datetime.min,
        pools=[
            LedgerPool(
                id=id,
                name="",
                unit="",
                on_hand=on_hand,
                held=0,
                buffer=0,
                low_stock_at=None,
                allow_negative=False,
                status="active",
                version=0,
                entry_count=0,
                members={**members},
            )
            for id, (on_hand, members) in pools.items()
        ],
    )


def is_fact(kind: EntryKind, actor: Actor) -> bool:
    """Whether an entry records what already happened, and so is never refused for lack of stock.

    A sale that an agent or a merchant records is a decision.
    """
    match kind:
        case "cancel" | "external_edit" | "reconcile":
            return True
        case "sale":
            return actor in {"platform", "system"}
        case _:
            return False


def _max_quantity(pool: LedgerPool, posting: Posting) -> int:
    """The most that a decision may take from a pool.

    Every kind except hold and sale may take from the buffer, but not what is held.
    """
    match posting.kind:
        case "hold":
            return pool.available
        case "sale":
            # The units that the sale's own hold keeps can be sold as well, as far as they are on hand.
            return max(0, min(pool.on_hand, pool.available - posting.held_delta))
        case _:
            return max(0, pool.on_hand - pool.held)


def _add_up(postings: Sequence[Posting]) -> list[Posting]:
    """One posting for each pool, since two postings that fit one by one may not fit together.

    Several postings of one pool must be of the same kind, and neither revert an entry nor name variants.
    """
    if len(postings) == 1:
        return [*postings]
    sums: dict[int, Posting] = {}
    for posting in postings:
        so_far = sums.get(posting.pool_id)
        if so_far is None:
            sums[posting.pool_id] = posting
            continue
        assert posting.kind == so_far.kind
        assert posting.reverts_id is None
        assert posting.by_variant is None
        sums[posting.pool_id] = so_far._replace(
            delta=so_far.delta + posting.delta, held_delta=so_far.held_delta + posting.held_delta
        )
    return [sums[pool_id] for pool_id in sorted(sums)]


def _pool_stock(pool: LedgerPool) -> PoolStock:
    return PoolStock(
        id=pool.id,
        name=pool.name,
        unit=pool.unit,
        on_hand=pool.on_hand,
        held=pool.held,
        buffer=pool.buffer,
        available=pool.available,
        low_stock=pool.low_stock_at is not None and pool.available <= pool.low_stock_at,
        version=pool.version,
    )
