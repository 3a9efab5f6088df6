"""The schema refuses changes of ledger entries, and balances that are not their sums."""

import json

import psycopg
import pytest

from holdfast.inventory.resources import Tx
from tests.helpers.inventory_service import Inventory, Shop

ENTRY = """
    insert into ledger (shop_id, id, pool_id, seq, kind, delta, held_delta, balance_after, held_after, below_zero,
                        version, actor, source, created_at)
    values (%(shop)s, 99, %(pool)s, %(seq)s, %(kind)s, %(delta)s, %(held_delta)s, %(balance)s, %(held)s, %(below)s,
            9, %(actor)s, 'test', now())
"""


async def insert(inventory: Inventory, shop: Shop, pool_id: int, **changes: object) -> None:
    """Write an entry after the first of a pool of 50: -6, unless the changes say otherwise."""
    fields = {
        "seq": 2,
        "kind": "adjust",
        "delta": -6,
        "held_delta": 0,
        "balance": 44,
        "held": 0,
        "below": False,
        "actor": "agent",
        **changes,
    }
    await inventory.sql(ENTRY, shop=shop.id, pool=pool_id, **fields)


@pytest.mark.parametrize(
    "statement", ["update ledger set delta = 1", "delete from ledger", "truncate ledger, holds, hold_lines"]
)
async def test_no_entry_is_ever_changed_or_removed(shop: Shop, inventory: Inventory, statement: str) -> None:
    await shop.create_pool(50)
    before = await inventory.all_rows()

    with pytest.raises(psycopg.errors.IntegrityError, match="append-only"):
        await inventory.sql(statement)

    assert await inventory.all_rows() == before


async def test_an_entry_that_continues_the_ledger_changes_the_balance(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_pool(50)

    await insert(inventory, shop, pool["id"])

    assert await inventory.sql("select on_hand, held, entries, version from pools") == [(44, 0, 2, 9)]
    assert await inventory.ledger_differences() == []


@pytest.mark.parametrize(
    "changes",
    [{"balance": 45}, {"balance": 50}, {"seq": 3}, {"held": 1}, {"delta": -7}, {"held_delta": 5, "kind": "hold"}],
    ids=str,
)
async def test_an_entry_that_does_not_continue_the_ledger_is_refused(
    shop: Shop, inventory: Inventory, changes: dict[str, object]
) -> None:
    pool = await shop.create_pool(50)

    with pytest.raises(psycopg.errors.IntegrityError, match="do not continue the ledger"):
        await insert(inventory, shop, pool["id"], **changes)

    assert await inventory.ledger_differences() == []
    assert await shop.on_hand(pool["id"]) == 50


TWO = """
    insert into ledger (shop_id, id, pool_id, seq, kind, delta, held_delta, balance_after, held_after, below_zero,
                        version, actor, source, created_at)
    select %(shop)s, 97 + seq, %(pool)s, seq, 'adjust', delta, 0, balance, 0, false, 9, 'agent', 'test', now()
      from json_to_recordset(%(entries)s) as entry (seq bigint, delta bigint, balance bigint)
"""
"""Entries of one pool, in one statement and in the order given."""


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=str)
async def test_the_balance_of_a_pool_is_that_of_its_entry_with_the_highest_number(
    shop: Shop, inventory: Inventory, order: tuple[int, int]
) -> None:
    pool = await shop.create_pool(50)
    entries = [{"seq": 2, "delta": -6, "balance": 44}, {"seq": 3, "delta": 10, "balance": 54}]

    await inventory.sql(TWO, shop=shop.id, pool=pool["id"], entries=json.dumps([entries[place] for place in order]))

    assert await inventory.sql("select on_hand, held, entries from pools") == [(54, 0, 3)]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=str)
async def test_several_entries_are_refused_if_the_last_has_another_balance(
    shop: Shop, inventory: Inventory, order: tuple[int, int]
) -> None:
    pool = await shop.create_pool(50)
    entries = [{"seq": 2, "delta": -6, "balance": 54}, {"seq": 3, "delta": 10, "balance": 44}]

    with pytest.raises(psycopg.errors.IntegrityError, match="do not continue the ledger"):
        await inventory.sql(TWO, shop=shop.id, pool=pool["id"], entries=json.dumps([entries[place] for place in order]))

    assert await shop.on_hand(pool["id"]) == 50


@pytest.mark.parametrize(
    ("entries", "error"),
    [
        ([(2, -6, 45), (3, 10, 54)], psycopg.errors.IntegrityError),
        ([(2, -6, 44), (4, 10, 54)], psycopg.errors.IntegrityError),
        ([(2, -6, 44), (2, 10, 54)], psycopg.errors.UniqueViolation),
        ([(2, -6, 44), (2, 0, 44), (4, 10, 54)], psycopg.errors.UniqueViolation),
    ],
    ids=str,
)
async def test_entries_of_one_statement_must_continue_each_other(
    shop: Shop, inventory: Inventory, entries: list[tuple[int, int, int]], error: type[Exception]
) -> None:
    pool = await shop.create_pool(50)
    rows = [
        {"id": 97 + place, "seq": seq, "delta": delta, "balance": balance}
        for place, (seq, delta, balance) in enumerate(entries)
    ]

    with pytest.raises(error):
        await inventory.sql(
            TWO.replace("97 + seq", "id").replace("entry (", "entry (id bigint, "),
            shop=shop.id,
            pool=pool["id"],
            entries=json.dumps(rows),
        )

    assert await shop.on_hand(pool["id"]) == 50


async def test_no_entry_reverts_one_that_does_not_exist(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_pool(50)

    with pytest.raises(psycopg.errors.ForeignKeyViolation, match="revert one that does not exist"):
        await inventory.sql(
            ENTRY.replace("created_at)", "created_at, reverts_id)").replace("now())", "now(), 77)"),
            shop=shop.id,
            pool=pool["id"],
            seq=2,
            kind="revert",
            delta=6,
            held_delta=0,
            balance=56,
            held=0,
            below=False,
            actor="agent",
        )


async def test_a_number_of_an_entry_is_used_once(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_pool(50)

    with pytest.raises(psycopg.errors.UniqueViolation):
        await insert(inventory, shop, pool["id"], seq=1)


PROMISES = [
    ({"delta": -51, "balance": -1}, False),
    ({"delta": -51, "balance": -1, "below": True}, True),
    ({"delta": -51, "balance": -1, "kind": "sale", "actor": "platform"}, True),
    ({"delta": -51, "balance": -1, "kind": "sale", "actor": "agent"}, False),
    ({"delta": -51, "balance": -1, "kind": "sale", "actor": "staff"}, False),
    ({"delta": -51, "balance": -1, "kind": "external_edit"}, True),
    ({"delta": -51, "balance": -1, "kind": "reconcile"}, True),
    ({"delta": -51, "balance": -1, "kind": "transfer"}, False),
    ({"delta": -51, "balance": -1, "kind": "revert"}, False),
    ({"delta": -51, "balance": -1, "kind": "import"}, False),
    ({"delta": 0, "balance": 50, "kind": "hold", "held_delta": 51, "held": 51}, False),
    ({"delta": 0, "balance": 50, "kind": "hold", "held_delta": 50, "held": 50}, True),
    ({"delta": -50, "balance": 0}, True),
]


@pytest.mark.parametrize(("changes", "is_accepted"), PROMISES, ids=[str(changes) for changes, _ in PROMISES])
async def test_stock_is_not_promised_twice_except_for_facts_and_where_the_pool_allows_it(
    shop: Shop, inventory: Inventory, changes: dict[str, object], is_accepted: bool
) -> None:
    pool = await shop.create_pool(50)

    if is_accepted:
        await insert(inventory, shop, pool["id"], **changes)
    else:
        with pytest.raises(psycopg.errors.CheckViolation, match="nothing_is_promised_twice"):
            await insert(inventory, shop, pool["id"], **changes)


async def test_the_held_quantity_never_falls_below_zero(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_pool(50)

    with pytest.raises(psycopg.errors.CheckViolation):
        await insert(inventory, shop, pool["id"], kind="release", delta=0, balance=50, held_delta=-1, held=-1)


async def test_an_entry_is_reverted_once(shop: Shop, inventory: Inventory) -> None:
    await shop.create_pool(50)
    await shop.call("adjust_pool_quantity", pool_id=1, delta=-6)
    await shop.call("revert_entry", entry_id=2)

    with pytest.raises(psycopg.errors.UniqueViolation):
        await inventory.sql(
            """
            insert into ledger (shop_id, id, pool_id, seq, kind, delta, held_delta, balance_after, held_after,
                                below_zero, version, actor, source, created_at, reverts_id)
            values (%(shop)s, 4, 1, 4, 'revert', 6, 0, 56, 0, false, 9, 'agent', 'test', now(), 2)
            """,
            shop=shop.id,
        )


@pytest.mark.parametrize("column", ["on_hand", "held", "entries", "shop_id", "inserted_at"])
async def test_the_role_of_a_shop_cannot_write_counted_columns(shop: Shop, inventory: Inventory, column: str) -> None:
    await shop.create_pool(50)

    async def tamper(tx: Tx) -> None:
        await tx.value(f"update pools set {column} = {column} returning id")  # pyright: ignore[reportArgumentType]

    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        await inventory.database.transact(tamper, shop.id)


@pytest.mark.parametrize("statement", ["update ledger set reason = 'x'", "delete from ledger", "delete from pools"])
async def test_the_role_of_a_shop_cannot_rewrite_its_ledger(shop: Shop, inventory: Inventory, statement: str) -> None:
    await shop.create_pool(50)

    async def tamper(tx: Tx) -> None:
        await tx.value(statement)  # pyright: ignore[reportArgumentType]

    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        await inventory.database.transact(tamper, shop.id)


@pytest.mark.parametrize(
    ("tampering", "message"),
    [
        ("update pools set on_hand = 51", "on_hand 51, its ledger sums to 50"),
        ("update pools set held = 7", "held 7, its ledger sums to 6"),
        ("update pools set entries = 1", "1 entries counted, 2 found"),
        ("update hold_lines set quantity = 7", "active holds keep 7"),
        ("update holds set released_at = now()", "active holds keep 0"),
    ],
)
async def test_the_audit_finds_what_was_tampered_with(
    shop: Shop, inventory: Inventory, tampering: str, message: str
) -> None:
    pool = await shop.create_pool(50)
    await shop.call("hold_quantity", pool_id=pool["id"], quantity=6)
    assert await inventory.ledger_differences() == []

    await inventory.sql(tampering)

    (difference,) = await inventory.ledger_differences()
    assert difference.startswith(f"Pool {pool['id']}: ")
    assert message in difference


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (ENTRY.replace("%(pool)s", "1000"), "of a pool that does not exist"),
        (ENTRY.replace("%(shop)s, 99", "1000, 99"), "of a pool that does not exist"),
        ("delete from pools", "pool 1 has entries"),
        ("update pools set id = default", "the key of a pool cannot change"),
    ],
)
async def test_no_statement_can_leave_an_entry_without_a_pool(
    shop: Shop, inventory: Inventory, statement: str, message: str
) -> None:
    pool = await shop.create_pool(50)
    before = await inventory.all_rows()
    fields = {"seq": 2, "kind": "adjust", "delta": 6, "held_delta": 0, "balance": 56, "held": 0, "below": False}

    with pytest.raises(psycopg.errors.ForeignKeyViolation, match=message):
        await inventory.sql(statement, shop=shop.id, pool=pool["id"], actor="agent", **fields)

    assert await inventory.all_rows() == before
