"""The rules of the ledger: what a change does to the pools of a shop, or why it is refused.

A `Stock` is read while its shop is locked. Changes are applied to it one after the other, in order of arrival; each
makes entries, or is refused and changes nothing. This module reads neither the database nor a clock.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct

from holdfast.inventory.problems import NOT_ENOUGH_STOCK, POOL_NOT_ACTIVE, STALE, no_pool
from holdfast.inventory.stock.model import Actor, Affected, Entry, EntryKind, PoolStock
from holdfast.kit.problems import invalid

FACTS: frozenset[EntryKind] = frozenset({"sale", "cancel", "external_edit", "reconcile"})
"""Kinds of entries that record what already happened, and so are never refused for lack of stock."""

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
    """What a change does to one pool."""

    pool_id: int
    kind: EntryKind
    delta: int
    held_delta: int = 0
    reverts_id: int | None = None


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
    """The pools of one shop that some calls need, and the pools that share variants with them.

    version    of the shop
    entries    in its ledger
    now        the database's time
    """

    def __init__(self, version: int, entries: int, now: datetime, pools: Iterable[Pool]) -> None:
        self.version = version
        self.entries = entries
        self.now = now
        self.pools: Mapping[int, Pool] = {pool.id: pool for pool in pools}
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
            self._permit(posting)
        touched = [self.pools[posting.pool_id] for posting in postings]
        gids = {gid for pool in touched for gid in pool.members}
        counted = gids if len(gids) <= MOST_AFFECTED else ()
        before = self._effective(counted)
        self.version += 1
        entries = [self._entry(posting, cause, self.entries + place) for place, posting in enumerate(postings, start=1)]
        self.entries += len(entries)
        for pool, entry in zip(touched, entries, strict=True):
            pool.on_hand, pool.held, pool.version = entry.balance_after, entry.held_after, entry.version
            pool.entries += 1
        after = self._effective(counted)
        affected = [Affected(gid, before[gid], after[gid]) for gid in sorted(before) if before[gid] != after[gid]]
        return Applied(entries, [_shown(pool) for pool in touched], affected if len(counted) == len(gids) else None)

    def _permit(self, posting: Posting) -> None:
        pool = self.pools[posting.pool_id]
        on_hand, held = pool.on_hand + posting.delta, pool.held + posting.held_delta
        if abs(on_hand) > LIMIT or held > LIMIT:
            raise invalid({"quantity": [f"pool {pool.id} can hold {LIMIT} {pool.unit} at most"]})
        holds = posting.held_delta > 0
        if posting.kind in FACTS or (not holds and (posting.delta >= 0 or pool.allow_negative)):
            return
        # A hold may not take from the buffer; a correction may.
        kept = pool.buffer if holds else 0
        if on_hand - held < kept:
            most = max(0, pool.on_hand - pool.held - kept)
            requested = posting.held_delta or -posting.delta
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
