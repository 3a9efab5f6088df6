"""The rules of the ledger alone, for any changes of a stock in any order."""

from datetime import UTC, datetime
from typing import Any, get_args

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.inventory.stock.ledger_rules import (
    MAX_POOL_QUANTITY,
    ChangeCause,
    LedgerPool,
    Posting,
    Stock,
    is_fact,
)
from holdfast.inventory.stock.model import Actor, Entry, EntryKind
from holdfast.kit.contract.problems import Problem

NOW = datetime(2026, 11, 20, tzinfo=UTC)
few = settings(max_examples=40)
CAUSE = ChangeCause("agent", 1, "test")
FACT = ChangeCause("platform", None, "test")
DECISIONS: list[EntryKind] = ["adjust", "set", "transfer", "import", "revert", "restock"]
FACTS: list[EntryKind] = ["cancel", "external_edit", "reconcile", "sale"]
gids = st.sampled_from(["gid://shopify/ProductVariant/1", "gid://shopify/ProductVariant/2", "gid://s/ProductVariant/3"])
amounts = st.integers(-60, 60) | st.sampled_from([-MAX_POOL_QUANTITY, MAX_POOL_QUANTITY, MAX_POOL_QUANTITY + 1])


@st.composite
def pools(draw: st.DrawFn) -> list[LedgerPool]:
    """One to three pools with nothing in them yet, and the variants that draw on them."""
    return [
        LedgerPool(
            id=id,
            name=f"Pool {id}",
            unit="units",
            on_hand=0,
            held=0,
            buffer=draw(st.integers(0, 20)),
            low_stock_at=None,
            allow_negative=draw(st.booleans()),
            status=draw(st.sampled_from(["active", "active", "paused"])),
            version=0,
            entry_count=0,
            members=draw(st.dictionaries(gids, st.integers(1, 12))),
        )
        for id in range(1, draw(st.integers(1, 3)) + 1)
    ]


@st.composite
def changes(draw: st.DrawFn, count: int) -> list[Posting]:
    """The lines of one change: a decision, a fact or a hold. A pool may stand in several of them."""
    ids = draw(st.lists(st.integers(1, count), min_size=1, max_size=4))
    what = draw(st.sampled_from(["decision", "fact", "hold"]))
    if what == "hold":
        return [Posting(id, "hold", 0, draw(st.integers(1, 40))) for id in ids]
    kind: EntryKind = draw(st.sampled_from(DECISIONS if what == "decision" else FACTS))
    return [Posting(id, kind, draw(amounts)) for id in ids]


@st.composite
def stories(draw: st.DrawFn) -> tuple[list[LedgerPool], list[list[Posting]]]:
    made = draw(pools())
    return made, draw(st.lists(changes(len(made)), max_size=12))


def stock_of(pools: list[LedgerPool]) -> Stock:
    return Stock(0, 0, NOW, msgspec.convert(msgspec.to_builtins(pools), list[LedgerPool]))


def state_of(stock: Stock) -> Any:
    """Everything a stock knows."""
    return stock.version, stock.entry_count, [msgspec.structs.asdict(pool) for pool in stock.pools.values()]


def apply_lines(stock: Stock, lines: list[Posting]) -> list[Entry] | Problem:
    try:
        return stock.apply(lines, FACT if lines[0].kind in FACTS else CAUSE).entries
    except Problem as problem:
        return problem


def test_a_sale_is_a_fact_unless_a_person_or_an_agent_records_it() -> None:
    actors: tuple[Actor, ...] = get_args(Actor)

    assert [actor for actor in actors if is_fact("sale", actor)] == ["platform", "system"]


def test_all_other_kinds_are_facts_or_decisions_by_any_actor() -> None:
    kinds: tuple[EntryKind, ...] = get_args(EntryKind)
    actors: tuple[Actor, ...] = get_args(Actor)

    assert {(kind, actor) for kind in kinds for actor in actors if is_fact(kind, actor) and kind != "sale"} == {
        (kind, actor) for kind in FACTS for actor in actors if kind != "sale"
    }


@few
@given(stories())
def test_every_balance_is_the_sum_of_its_entries(story: tuple[list[LedgerPool], list[list[Posting]]]) -> None:
    stock, ledger = stock_of(story[0]), list[Entry]()
    for lines in story[1]:
        if not isinstance(entries := apply_lines(stock, lines), Problem):
            ledger += entries

    for pool in stock.pools.values():
        of_pool = [entry for entry in ledger if entry.pool_id == pool.id]
        assert pool.on_hand == sum(entry.delta for entry in of_pool)
        assert pool.held == sum(entry.held_delta for entry in of_pool)
        assert pool.entry_count == len(of_pool)
        if of_pool:
            assert (of_pool[-1].balance_after, of_pool[-1].held_after, of_pool[-1].version) == (
                pool.on_hand,
                pool.held,
                pool.version,
            )
    assert [entry.id for entry in ledger] == [*range(1, len(ledger) + 1)]
    assert stock.entry_count == len(ledger)


@few
@given(stories())
def test_no_decision_takes_what_is_not_there_or_is_held(story: tuple[list[LedgerPool], list[list[Posting]]]) -> None:
    stock = stock_of(story[0])
    for lines in story[1]:
        before = {pool.id: (pool.on_hand, pool.held) for pool in stock.pools.values()}
        if isinstance(entries := apply_lines(stock, lines), Problem):
            continue
        for entry in entries:
            pool = stock.pools[entry.pool_id]
            takes = entry.delta < 0 or entry.held_delta > 0
            if entry.kind in FACTS or pool.allow_negative or not takes:
                continue
            assert pool.on_hand >= pool.held
            if entry.kind == "hold":
                assert pool.on_hand - pool.held >= pool.buffer
            assert before[pool.id][0] >= before[pool.id][1]


@few
@given(stories())
def test_a_refused_change_leaves_the_stock_as_it_was(story: tuple[list[LedgerPool], list[list[Posting]]]) -> None:
    stock, refusals = stock_of(story[0]), 0
    *other_ids, last_id = (pool.id for pool in story[0])
    too_many_added = [
        *(Posting(id, "adjust", 1) for id in other_ids),
        Posting(last_id, "adjust", 3 * MAX_POOL_QUANTITY),
    ]
    too_many_held = [
        *(Posting(id, "hold", 0, 1) for id in other_ids),
        Posting(last_id, "hold", 0, 3 * MAX_POOL_QUANTITY),
    ]
    for lines in [*story[1], too_many_added, too_many_held]:
        before = state_of(stock)
        if isinstance(apply_lines(stock, lines), Problem):
            refusals += 1
            assert state_of(stock) == before

    assert refusals >= 2


@few
@given(stories())
def test_a_fact_is_refused_exactly_beyond_what_can_be_counted(
    story: tuple[list[LedgerPool], list[list[Posting]]],
) -> None:
    stock = stock_of(story[0])
    facts = [lines for lines in story[1] if lines[0].kind in FACTS]
    for lines in [*facts, *([[Posting(1, FACTS[0], MAX_POOL_QUANTITY)]] * 3)]:
        moved = {id: sum(line.delta for line in lines if line.pool_id == id) for id in {line.pool_id for line in lines}}
        is_countable = all(abs(stock.pools[id].on_hand + delta) <= MAX_POOL_QUANTITY for id, delta in moved.items())
        answer = apply_lines(stock, lines)
        assert isinstance(answer, Problem) != is_countable
        assert not isinstance(answer, Problem) or answer.code == "validation_failed"


@few
@given(stories())
def test_the_lines_of_one_pool_count_as_their_sum(story: tuple[list[LedgerPool], list[list[Posting]]]) -> None:
    one_by_one, added_up = stock_of(story[0]), stock_of(story[0])
    for lines in story[1]:
        sums = [
            Posting(
                id,
                lines[0].kind,
                sum(line.delta for line in lines if line.pool_id == id),
                sum(line.held_delta for line in lines if line.pool_id == id),
            )
            for id in {line.pool_id for line in lines}
        ]
        assert isinstance(apply_lines(one_by_one, lines), Problem) == isinstance(apply_lines(added_up, sums), Problem)
        assert state_of(one_by_one) == state_of(added_up)


@few
@given(stories())
def test_a_change_lists_exactly_the_variants_whose_quantity_changes(
    story: tuple[list[LedgerPool], list[list[Posting]]],
) -> None:
    stock = stock_of(story[0])
    names = sorted({gid for pool in story[0] for gid in pool.members})
    for lines in story[1]:
        before = {gid: stock.available(gid) for gid in names}
        try:
            affected = stock.apply(lines, FACT).affected
        except Problem:
            continue
        after = {gid: stock.available(gid) for gid in names}
        assert affected is not None
        assert {variant.variant_gid: (variant.before, variant.after) for variant in affected} == {
            gid: (before[gid], after[gid]) for gid in names if before[gid] != after[gid]
        }


@few
@given(stories())
def test_the_available_quantity_of_a_variant_is_the_least_of_its_pools_and_never_negative(
    story: tuple[list[LedgerPool], list[list[Posting]]],
) -> None:
    stock = stock_of(story[0])
    for lines in story[1]:
        apply_lines(stock, lines)
    for gid in {gid for pool in story[0] for gid in pool.members}:
        drawn = [pool for pool in stock.pools.values() if gid in pool.members]
        allowed = [max(0, (pool.on_hand - pool.held - pool.buffer) // pool.members[gid]) for pool in drawn]
        is_active = all(pool.status == "active" for pool in drawn)
        assert stock.available(gid) == (min(allowed) if is_active else None)
