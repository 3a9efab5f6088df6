"""A model of a shop's stock: pools, the variants that draw on them, the ledger, holds; one call after the other.

Tools are methods with the tools' names and arguments. An answer is a refusal, as a text that begins with its code, or
what the model can tell of the service's answer.
"""

from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from tests.models.keys import Keys

Answer = dict[str, Any]
REVERTIBLE = {"restock", "set", "adjust", "transfer"}


class Refused(Exception):
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


Posting = tuple[int, str, int, int, int | None]
"""What a change does to one pool: its id, the kind of entry, delta, held_delta, and the entry that it reverts."""


@dataclass
class Ledger:
    """The stock of a shop. `holds` has what each hold keeps of each pool; `ended` those that keep nothing any more."""

    version: int
    pools: dict[int, Pool]
    entries: list[Answer] = field(default_factory=list[Answer])
    holds: dict[int, dict[int, int]] = field(default_factory=dict[int, dict[int, int]])
    ended: set[int] = field(default_factory=set[int])
    keys: Keys = field(default_factory=Keys)

    def call(self, tool: str, *, dry_run: bool = False, idempotency_key: str | None = None, **given: Any) -> Any:
        """The answer of a tool that changes stock."""
        if dry_run:
            return deepcopy(self)._try(tool, given)
        return self.keys.once(idempotency_key, (tool, repr(given)), lambda: self._try(tool, given))

    def _try(self, tool: str, given: Answer) -> Answer | str:
        try:
            return getattr(self, tool)(**given)
        except Refused as refused:
            return str(refused)

    def set_pool_quantity(self, pool_id: int, quantity: int, **expected: int) -> Answer:
        return self._apply([(pool_id, "set", quantity - self._pool(pool_id, **expected).on_hand, 0, None)])

    def adjust_pool_quantity(self, pool_id: int, delta: int, kind: str = "adjust", **expected: int) -> Answer:
        self._pool(pool_id, **expected)
        return self._apply([(pool_id, kind, delta, 0, None)])

    def bulk_adjust(self, items: list[dict[str, int]]) -> Answer:
        return self._apply([(item["pool_id"], "adjust", item["delta"], 0, None) for item in items])

    def transfer_quantity(self, from_pool_id: int, to_pool_id: int, quantity: int) -> Answer:
        moves = {from_pool_id: -quantity, to_pool_id: quantity}
        return self._apply([(id, "transfer", delta, 0, None) for id, delta in moves.items()])

    def hold_quantity(self, quantity: int, pool_id: int = 0, variant_gid: str = "", ttl_s: int = 900) -> Answer:
        kept = {id: quantity * units for id, units in self._drawn(pool_id, variant_gid).items()}
        id = len(self.entries) + 1
        answer = self._apply([(pool, "hold", 0, each, None) for pool, each in kept.items()], id)
        self.holds[id] = kept
        return {**answer, "hold": id}

    def release_hold(self, hold_id: int) -> Answer:
        answer = self._apply([(id, "release", 0, -kept, None) for id, kept in self._hold(hold_id).items()], hold_id)
        self.ended.add(hold_id)
        return answer

    def record_sale(self, quantity: int, pool_id: int = 0, variant_gid: str = "", hold_id: int | None = None) -> Answer:
        taken = {id: quantity * units for id, units in self._drawn(pool_id, variant_gid).items()}
        kept = self._hold(hold_id) if hold_id else {}
        if kept.keys() - taken.keys():
            raise Refused("validation_failed")
        answer = self._apply([(id, "sale", -each, -kept.get(id, 0), None) for id, each in taken.items()], hold_id)
        self.ended |= {hold_id} if hold_id else set()
        return answer

    def revert_entry(self, entry_id: int) -> Answer:
        if entry_id > len(self.entries):
            raise Refused("not_found")
        entry = self.entries[entry_id - 1]
        if entry["kind"] not in REVERTIBLE:
            raise Refused("not_revertible")
        if any(each["reverts_id"] == entry_id for each in self.entries):
            raise Refused("already_reverted")
        change = [each for each in self.entries if each["version"] == entry["version"]]
        return self._apply([(each["pool_id"], "revert", -each["delta"], 0, each["id"]) for each in change])

    def configure(self, pool_id: int, *, archived: bool = False, **fields: Any) -> Any:
        """Change a pool's status, buffer or members. `archived` says that it must be archived, not active."""
        pool = self.pools[pool_id]
        if (pool.status == "archived") != archived:
            return "pool_not_active"
        if fields.get("status") == "archived" and pool.held:
            return "pool_has_holds"
        self.version += 1
        self.pools[pool_id] = replace(pool, **fields, version=self.version)
        return self.shown(pool_id)

    def get_availability(self, gids: list[str]) -> dict[str, tuple[int, int]]:
        """How many of each variant can be sold, and the pool that allows no more."""
        return {gid: least for gid in gids if (least := self._limit(gid))}

    def shown(self, id: int) -> Answer:
        names = ("on_hand", "held", "buffer", "available", "version")
        return {"id": id, **{name: getattr(self.pools[id], name) for name in names}}

    def _draws(self, gid: str) -> dict[int, int]:
        return {id: pool.members[gid] for id, pool in self.pools.items() if gid in pool.members}

    def _drawn(self, pool_id: int, gid: str) -> dict[int, int]:
        """What one of a variant, or of a pool, takes from each pool. All of them may be changed."""
        draws = {pool_id: 1} if pool_id else self._draws(gid)
        if not [self._pool(id) for id in draws]:
            raise Refused("not_found")
        return draws

    def _hold(self, id: int) -> dict[int, int]:
        if id not in self.holds or id in self.ended:
            raise Refused("hold_ended" if id in self.ended else "not_found")
        return self.holds[id]

    def _limit(self, gid: str) -> tuple[int, int] | None:
        draws = self._draws(gid)
        if any(self.pools[id].status != "active" for id in draws):
            return None
        return min(((self.pools[id].available // units, id) for id, units in draws.items()), default=None)

    def _pool(self, id: int, expected_version: int | None = None, expected_quantity: int | None = None) -> Pool:
        pool = self.pools.get(id)
        if pool is None or pool.status == "archived":
            raise Refused("pool_not_active" if pool else "not_found")
        if expected_version not in {None, pool.version} or expected_quantity not in {None, pool.on_hand}:
            raise Refused("stale")
        return pool

    def _apply(self, postings: list[Posting], hold_id: int | None = None) -> Answer:
        """Change all the pools, or none. Postings of one pool are added up."""
        sums: dict[int, Posting] = {}
        for id, kind, delta, held_delta, reverts_id in postings:
            self._pool(id)
            _, _, delta_before, held_before, _ = sums.get(id, (id, kind, 0, 0, None))
            sums[id] = (id, kind, delta_before + delta, held_before + held_delta, reverts_id)
        changes = [sums[id] for id in sorted(sums)]
        for each in changes:
            self._permit(each)
        gids = sorted({gid for id in sums for gid in self.pools[id].members})
        before = self.get_availability(gids)
        self.version += 1
        entries = [self._post(each, hold_id) for each in changes]
        after = self.get_availability(gids)
        affected = [[gid, before[gid][0], after[gid][0]] for gid in before if before[gid][0] != after[gid][0]]
        pools = [self.shown(id) for id in sorted(sums)]
        return {"version": self.version, "entries": entries, "pools": pools, "affected": affected, "hold": None}

    def _permit(self, posting: Posting) -> None:
        """Nothing takes what is not there, or is held for others. Only a correction takes from the buffer."""
        id, kind, delta, held_delta, _ = posting
        pool = self.pools[id]
        free = pool.on_hand - pool.held
        most = {"hold": free - pool.buffer, "sale": min(pool.on_hand, pool.available - held_delta)}.get(kind, free)
        wanted = held_delta if kind == "hold" else -delta
        if wanted > max(0, most) and (kind == "hold" or not pool.allow_negative):
            raise Refused(f"not_enough_stock in {id}: {max(0, most)}, not {wanted}")

    def _post(self, posting: Posting, hold_id: int | None) -> Answer:
        id, kind, delta, held_delta, reverts_id = posting
        pool = self.pools[id]
        pool.on_hand, pool.held, pool.version = pool.on_hand + delta, pool.held + held_delta, self.version
        entry = {"id": len(self.entries) + 1, "version": self.version, "hold_id": hold_id, "reverts_id": reverts_id}
        entry |= {"pool_id": id, "kind": kind, "delta": delta, "held_delta": held_delta}
        entry |= {"balance_after": pool.on_hand, "held_after": pool.held}
        self.entries.append(entry)
        return entry
