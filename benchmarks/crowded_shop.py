"""The inventory service with as much in it as is wanted, filled by a few statements; its lists and its hot paths."""

import random
from collections.abc import Iterator, Mapping
from typing import LiteralString, NamedTuple

import psycopg
from psycopg.conninfo import make_conninfo

from benchmarks import load
from benchmarks.growing import Path
from benchmarks.stock import SHOP, added_shop, call
from holdfast.accounts.sessions import digest as session_digest
from holdfast.kit.postgres.bundled_server import SUPERUSER
from holdfast.kit.security.cookie_secrets import new_cookie_secret

SHELF = 1_000_000
"""How much there is in every pool."""


class Sizes(NamedTuple):
    """How much of everything there is. All but `shops` belongs to one shop.

    entries    in its ledger: each pool has one, every fifth a hold too, and the rest belongs to the first pool
    """

    entries: int
    variants: int
    shops: int


class Crowded(NamedTuple):
    """The clients of the benchmark: the key of the shop, how many pools it has, and the cookie of its merchant."""

    key: str
    pools: int
    session: str


FILL: LiteralString = """
    insert into pools (shop_id, name, unit, on_hand, low_stock_at, version)
    select 1, 'Pool ' || n, 'units', %(shelf)s, case when n %% 10 = 0 then %(shelf)s end, n
      from generate_series(1, %(pools)s) as n;
    insert into variants (shop_id, gid, sku, title, version)
    select 1, 'gid://shopify/ProductVariant/' || 40000000000 + n, 'SKU-' || n, 'Shirt ' || n, n
      from generate_series(1, %(variants)s) as n;
    insert into members (shop_id, pool_id, variant_gid, units_per_sale)
    select 1, 1 + (n - 1) / 4, 'gid://shopify/ProductVariant/' || 40000000000 + n, 1 + n %% 4
      from generate_series(1, %(variants)s) as n;
    insert into links (shop_id, pool_id, variant_gid, units_per_sale, since)
    select shop_id, pool_id, variant_gid, units_per_sale, timestamptz '2026-01-01 00:00Z' from members;
    insert into catalog_variants (shop_id, gid, product_gid, product_title, title, sku, item_gid)
    select 1, gid, 'gid://shopify/Product/' || n, 'Shirt ' || n, 'Size ' || n %% 4, sku,
           'gid://shopify/InventoryItem/' || n
      from (select *, row_number() over (order by gid) as n from variants) as numbered;

    -- Each pool was counted once; every fifth has a hold; the rest is one unit more and one less of the first pool.
    insert into ledger (shop_id, id, pool_id, seq, kind, delta, held_delta, balance_after, held_after, below_zero,
                        version, actor, source, hold_id, created_at)
    select 1, n, case when n <= %(pools)s then n when n <= holds then 5 * (n - %(pools)s) else 1 end,
           case when n <= %(pools)s then 1 when n <= holds then 2 else n - holds + 1 end,
           case when n <= %(pools)s then 'set' when n <= holds then 'hold' else 'adjust' end::entry_kind,
           case when n <= %(pools)s then %(shelf)s when n <= holds then 0 when (n - holds) %% 2 = 1 then 1 else -1 end,
           case when n > %(pools)s and n <= holds then 1 else 0 end,
           %(shelf)s + case when n > holds then (n - holds) %% 2 else 0 end,
           case when n > %(pools)s and n <= holds then 1 else 0 end, false, n, 'agent', 'mcp',
           case when n > %(pools)s and n <= holds then n end,
           timestamptz '2026-01-01 00:00Z' + n * interval '1 second'
      from generate_series(1, %(entries)s) as n
     cross join (select %(pools)s + %(pools)s / 5 as holds) as counts;
    insert into holds (shop_id, id, reference, expires_at, inserted_at)
    select 1, id, 'Order ' || id, timestamptz '2099-01-01 00:00Z' + id * interval '1 second', created_at
      from ledger where kind = 'hold';
    insert into hold_lines (shop_id, hold_id, pool_id, quantity)
    select 1, id, pool_id, 1 from ledger where kind = 'hold';
    update pools set entries = totals.entries, held = held_after, on_hand = balance_after, version = totals.version
      from (select pool_id, count(*) as entries, max(version) as version,
                   (array_agg(held_after order by seq desc))[1] as held_after,
                   (array_agg(balance_after order by seq desc))[1] as balance_after
              from ledger group by pool_id) as totals
     where pools.id = totals.pool_id;
    update shared_inventories set version = %(entries)s, entries = %(entries)s;
    insert into merchants (shop_id, email, proved_at) values (1, 'merchant@example.com', now());

    insert into shops (domain) select 'other-' || n || '.myshopify.com' from generate_series(1, %(shops)s) as n;
    insert into shared_inventories (shop_id, version, entries) select id, 1, 1 from shops where id > 1;
    insert into pools (shop_id, name, unit, on_hand, version, entries)
    select id, 'Pool', 'units', %(shelf)s, 1, 1 from shops where id > 1;
    insert into ledger (shop_id, id, pool_id, seq, kind, delta, held_delta, balance_after, held_after, below_zero,
                        version, actor, source, created_at)
    select shop_id, 1, id, 1, 'set', %(shelf)s, 0, %(shelf)s, 0, false, 1, 'agent', 'mcp', now()
      from pools where shop_id > 1
"""


def fill(environment: dict[str, str], sizes: Sizes) -> Crowded:
    """Fill a migrated, empty database of the bundled server."""
    key, session = added_shop(environment, SHOP), new_cookie_secret()
    url = make_conninfo(environment["INVENTORY_DATABASE_URL"], user=SUPERUSER)
    pools = sizes.variants // 4
    with psycopg.connect(url, autocommit=True) as connection:
        # As a replica does: no trigger counts what is known to be right.
        connection.execute("set session_replication_role = replica")
        numbers = {**sizes._asdict(), "pools": pools, "shelf": SHELF}
        psycopg.ClientCursor(connection).execute(FILL, numbers)
        connection.execute(
            "insert into sessions (hash, account_id, way, browser) select %s, id, 'link', 'a benchmark' from merchants",
            [session_digest(session)],
        )
        connection.execute("vacuum (analyze)")
    return Crowded(key, pools, session)


def lists(crowded: Crowded, port: int) -> Mapping[str, bytes]:
    """The requests for every list of the tools and of the console, by what they list.

    port    the port of the service, which the name of the cookie contains
    """
    pool = {"pool_id": 1}
    gid = "gid://shopify/ProductVariant/40000000001"
    requests = {
        f"tool {tool}{f', {which}' if which else ''}": call(crowded.key, tool, {"limit": 100, **arguments})
        for tool, which, arguments in (
            ("list_pools", "", {}),
            ("list_pools", "of a name", {"query": "Pool 77"}),
            ("list_pools", "that are low", {"low_stock_only": True}),
            ("list_pools", "that are paused", {"status": "paused"}),
            ("list_low_stock", "", {}),
            ("get_stock_history", "of all pools", {}),
            ("get_stock_history", "of the big pool", pool),
            ("get_stock_history", "of a small pool", {"pool_id": 2}),
            ("list_holds", "", {}),
            ("list_holds", "of a pool", {"pool_id": 5}),
            ("search_variants", "of a title", {"query": "Shirt 77"}),
        )
    }
    requests["tool find_variant"] = call(crowded.key, "find_variant", {"sku": "SKU-77"})
    requests["tool find_variant, by a text"] = call(crowded.key, "find_variant", {"text": "Shirt 77"})
    requests["tool explain_availability"] = call(crowded.key, "explain_availability", {"variant_gid": gid})
    requests["tool get_stock_at"] = call(crowded.key, "get_stock_at", {**pool, "at": "2026-01-01T01:00:00Z"})
    for name, path in {
        "pools": "/console",
        "pools of a name": "/console?query=Pool+77",
        "the big pool": "/console/pools/1",
        "a small pool": "/console/pools/2",
        "history of the big pool": "/console/pools/1/history",
        "low stock": "/console/low-stock",
        "holds": "/console/holds",
        "variants to link": "/console/pools/1/variants",
    }.items():
        requests[f"console: {name}"] = load.request("GET", path, Cookie=f"session-{port}={crowded.session}")
    return requests


def paths(crowded: Crowded) -> Mapping[str, Path]:
    """The hot paths by their names."""

    def adjust(count: int, pools: int) -> Iterator[bytes]:
        chance = random.Random(7)
        for _ in range(count):
            change = {"pool_id": chance.randint(1, pools), "delta": chance.choice([-1, 1, 2])}
            yield call(crowded.key, "adjust_pool_quantity", change)

    def available(count: int, run: int) -> Iterator[bytes]:
        for number in range(count):
            variant = 40_000_000_001 + number * 7_919 % (4 * crowded.pools)
            gids = [f"gid://shopify/ProductVariant/{variant}"]
            yield call(crowded.key, "get_availability", {"variant_gids": gids})

    def adjust_one(count: int, run: int) -> Iterator[bytes]:
        return adjust(count, 1)

    def adjust_all(count: int, run: int) -> Iterator[bytes]:
        return adjust(count, crowded.pools)

    return {
        "changes of one hot pool": Path(adjust_one, 200),
        "changes of all pools": Path(adjust_all, 200),
        "availability of a variant": Path(available, 200),
    }
