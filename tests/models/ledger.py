"""A model of a shop's stock: pools, the variants that draw on them, the ledger, holds; one call after the other.

Tools are methods. An answer is what the model can tell of it, or the code of a refusal with the numbers it names.
"""

from collections import Counter
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from tests.models.keys import Keys

Answer = dict[str, Any]
Amounts = Mapping[int, int]
NONE: Amounts = {}


class LedgerRefusal(Exception):
    """A call changes nothing."""


@dataclass
class Pool:
    """A pool, and what one sale of each variant takes from it."""

    on_hand: int
    buffer: int
    allow_negative: bool
    version: int
    members: dict[str, int]
    held: int = 0
    status: str = "active"

    @property
    def available(self) -> int:
        return max(0, self.on_hand - self.held - self.buffer)


@dataclass
class Ledger:
    """The stock of a shop. `holds` has what each hold keeps; those in `ended` keep it no longer."""

    version: int
    pools: dict[int, Pool]
    entries: list[Answer] = field(default_factory=list[Answer])
    holds: dict[int, Amounts] = field(default_factory=dict[int, Amounts])
    ended: set[int] = field(default_factory=set[int])
    keys: Keys = field(default_factory=Keys)

    def call(self, tool: str, *, dry_run: bool = False, idempotency_key: str | None = None, **arguments: Any) -> Any:
        """The answer of a tool that changes stock."""
        if dry_run:
            return deepcopy(self).call(tool, **arguments)
        return self.keys.once(idempotency_key, (tool, repr(arguments)), lambda: self._try(tool, arguments))

    def _try(self, tool: str, arguments: Answer) -> Answer | str:
        try:
            return getattr(self, tool)(**arguments)
        except LedgerRefusal as refusal:
            return str(refusal)

    def set_pool_quantity(self, pool_id: int, quantity: int, **expected: int) -> Answer:
        return self._apply("set", {pool_id: quantity - self._pool(pool_id, **expected).on_hand})

    def adjust_pool_quantity(self, pool_id: int, delta: int, kind: str = "adjust", **expected: int) -> Answer:
        self._pool(pool_id, **expected)
        return self._apply(kind, {pool_id: delta})

    def bulk_adjust(self, items: list[dict[str, int]]) -> Answer:
        sums = Counter[int]()
        for item in items:
            sums[item["pool_id"]] += item["delta"]
        return self._apply("adjust", sums)

    def transfer_quantity(self, from_pool_id: int, to_pool_id: int, quantity: int) -> Answer:
        return self._apply("transfer", {from_pool_id: -quantity, to_pool_id: quantity})

    def hold_quantity(self, quantity: int, pool_id: int = 0, variant_gid: str = "", ttl_s: int = 900) -> Answer:
        held, id = self._drawn(quantity, pool_id, variant_gid), len(self.entries) + 1
        answer = self._apply("hold", {}, held, hold=id)
        self.holds[id] = held
        return {**answer, "hold": id}

    def release_hold(self, hold_id: int) -> Answer:
        return self._apply("release", {}, self._returned_amounts(hold_id), hold=hold_id)

    def record_sale(self, quantity: int, pool_id: int = 0, variant_gid: str = "", hold_id: int | None = None) -> Answer:
        sold = {id: -quantity_drawn for id, quantity_drawn in self._drawn(quantity, pool_id, variant_gid).items()}
        held = self._returned_amounts(hold_id) if hold_id else NONE
        if held.keys() - sold.keys():
            raise LedgerRefusal("validation_failed")
        return self._apply("sale", sold, held, hold=hold_id)

    def revert_entry(self, entry_id: int) -> Answer:
        if entry_id > len(self.entries):
            raise LedgerRefusal("not_found")
        entry = self.entries[entry_id - 1]
        if entry["kind"] not in {"restock", "set", "adjust", "transfer", "sale"}:
            raise LedgerRefusal("not_revertible")
        if any(entry["reverts_id"] == entry_id for entry in self.entries):
            raise LedgerRefusal("already_reverted")
        change = {other["pool_id"]: other for other in self.entries if other["version"] == entry["version"]}
        reverts = {id: reverted["id"] for id, reverted in change.items()}
        return self._apply("revert", {id: -reverted["delta"] for id, reverted in change.items()}, reverts=reverts)

    def configure(self, pool_id: int, *, archived: bool = False, **fields: Any) -> Any:
        """Change a pool's status, buffer or members. `archived` says that it must be archived, not active."""
        pool = self.pools[pool_id]
        if (pool.status == "archived") != archived:
            return "pool_not_active"
        if fields.get("status") == "archived" and pool.held:
            return "pool_has_holds"
        self.version += 1
        self.pools[pool_id] = replace(pool, **fields, version=self.version)
        return self._pool_answer(pool_id)

    def get_availability(self, gids: list[str]) -> dict[str, tuple[int, int]]:
        """How many of each variant can be sold, and the pool that allows no more."""
        return {gid: least for gid in gids if (least := self._limit(gid))}

    def _limit(self, gid: str) -> tuple[int, int] | None:
        draws = [(id, pool) for id, pool in self.pools.items() if gid in pool.members]
        if any(pool.status != "active" for _, pool in draws):
            return None
        return min(((pool.available // pool.members[gid], id) for id, pool in draws), default=None)

    def _drawn(self, quantity: int, pool_id: int, gid: str) -> Amounts:
        """What a quantity of a variant, or of a pool, takes from each pool."""
        draws = {pool_id: 1} if pool_id else {id: pool.members.get(gid, 0) for id, pool in self.pools.items()}
        drawn = {id: quantity * units for id, units in draws.items() if units and self._pool(id)}
        if not drawn:
            raise LedgerRefusal("not_found")
        return drawn

    def _returned_amounts(self, hold_id: int) -> Amounts:
        if hold_id not in self.holds or hold_id in self.ended:
            raise LedgerRefusal("hold_ended" if hold_id in self.ended else "not_found")
        return {id: -quantity for id, quantity in self.holds[hold_id].items()}

    def _pool(self, id: int, expected_version: int | None = None, expected_quantity: int | None = None) -> Pool:
        pool = self.pools.get(id)
        if pool is None or pool.status == "archived":
            raise LedgerRefusal("pool_not_active" if pool else "not_found")
        if expected_version not in {None, pool.version} or expected_quantity not in {None, pool.on_hand}:
            raise LedgerRefusal("stale")
        return pool

    def _apply(
        self, kind: str, deltas: Amounts, held: Amounts = NONE, hold: int | None = None, reverts: Amounts = NONE
    ) -> Answer:
        """Change all the pools, or none. A hold ends by what gives it back."""
        pools = {id: self._pool(id) for id in {**deltas, **held}}
        for id in (touched := sorted(pools)):
            self._permit(kind, id, deltas.get(id, 0), held.get(id, 0))
        gids = sorted({gid for pool in pools.values() for gid in pool.members})
        before = self.get_availability(gids)
        self.version += 1
        self.ended |= {hold} if hold and kind != "hold" else set()
        for id in touched:
            pool, delta, held_delta = pools[id], deltas.get(id, 0), held.get(id, 0)
            pool.on_hand, pool.held, pool.version = pool.on_hand + delta, pool.held + held_delta, self.version
            entry = {"id": len(self.entries) + 1, "version": self.version, "pool_id": id, "hold_id": hold}
            entry |= {"kind": kind, "delta": delta, "held_delta": held_delta, "reverts_id": reverts.get(id)}
            self.entries.append(entry | {"balance_after": pool.on_hand, "held_after": pool.held})
        after = self.get_availability(gids)
        affected = [[gid, before[gid][0], after[gid][0]] for gid in before if before[gid][0] != after[gid][0]]
        answer = {"version": self.version, "affected": affected, "entries": self.entries[-len(touched) :]}
        return {**answer, "pools": [self._pool_answer(id) for id in touched], "hold": None}

    def _permit(self, kind: str, id: int, delta: int, held_delta: int) -> None:
        """Nothing takes what is not there, or is held for others. Only a correction takes from the buffer."""
        pool = self.pools[id]
        free = pool.on_hand - pool.held
        most = {"hold": free - pool.buffer, "sale": min(pool.on_hand, pool.available - held_delta)}.get(kind, free)
        needed = held_delta if kind == "hold" else -delta
        if needed > max(0, most) and (kind == "hold" or not pool.allow_negative):
            raise LedgerRefusal(f"not_enough_stock in {id}: {max(0, most)}, not {needed}")

    def _pool_answer(self, id: int) -> Answer:
        names = ("on_hand", "held", "buffer", "available", "version")
        return {"id": id, **{name: getattr(self.pools[id], name) for name in names}}
