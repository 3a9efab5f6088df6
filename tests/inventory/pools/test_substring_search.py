"""Searching by a part of a name, title or SKU, among few rows and among many."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.helpers.inventory_service import Inventory, Shop

MANY = 3_000
"""More than are looked at one by one."""

LATE = ("Zebra 100% wool_blend", r"Zebra back\slash", "Zebra 山田ようかん詰合せ", "Zebra ÄTHER", "Zebra x")
"""Titles that come behind all others in the order of each list."""


@pytest.fixture(scope="module")
def inventory(module_inventory: Inventory) -> Inventory:
    """The tests share two shops, since to fill one takes longer than what they try."""
    return module_inventory


@pytest.fixture(scope="module")
async def full_shop(inventory: Inventory) -> Shop:
    """Thousands of honey jars, and few others behind them in the order of each list."""
    return await fill(inventory)


@pytest.fixture(scope="module")
async def other_full_shop(inventory: Inventory) -> Shop:
    """Another shop with the same."""
    return await fill(inventory)


async def fill(inventory: Inventory) -> Shop:
    """Fill a new shop."""
    shop = await inventory.create_shop()
    await inventory.sql(
        """
        with titles as (select 'Honey jar ' || lpad(n::text, 5, '0') as title, n from generate_series(1, %(many)s) as n
                        union all
                        select title, 10000 + n from unnest(%(late)s::text[]) with ordinality as late (title, n)),
             pools as (insert into pools (shop_id, name, unit, version)
                       select %(shop)s, title, 'units', 1 from titles order by n),
             variants as (insert into variants (shop_id, gid, sku, title, version)
                          select %(shop)s, 'gid://shopify/ProductVariant/' || n, 'SKU-' || n, rpad(title, 40, '.'), 1
                            from titles)
        insert into catalog_variants (shop_id, gid, product_gid, product_title, title, sku, item_gid)
        select %(shop)s, 'gid://shopify/ProductVariant/' || n, 'gid://shopify/Product/' || n, title, 'One size',
               'SKU-' || n, 'gid://shopify/InventoryItem/' || n from titles
        """,
        shop=shop.id,
        many=MANY,
        late=[*LATE],
    )
    return shop


async def search_all(shop: Shop, text: str, limit: int = 50) -> list[list[str]]:
    """The names and titles that each of the three searches finds."""
    pools = (await shop.call("list_pools", query=text, limit=limit))["pools"]
    catalog = (await shop.call("search_variants", query=text, limit=limit))["variants"]
    variants = (await shop.call("find_variant", text=text))["variants"]
    return [
        [pool["name"] for pool in pools],
        [variant["product_title"] for variant in catalog],
        [variant["title"].rstrip(".") for variant in variants],
    ]


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("ZEBRA 100%", LATE[:1]),
        ("l_b", LATE[:1]),
        ("lab", ()),
        ("0%w", ()),
        (r"k\s", LATE[1:2]),
        ("\\", LATE[1:2]),
        ("ようかん", LATE[2:3]),
        ("山田", LATE[2:3]),
        ("詰", LATE[2:3]),
        ("äth", LATE[3:4]),
        ("ÄTHER", LATE[3:4]),
        ("ather", LATE[3:4]),
        ("a\N{COMBINING DIAERESIS}ther", LATE[3:4]),
        ("ｚｅｂｒａ ÄTHER", LATE[3:4]),  # noqa: RUF001
        ("a x", LATE[4:]),
        ("zebra", LATE),
        ("zzz", ()),
        ("'; drop table pools; --", ()),
    ],
)
async def test_a_rare_text_is_found_among_thousands_of_rows(
    full_shop: Shop, text: str, titles: tuple[str, ...]
) -> None:
    assert [sorted(titles_of_search) for titles_of_search in await search_all(full_shop, text)] == [sorted(titles)] * 3


async def test_a_common_text_fills_a_page_in_the_order_of_the_list(full_shop: Shop) -> None:
    first = [f"Honey jar {n:05}" for n in range(1, 51)]

    for text in ("honey", "HONEY JAR 0", "ne", "j"):
        pools, catalog, variants = await search_all(full_shop, text)
        assert (pools, catalog) == (first, first)
        assert len(variants) == 50


async def test_a_text_in_rows_at_the_limit_of_the_scan_is_listed_in_order(full_shop: Shop) -> None:
    titles = [f"Honey jar {n:05}" for n in range(2990, 3000)]

    pools, catalog, variants = await search_all(full_shop, "jar 0299")

    assert (pools, catalog, sorted(variants)) == (titles, titles, titles)


async def test_pages_of_a_search_follow_each_other(full_shop: Shop) -> None:
    seen: list[str] = []
    page: Mapping[str, Any] = {"next_cursor": ""}
    while page["next_cursor"] is not None:
        page = await full_shop.call("list_pools", query="zebra", limit=2, cursor=page["next_cursor"])
        seen += [pool["name"] for pool in page["pools"]]

    assert seen == list(LATE)


async def test_a_renamed_pool_is_found_by_its_new_name_only(inventory: Inventory) -> None:
    shop = await fill(inventory)
    [pool] = (await shop.call("list_pools", query="zebra x"))["pools"]
    await shop.call("update_pool", pool_id=pool["id"], name="Yak hair")

    assert (await shop.call("list_pools", query="zebra x"))["pools"] == []
    assert [pool["id"] for pool in (await shop.call("list_pools", query="yak"))["pools"]] == [pool["id"]]


async def test_a_search_finds_rows_of_its_own_shop_only(full_shop: Shop, other_full_shop: Shop) -> None:
    own_ids = {pool["id"] for pool in (await full_shop.call("list_pools", query="zebra"))["pools"]}
    others = {pool["id"] for pool in (await other_full_shop.call("list_pools", query="zebra"))["pools"]}

    assert (len(own_ids), len(others), own_ids & others) == (len(LATE), len(LATE), set())


@pytest.mark.parametrize("text", ["zebra", "ze", "詰"])
@pytest.mark.parametrize("table", ["pools", "variants", "catalog_variants"])
async def test_the_search_functions_find_rows_of_the_shop_that_is_set(
    full_shop: Shop, other_full_shop: Shop, inventory: Inventory, table: str, text: str
) -> None:
    async def shops(setting: str) -> set[int]:
        async with inventory.database.across_tenants().transaction() as tx:
            await tx.run(
                "select set_config('role', 'holdfast_shop', true), set_config('holdfast.shop', %(shop)s, true)",
                {"shop": setting},
            )
            rows = await tx.tuples(f"select shop_id from {table}_containing(%(text)s)", {"text": text})  # pyright: ignore[reportArgumentType]
        return {shop for (shop,) in rows}

    assert await shops(str(full_shop.id)) == {full_shop.id}
    assert await shops(str(other_full_shop.id)) == {other_full_shop.id}
    assert await shops("") == set()


async def test_the_search_functions_may_be_called_by_the_role_of_shops_only(inventory: Inventory) -> None:
    rows = await inventory.sql(
        """
        select proname from pg_proc cross join lateral aclexplode(proacl) as granted
         where proname like '%%_containing' and privilege_type = 'EXECUTE'
           and grantee not in (proowner, 'holdfast_shop'::regrole)
        """
    )

    assert rows == []


async def test_a_change_of_stock_writes_to_no_index(inventory: Inventory) -> None:
    shop = await fill(inventory)
    counted = "select n_tup_upd, n_tup_hot_upd from pg_stat_xact_user_tables where relname = 'pools'"
    async with inventory.database.transaction(shop.id) as tx:
        [before] = await tx.tuples(counted)
        pool = await tx.value("select min(id) from pools where name_key like 'zebra%%'")
        await tx.run("update pools set version = version + 1 where id = %(id)s", {"id": pool})
        [after] = await tx.tuples(counted)

    # PostgreSQL may not have counted all of the transactions before elsewhere yet.
    assert (after[0] - before[0], after[1] - before[1]) == (1, 1)
