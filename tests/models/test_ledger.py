"""The ledger behaves as its model: kits, holds, sales, adjustments, counts, transfers, reverts and keys."""

from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from holdfast.inventory.stock import expiry
from tests.helpers.inventory_service import (
    SINGLE,
    SIX_PACK,
    TWELVE_PACK,
    Inventory,
    ToolRefusal,
    running_inventory,
    unlimited,
)
from tests.models.ledger import Answer, Ledger, Pool
from tests.models.ledger_answers import change_answer, entry, pool_now, refusal
from tests.models.machine import SOAK, Machine, MachineStage, explore, open_stage

OPERATIONS = 350_000 if SOAK else 1_500

POOLS = st.integers(0, 3)
AMOUNTS = st.integers(1, 9)
DELTAS = st.integers(-9, 9).filter(bool)
VARIANTS = st.sampled_from([SINGLE, SIX_PACK, TWELVE_PACK])
OPTIONS = st.sampled_from(
    [{}, {}, {}, {"dry_run": True}, {"idempotency_key": "one"}, {"idempotency_key": "two"}, {"idempotency_key": "six"}]
)
EXPECTED = st.none() | st.sampled_from(["version", "quantity"])
BEFORE = st.sampled_from([0, 1, 1, 1, 2, 2, 3, 5, 8])
"""How far back an entry or a hold lies."""


class LedgerMachine(Machine):
    """An agent of a shop with three pools; the last number names a pool that does not exist."""

    def __init__(self, stage: MachineStage[Inventory]) -> None:
        super().__init__()
        self.stage = stage

    @initialize(stock=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 3), st.booleans()), min_size=3, max_size=3))
    def begin(self, stock: list[tuple[int, int, bool]]) -> None:
        # A run may be longer than the holds of its first shops; here only `expire` ends any.
        self.stage.run(self.stage.service.sql("update holds set expires_at = 'infinity' where released_at is null"))
        self.shop = self.stage.run(self.stage.service.create_shop())
        draws = [{SINGLE: 1, TWELVE_PACK: 2}, {SIX_PACK: 3, TWELVE_PACK: 1}, {}]
        pools: dict[int, Pool] = {}
        for (on_hand, buffer, allow_negative), members in zip(stock, draws, strict=True):
            linked = [{"variant_gid": gid, "units_per_sale": units} for gid, units in members.items()]
            fields = {"buffer": buffer, "allow_negative": allow_negative, "members": linked}
            made = self.stage.run(self.shop.create_pool(on_hand, **fields))
            pools[made["id"]] = Pool(on_hand, buffer, allow_negative, made["version"], members)
        self.ids = [*pools, 10**9]
        entries = self.stage.run(self.shop.entries())
        self.model = Ledger(
            max(pool.version for pool in pools.values()), pools, [entry(made) for made in entries[::-1]]
        )

    @rule(pool=POOLS, quantity=st.integers(0, 20), expected=EXPECTED, right=st.booleans(), options=OPTIONS)
    def count(self, pool: int, quantity: int, expected: str | None, right: bool, options: Answer) -> None:
        unchanged = self._unchanged(pool, expected, right)
        self._change("set_pool_quantity", pool_id=self.ids[pool], quantity=quantity, **unchanged, **options)

    @rule(pool=POOLS, delta=DELTAS, expected=EXPECTED, right=st.booleans(), options=OPTIONS)
    def adjust(self, pool: int, delta: int, expected: str | None, right: bool, options: Answer) -> None:
        kind = "restock" if delta > 6 else "adjust"
        unchanged = self._unchanged(pool, expected, right)
        self._change("adjust_pool_quantity", pool_id=self.ids[pool], delta=delta, kind=kind, **unchanged, **options)

    @rule(changes=st.lists(st.tuples(POOLS, DELTAS), min_size=2, max_size=5))
    def adjust_together(self, changes: list[tuple[int, int]]) -> None:
        """Several at once share a statement. They arrive in the order in which they were sent."""
        calls: list[dict[str, Any]] = [{"pool_id": self.ids[pool], "delta": delta} for pool, delta in changes]
        answers = self.stage.run_together(*(self._ask("adjust_pool_quantity", **call) for call in calls))
        self.agree(calls, answers, [self.model.call("adjust_pool_quantity", **call) for call in calls])

    @rule(items=st.lists(st.tuples(POOLS, DELTAS), min_size=1, max_size=4), options=OPTIONS)
    def adjust_many(self, items: list[tuple[int, int]], options: Answer) -> None:
        lines = [{"pool_id": self.ids[pool], "delta": delta} for pool, delta in items]
        self._change("bulk_adjust", items=lines, **options)

    @rule(pools=st.permutations(range(3)), quantity=AMOUNTS, options=OPTIONS)
    def transfer(self, pools: list[int], quantity: int, options: Answer) -> None:
        source, target = self.ids[pools[0]], self.ids[pools[1]]
        self._change("transfer_quantity", from_pool_id=source, to_pool_id=target, quantity=quantity, **options)

    @rule(pool=POOLS, gid=st.none() | VARIANTS, quantity=st.integers(1, 4), options=OPTIONS)
    def hold(self, pool: int, gid: str | None, quantity: int, options: Answer) -> None:
        named = {"variant_gid": gid} if gid else {"pool_id": self.ids[pool]}
        self._change("hold_quantity", quantity=quantity, **named, **options)

    @rule(pool=POOLS, gid=st.none() | VARIANTS, quantity=st.integers(1, 4), before=st.none() | BEFORE, options=OPTIONS)
    def sell(self, pool: int, gid: str | None, quantity: int, before: int | None, options: Answer) -> None:
        named = {"variant_gid": gid} if gid else {"pool_id": self.ids[pool]}
        hold = {} if before is None else {"hold_id": self._recent_hold(before)}
        self._change("record_sale", quantity=quantity, **named, **hold, **options)

    @rule(before=BEFORE, options=OPTIONS)
    def release(self, before: int, options: Answer) -> None:
        self._change("release_hold", hold_id=self._recent_hold(before), **options)

    @rule(before=BEFORE)
    def expire(self, before: int) -> None:
        """The time of a hold comes."""
        if self.model.holds:
            id = [*self.model.holds][-1 - before % len(self.model.holds)]
            come = (
                "update holds set expires_at = now() where shop_id = %(shop)s and id = %(id)s and released_at is null"
            )
            self.stage.run(self.stage.service.sql(come, shop=self.shop.id, id=id))
            expected = isinstance(self.model.call("release_hold", hold_id=id), dict)
            self.agree(f"hold {id} expires", self.stage.run(expiry.expire(self.stage.service.database)), expected)

    @rule(before=BEFORE, options=OPTIONS)
    def revert(self, before: int, options: Answer) -> None:
        self._change("revert_entry", entry_id=max(1, len(self.model.entries) + 1 - before), **options)

    @rule(pool=st.integers(0, 2), status=st.sampled_from(["pause", "resume", "archive", "restore", "restore"]))
    def set_status(self, pool: int, status: str) -> None:
        becomes = {"pause": "paused", "archive": "archived"}.get(status, "active")
        expected = self.model.configure(self.ids[pool], archived=status == "restore", status=becomes)
        self._agree_on_pool(f"{status}_pool", expected, pool_id=self.ids[pool])

    @rule(pool=st.integers(0, 2), gid=st.none() | VARIANTS, number=st.integers(1, 4))
    def set_buffer_or_units(self, pool: int, gid: str | None, number: int) -> None:
        if gid is None:
            expected = self.model.configure(self.ids[pool], buffer=number)
            self._agree_on_pool("update_pool", expected, pool_id=self.ids[pool], buffer=number)
        else:
            members = {**self.model.pools[self.ids[pool]].members, gid: number}
            expected = self.model.configure(self.ids[pool], members=members)
            linked = [{"variant_gid": gid, "units_per_sale": number}]
            self._agree_on_pool("link_variants", expected, pool_id=self.ids[pool], members=linked)

    @rule()
    def look(self) -> None:
        gids = [SINGLE, SIX_PACK, TWELVE_PACK]
        answer = self.stage.run(self.shop.call("get_availability", variant_gids=gids))
        self.agree("the version", answer["version"], self.model.version)
        actual = {gid: (quantity, answer["limiting_pool"][gid]) for gid, quantity in answer["variants"].items()}
        self.agree("what can be sold", actual, self.model.get_availability(gids))

    @rule()
    def read_the_history(self) -> None:
        entries = self.stage.run(self.shop.entries(limit=100))
        self.agree("the history", [entry(made) for made in entries], self.model.entries[:-101:-1])
        holds = self.stage.run(self.shop.call("list_holds"))["holds"]
        actual = {hold["id"]: {line["pool_id"]: line["quantity"] for line in hold["pools"]} for hold in holds}
        self.agree("the holds", actual, {id: self.model.holds[id] for id in self.model.holds.keys() - self.model.ended})

    def _recent_hold(self, before: int) -> int:
        holds = [10**9, *self.model.holds]
        return holds[-1 - before % len(holds)]

    def _change(self, tool: str, **arguments: Any) -> None:
        expected = self.model.call(tool, **arguments)
        actual = self.stage.run(self._ask(tool, **arguments))
        if "dry_run" in arguments:
            actual, expected = _without_ids(actual), _without_ids(expected)
        self.agree(f"{tool} {arguments}", actual, expected)

    async def _ask(self, tool: str, **arguments: Any) -> Answer | str:
        try:
            return change_answer(await self.shop.call(tool, **arguments))
        except ToolRefusal as error:
            return refusal(error.body)

    def _agree_on_pool(self, tool: str, expected: Answer | str, **arguments: Any) -> None:
        try:
            actual = pool_now(self.stage.run(self.shop.call(tool, **arguments))["pool"])
        except ToolRefusal as error:
            actual = error.code
        self.agree(f"{tool} {arguments}", actual, expected)

    def _unchanged(self, pool: int, expected: str | None, right: bool) -> dict[str, int]:
        """Arguments that say that a pool is as it was; wrong ones, unless `right`."""
        if expected is None or pool == 3:
            return {}
        known = self.model.pools[self.ids[pool]]
        return {f"expected_{expected}": (known.version if expected == "version" else known.on_hand) + (not right)}


def _without_ids(answer: Answer | str) -> Answer | str:
    """An answer without what only something stored has."""
    if isinstance(answer, str):
        return answer
    nothing = {"id": None, "version": None, "hold_id": None}
    entries, pools = (
        [{**entry_of_answer, **nothing} for entry_of_answer in answer[name]] for name in ("entries", "pools")
    )
    return {**answer, **nothing, "hold": None, "entries": entries, "pools": pools}


def test_changes_of_stock_are_answered_as_their_model_says(inventory_url: str, tmp_path: Path) -> None:
    with open_stage(running_inventory(unlimited(inventory_url, tmp_path))) as stage:
        explore(stage, lambda: LedgerMachine(stage), OPERATIONS)
