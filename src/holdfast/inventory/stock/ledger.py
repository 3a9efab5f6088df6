"""The rules of the ledger: what a change does to the pools of a shop, or why it may not.

`Stock` is what is known of a shop's pools while the shop is locked. Changes are tried on it one after the other, in
order of arrival; each leaves entries, or is refused and leaves nothing. No database here, and no clock.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct

from holdfast.inventory.problems import NOT_ENOUGH_STOCK, POOL_NOT_ACTIVE, STALE, no_pool
from holdfast.inventory.stock.model import Actor, Affected, Entry, Kind, PoolStock
from holdfast.kit.problems import invalid

FACTS: frozenset[Kind] = frozenset({"sale", "cancel", "external_edit", "reconcile"})
"""What already happened, and is therefore never refused."""

MOST_AFFECTED = 500
"""Variants up to which a change tells what becomes of them."""

LIMIT = 10**15
"""The most a pool can hold, either way: far from the end of bigint, and exact in every JSON reader."""


class Pool(Struct):
    """A pool as its row says, with the variants that draw on it and their units per sale."""

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


class Line(NamedTuple):
    """What a change does to one pool."""

    pool_id: int
    kind: Kind
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


class Written(NamedTuple):
    """A change that was applied. What it does to variants is not reckoned where that would be too many."""

    entries: list[Entry]
    pools: list[PoolStock]
    affected: list[Affected] | None


class Stock:
    """The pools of one shop that the calls at hand can touch, and those their variants draw on besides.

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
        """How many of a variant can be sold; None when a storefront is not told of it."""
        least: int | None = None
        for pool, units in self._draws.get(variant_gid, ()):
            if pool.status != "active":
                return None
            allowed = pool.available // units
            if least is None or allowed < least:
                least = allowed
        return least

    def write(self, lines: Sequence[Line], cause: Cause, *, dry_run: bool = False) -> Written:
        """Apply a change: all of its lines, those of one pool added up, or none.

        Raises `not_enough_stock` when somebody's decision, and not a fact, would take what is not there or is held
        for somebody else.
        """
        lines = _added_up(lines)
        for line in lines:
            self._permit(line)
        touched = [self.pools[line.pool_id] for line in lines]
        gids = {gid for pool in touched for gid in pool.members}
        reckoned = gids if len(gids) <= MOST_AFFECTED else ()
        before = self._effective(reckoned)
        version = self.version + 1
        entries = [
            self._entry(line, cause, version, None if dry_run else self.entries + number)
            for number, line in enumerate(lines, start=1)
        ]
        for pool, entry in zip(touched, entries, strict=True):
            _move(pool, entry.delta, entry.held_delta)
        after = self._effective(reckoned)
        affected = [Affected(gid, before[gid], after[gid]) for gid in sorted(before) if before[gid] != after[gid]]
        shown = [_shown(pool, version) for pool in touched]
        written = Written(entries, shown, affected if len(reckoned) == len(gids) else None)
        if dry_run:
            for pool, entry in zip(touched, entries, strict=True):
                _move(pool, -entry.delta, -entry.held_delta)
        else:
            self.version = version
            self.entries += len(entries)
            for pool in touched:
                pool.version = version
                pool.entries += 1
        return written

    def _permit(self, line: Line) -> None:
        pool = self.pools[line.pool_id]
        on_hand, held = pool.on_hand + line.delta, pool.held + line.held_delta
        if abs(on_hand) > LIMIT or held > LIMIT:
            raise invalid({"quantity": [f"pool {pool.id} can hold {LIMIT} {pool.unit} at most"]})
        promises = line.held_delta > 0
        if line.kind in FACTS or (not promises and (line.delta >= 0 or pool.allow_negative)):
            return
        # A promise is only made of what is there, and leaves the buffer alone; a count may have to use it up.
        kept = pool.buffer if promises else 0
        if on_hand - held < kept:
            most = max(0, pool.on_hand - pool.held - kept)
            raise NOT_ENOUGH_STOCK(
                f"Pool {pool.id} ({pool.name}) has {most} {pool.unit} to give, not {line.held_delta or -line.delta}.",
                pool_id=pool.id,
                available=most,
                requested=line.held_delta or -line.delta,
            )

    def _entry(self, line: Line, cause: Cause, version: int, id: int | None) -> Entry:
        pool = self.pools[line.pool_id]
        return Entry(
            id=id,
            pool_id=pool.id,
            kind=line.kind,
            delta=line.delta,
            held_delta=line.held_delta,
            balance_after=pool.on_hand + line.delta,
            held_after=pool.held + line.held_delta,
            reason=cause.reason,
            actor=cause.actor,
            source=cause.source,
            source_ref=cause.source_ref,
            reverts_id=line.reverts_id,
            hold_id=cause.hold_id,
            version=version,
            created_at=self.now,
        )

    def _effective(self, gids: Iterable[str]) -> dict[str, int]:
        return {gid: number for gid in gids if (number := self.available(gid)) is not None}


def _added_up(lines: Sequence[Line]) -> Sequence[Line]:
    """One line a pool. Two lines that each fit may not fit together."""
    sums: dict[int, Line] = {}
    for line in lines:
        so_far = sums.get(line.pool_id)
        sums[line.pool_id] = (
            line._replace(delta=so_far.delta + line.delta, held_delta=so_far.held_delta + line.held_delta)
            if so_far
            else line
        )
    return [sums[pool_id] for pool_id in sorted(sums)]


def _move(pool: Pool, delta: int, held_delta: int) -> None:
    pool.on_hand += delta
    pool.held += held_delta


def _shown(pool: Pool, version: int) -> PoolStock:
    return PoolStock(
        id=pool.id,
        name=pool.name,
        unit=pool.unit,
        on_hand=pool.on_hand,
        held=pool.held,
        buffer=pool.buffer,
        available=pool.available,
        low_stock=pool.low_stock_at is not None and pool.available <= pool.low_stock_at,
        version=version,
    )
