"""The rules of the ledger: what a change does to the pools of a shop, or why it is refused.

A `Stock` is read while its shop is locked. Changes are applied to it one after the other, in order of arrival; each
makes entries, or is refused and changes nothing. This module reads neither the database nor a clock.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct

from holdfast.inventory.problems import HOLD_ENDED, NOT_ENOUGH_STOCK, POOL_NOT_ACTIVE, STALE, no_pool, not_linked
from holdfast.inventory.stock.model import Actor, Affected, Entry, EntryKind, PoolStock, StoredHold
from holdfast.kit.problems import NOT_FOUND, invalid

FACTS: frozenset[EntryKind] = frozenset({"sale", "cancel", "external_edit", "reconcile"})
"""Kinds of entries that record what already happened, and so are never refused for lack of stock. A sale that an agent
or a person records is a decision.
"""

MOST_AFFECTED = 500
"""The most variants for which a change says how their quantities change."""

LIMIT = 10**15
"""The most a pool can hold or lack: far below the limit of bigint, and exact in every JSON reader."""


class Pool(Struct):
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
    entries: int
    members: dict[str, int]

    @property
    def available(self) -> int:
        return max(0, self.on_hand - self.held - self.buffer)


class Posting(NamedTuple):
    """What a change does to one pool.

    by_variant    units that each variant takes of the pool; below zero: they come back. None: it is for no variant
    """

    pool_id: int
    kind: EntryKind
    delta: int
    held_delta: int = 0
    reverts_id: int | None = None
    by_variant: Mapping[str, int] | None = None


class Cause(NamedTuple):
    """Who changes something, through what, and why."""

    actor: Actor
    actor_id: int | None
    source: str
    source_ref: str | None = None
    reason: str | None = None
    hold_id: int | None = None


class Applied(NamedTuple):
    """What a change did. `affected` is None where it may concern more than `MOST_AFFECTED` variants."""

    entries: list[Entry]
    pools: list[PoolStock]
    affected: list[Affected] | None


class Stock:
    """The pools and holds of one shop that some calls need, and the pools that share variants with them.

    version    of the shop
    entries    in its ledger
    now        the database's time
    """

    def __init__(
        self, version: int, entries: int, now: datetime, pools: Iterable[Pool], holds: Iterable[StoredHold] = ()
    ) -> None:
        self.version = version
        self.entries = entries
        self.now = now
        self.pools: Mapping[int, Pool] = {pool.id: pool for pool in pools}
        self._holds: Mapping[int, StoredHold] = {hold.id: hold for hold in holds}
        self._draws: dict[str, list[tuple[Pool, int]]] = {}
        for pool in self.pools.values():
            for gid, units in pool.members.items():
                self._draws.setdefault(gid, []).append((pool, units))

    def pool(self, id: int, *, expected_version: int | None = None, expected_quantity: int | None = None) -> Pool:
        """A pool that may be changed. Raises `not_found`, `pool_not_active`, or `stale` when it is not as expected."""
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

    def draws(self, variant_gid: str) -> Sequence[tuple[Pool, int]]:
        """The pools a variant draws on, each with the units one sale takes."""
        return self._draws.get(variant_gid, [])

    def drawn(self, pool_id: int | None, variant_gid: str | None) -> Sequence[tuple[Pool, int]]:
        """The pool that is named, or those that the variant draws on, each with the units that one takes.

        Raises `not_found`, and `pool_not_active`.
        """
        if pool_id is not None:
            return [(self.pool(pool_id), 1)]
        draws = self.draws(variant_gid or "")
        if not draws:
            raise not_linked(variant_gid or "")
        return [(self.pool(pool.id), units) for pool, units in draws]

    def hold(self, id: int) -> StoredHold:
        """A hold that has not ended. Raises `not_found`, and `hold_ended`."""
        hold = self._holds.get(id)
        if hold is None:
            raise NOT_FOUND(f"No hold has the id {id}.", hint="list_holds shows the holds of the shop.")
        if hold.released_at:
            raise HOLD_ENDED(f"Hold {id} was sold." if hold.sold else f"Hold {id} was released or has expired.")
        return hold

    def available(self, variant_gid: str) -> int | None:
        """How many of a variant can be sold; None when storefronts do not show it."""
        least: int | None = None
        for pool, units in self._draws.get(variant_gid, ()):
            if pool.status != "active":
                return None
            allowed = pool.available // units
            if least is None or allowed < least:
                least = allowed
        return least

    def apply(self, postings: Sequence[Posting], cause: Cause) -> Applied:
        """Apply a change: all of its postings, those of one pool added up, or none.

        Raises `not_enough_stock` when a decision, and not a fact, would take what is not there or is held, and
        `validation_failed` when a pool cannot hold the result.
        """
        postings = _added_up(postings)
        for posting in postings:
            self._permit(posting, cause.actor)
        touched = [self.pools[posting.pool_id] for posting in postings]
        gids = {gid for pool in touched for gid in pool.members}
        counted = gids if len(gids) <= MOST_AFFECTED else ()
        before = self._effective(counted)
        self.version += 1
        entries = [self._entry(posting, cause, self.entries + place) for place, posting in enumerate(postings, start=1)]
        self.entries += len(entries)
        for pool, entry in zip(touched, entries, strict=True):
            pool.on_hand, pool.held, pool.version = entry.balance_after, entry.held_after, self.version
            pool.entries += 1
        after = self._effective(counted)
        affected = [Affected(gid, before[gid], after[gid]) for gid in sorted(before) if before[gid] != after[gid]]
        return Applied(entries, [_shown(pool) for pool in touched], affected if len(counted) == len(gids) else None)

    def _permit(self, posting: Posting, actor: Actor) -> None:
        pool = self.pools[posting.pool_id]
        on_hand, held = pool.on_hand + posting.delta, pool.held + posting.held_delta
        if abs(on_hand) > LIMIT or held > LIMIT:
            raise invalid({"quantity": [f"pool {pool.id} can hold {LIMIT} {pool.unit} at most"]})
        takes = posting.kind == "hold" or (posting.delta < 0 and not pool.allow_negative)
        if not takes or _has_happened(posting.kind, actor):
            return
        most, requested = _most(pool, posting), posting.held_delta if posting.kind == "hold" else -posting.delta
        if requested > most:
            raise NOT_ENOUGH_STOCK(
                f"Pool {pool.id} ({pool.name}) has {most} {pool.unit} to give, not {requested}.",
                pool_id=pool.id,
                available=most,
                requested=requested,
            )

    def _entry(self, posting: Posting, cause: Cause, id: int) -> Entry:
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
            reverts_id=posting.reverts_id,
            hold_id=cause.hold_id,
            version=self.version,
            created_at=self.now,
        )

    def _effective(self, gids: Iterable[str]) -> dict[str, int]:
        return {gid: number for gid in gids if (number := self.available(gid)) is not None}


def _has_happened(kind: EntryKind, actor: Actor) -> bool:
    """Whether an entry records a fact, and no decision."""
    return kind in FACTS and not (kind == "sale" and actor in {"agent", "staff"})


def _most(pool: Pool, posting: Posting) -> int:
    """The most that a decision may take from a pool. Only a correction may take from the buffer."""
    match posting.kind:
        case "hold":
            return pool.available
        case "sale":
            # What the sale's own hold keeps can be sold as well, as far as it is there.
            return max(0, min(pool.on_hand, pool.available - posting.held_delta))
        case _:
            return max(0, pool.on_hand - pool.held)


def _added_up(postings: Sequence[Posting]) -> list[Posting]:
    """One posting a pool. Two postings that each fit may not fit together."""
    sums: dict[int, Posting] = {}
    for posting in postings:
        so_far = sums.get(posting.pool_id)
        sums[posting.pool_id] = (
            posting._replace(delta=so_far.delta + posting.delta, held_delta=so_far.held_delta + posting.held_delta)
            if so_far
            else posting
        )
    return [sums[pool_id] for pool_id in sorted(sums)]


def _shown(pool: Pool) -> PoolStock:
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
