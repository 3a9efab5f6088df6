"""What the inventory service has stored after years: a shop with much of everything, and a thousand others."""

from typing import Any

from tests.plans.filling import copies, fill_accounts, fill_webhooks

SHOPS, POOLS, VARIANTS = 1_000, 3_000, 9_000

FIRST_SHOP = 1_000
"""The id of the first of the others."""

FOUND = "1000000"
"""The number of an import that finds all rows that are filled in. It is higher than those of imports that are run."""

OTHER = "1000 + g % 1000"
"""The shop of a row that is one of the others'."""


def gid(kind: str, number: str) -> str:
    return f"'gid://shopify/{kind}/' || ({number})"


def fill(connection: Any) -> None:
    """Fill the database of a scene in which shop 1 has pool 1, three variants, and everything else once."""
    _shops(connection)
    _stock(connection)
    _platform(connection)
    _work(connection)
    fill_accounts(connection, "merchant", 1_000)
    fill_webhooks(connection)


def _shops(connection: Any) -> None:
    def other(table: str, **changed: str) -> None:
        copies(connection, table, SHOPS, "shop_id = 1", **{"shop_id": "999 + g", **changed})

    copies(connection, "shops", SHOPS, "id = 1", id="999 + g", domain="'shop-' || g || '.myshopify.com'")
    other("shared_inventories", id="999 + g", version="0", entries="0")
    hashed = {"shop_id": "999 + g", "hash": "sha256(g::text::bytea)"}
    copies(connection, "api_keys", SHOPS, "active", id="999 + g", **hashed)
    other("installs")
    other("platform_tokens")
    other("catalogs")
    other("locations")
    other("syncs", planned_version="1000000", planned_changes="1000000", due_at="null", leased_until="null")
    connection.execute(
        """
        insert into agent_limits (tenant_id, key_id, daily_limit, allowed)
        select shop_id, id, 20, 20 from api_keys where id > 999;
        insert into agent_requests (tenant_id, key_id, digest, operation, sealed, status, ended_at)
        select 1000 + g % 1000, 1000 + g % 1000, sha256(('request ' || g)::bytea), 'adjust_stock', '', 'done', now()
          from generate_series(1, 20000) as g;
        insert into agent_actions (shop_id, key_id, operation, pool_id)
        select case g % 2 when 0 then 1 else 1000 + g % 1000 end, 1, 'update_pool', 1
          from generate_series(1, 20000) as g;
        insert into order_catches select 999 + g, now() from generate_series(1, 1000) as g;
        insert into replays (shop_id, replay_id, since, pools, result)
        select 999 + g, 1, now(), '[]', '{}' from generate_series(1, 1000) as g;
        insert into replay_pages (shop_id, number, orders)
        select 999 + g, page, '[]' from generate_series(1, 1000) as g cross join generate_series(1, 20) as page;
        insert into pushes (shop_id) select 999 + g from generate_series(1, 1000) as g;
        insert into agent_registrations (id, shop_id, api_key_id, hash)
        select 'reg_' || lpad(g::text, 22, '0'), 999 + g, 999 + g, sha256(('agent ' || g)::bytea)
          from generate_series(1, 1000) as g;
        insert into merchants (shop_id, email, proved_at)
        select 1000 + g % 1000, 'merchant' || g || '@example.com', now() from generate_series(1, 5000) as g
        """
    )


def _stock(connection: Any) -> None:
    columns, others = {"id": "10000 + g", "name": "'Shelf ' || g"}, {"id": "20000 + g", "shop_id": OTHER}
    copies(connection, "pools", POOLS, "id = 1", **columns, on_hand="1000", entries="30")
    copies(connection, "pools", 10 * SHOPS, "id = 1", **others, name="'Shelf ' || g", on_hand="1000", entries="10")
    for shop, first, count, pool in (
        ("1", 10_000_000, VARIANTS, f"10001 + g % {POOLS}"),
        (OTHER, 20_000_000, 30 * SHOPS, f"20001 + (g - 1) % {10 * SHOPS}"),
    ):
        number = f"{first} + g"
        one = "gid = (select min(gid) from variants)"
        copies(connection, "variants", count, one, shop_id=shop, gid=gid("ProductVariant", number), version="0")
        columns = {"shop_id": shop, "pool_id": pool, "variant_gid": gid("ProductVariant", number)}
        one = "variant_gid = (select min(variant_gid) from members where pool_id = 1) and pool_id = 1"
        copies(connection, "members", count, one, **columns)
        copies(connection, "links", count, one, **columns, since="now() - interval '1 year'")
    for shop, id, count, pool, seq in (
        ("1", "100 + g", 90_000, f"10001 + g % {POOLS}", f"1 + g / {POOLS}"),
        ("1", "200000 + g", 60_000, "1", "1000 + g"),
        (OTHER, "g / 1000", 100_000, f"20001 + (g - 1) % {10 * SHOPS}", f"1 + g / {10 * SHOPS}"),
    ):
        moment = "now() - interval '400 days' + g * interval '5 minutes'"
        changed = {"kind": "case when g % 3 = 0 then 'sale' else 'adjust' end::entry_kind", "created_at": moment}
        changed |= {"shop_id": shop, "id": id, "pool_id": pool, "seq": seq, "version": "g", "balance_after": "1000"}
        changed |= {"delta": "case when g % 3 = 0 then -2 else 1 end", "source_ref": "'order ' || g"}
        copies(connection, "ledger", count, "id = 1", **changed)
    connection.execute(
        """
        insert into drawn (shop_id, pool_id, day, source, variant_gid, times, taken, returned)
        select 1, 10000 + pool, current_date - day, 'record_sale', '', 1, 1, 0
          from generate_series(1, 3000) as pool cross join generate_series(1, 30) as day;
        insert into drawn (shop_id, pool_id, day, source, variant_gid, times, taken, returned)
        select 1000 + pool % 1000, 20000 + pool, current_date - day, 'record_sale', '', 1, 1, 0
          from generate_series(1, 10000) as pool cross join generate_series(1, 5) as day
        """
    )
    connection.execute("update pools set entries = 61000, on_hand = 1000 where id = 1")
    connection.execute("update shared_inventories set entries = 300000, version = 300000 where shop_id = 1")
    for id, shop, count, released, pool in (
        ("400000 + g", "1", 40_000, "now() - interval '3 days'", f"10001 + g % {POOLS}"),
        ("500000 + g", "1", 3_000, "null", f"10001 + g % {POOLS}"),
        ("600000 + g", OTHER, 40_000, "null", f"20001 + (g - 1) % {10 * SHOPS}"),
    ):
        changed = {"released_at": released, "expires_at": "now() + g * interval '1 minute'", "shop_id": shop}
        copies(connection, "holds", count, "id = 3", **changed, id=id, reference="'cart ' || g")
        copies(connection, "hold_lines", count, "hold_id = 3", hold_id=id, shop_id=shop, pool_id=pool)


def _platform(connection: Any) -> None:
    first = "gid = (select min(gid) from catalog_variants)"
    for shop, count, number in (("1", VARIANTS, "10000000 + g"), (OTHER, 30 * SHOPS, "20000000 + g")):
        item, product = gid("InventoryItem", number), gid("Product", f"({number}) / 3")
        changed = {"shop_id": shop, "gid": gid("ProductVariant", number), "item_gid": item, "product_gid": product}
        changed |= {"title": "'Title ' || g", "product_title": "'Product ' || g", "sku": "'SKU-' || g"}
        changed |= {"import_id": FOUND}
        copies(connection, "catalog_variants", count, first, **changed)
        for place in range(3):
            known = {"shop_id": shop, "item_gid": item, "location_gid": gid("Location", str(place))}
            state = {"target": "available", "expected": "available", "push_id": "null", "pushed_from": "null"}
            state |= {"pushed_to": "null", "suspect_at": "null", "read_again": "false", "import_id": FOUND}
            of = "(item_gid, location_gid) = (select min(item_gid), min(location_gid) from levels where shop_id = 1)"
            copies(connection, "levels", count, of, **known, gid=gid("InventoryLevel", number), **state)
        connection.execute(
            f"""
            insert into cart_numbers (shop_id, variant_gid, wanted, version, written, digest, written_at)
            select {shop}, {gid("ProductVariant", number)}, '[[1, 1, 5]]', 1, '[[1, 1, 5]]', 'x', now()
              from generate_series(1, {count}) as g;
            insert into order_level_changes (shop_id, variant_gid, amount, not_before)
            select {shop}, {gid("ProductVariant", number)}, -1, now() from generate_series(1, {count}) as g;
            insert into ended_levels (shop_id, item_gid)
            select {shop}, {item} from generate_series(1, {count}) as g
            """
        )
    for shop in ("1", OTHER):
        connection.execute(
            f"""
            insert into orders (shop_id, id, placed_at, updated_at)
            select {shop}, 1000 + g, now() - g * interval '1 minute', now() - g * interval '1 minute'
              from generate_series(1, 60000) as g;
            insert into order_lines (shop_id, order_id, id, variant_gid, taken)
            select {shop}, 1000 + g, 1, {gid("ProductVariant", f"10000001 + g % {VARIANTS}")}, 1
              from generate_series(1, 60000) as g;
            insert into order_draws (shop_id, order_id, line_id, pool_id, units_per_sale)
            select {shop}, 1000 + g, 1, 10001 + g % {POOLS}, 1 from generate_series(1, 60000) as g;
            insert into webhooks (shop_id, webhook_id, topic, received_at, handled_at, due_at)
            select {shop}, 'delivery ' || {shop} || ' ' || g, 'orders/create', now() - g * interval '1 second',
                   now() - g * interval '1 second', null from generate_series(1, 60000) as g;
            insert into sync_lags (shop_id, pushed_at, seconds)
            select {shop}, now() - g * interval '1 second', 1 from generate_series(1, 60000) as g
            """
        )


def _work(connection: Any) -> None:
    connection.execute(
        """
        insert into idempotency_answers (id, fingerprint, sealed, shop_id)
        select sha256(('answer ' || g)::bytea), sha256('call'), '', 1 from generate_series(1, 100000) as g;
        insert into mails (kind, thread, recipient, arguments, ended_at, outcome)
        select 'low_stock', 'low stock ' || g, 'merchant@example.com', '{}', now(), 'sent'
          from generate_series(1, 50000) as g
        """
    )
