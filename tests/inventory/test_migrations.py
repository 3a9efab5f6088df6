"""A database of an earlier release is brought up to date with what is in it."""

from hashlib import sha256
from pathlib import Path

import msgspec
import psycopg

from holdfast.inventory.product import INVENTORY
from holdfast.inventory.shops import operations as shops
from holdfast.inventory.stock.model import AdjustPoolQuantity
from holdfast.kit.migrate import migrate
from tests.databases import scratch_database
from tests.inventory.support import Shop, running, unlimited

ANSWERED = """
    insert into idempotency_keys (shop_id, key, fingerprint, answer, created_at)
    values (%(shop)s, %(key)s, %(fingerprint)s, '{}', now() - make_interval(days => %(days)s))
"""


async def test_a_call_that_was_answered_before_0002_is_not_done_again(inventory_template: str, tmp_path: Path) -> None:
    with scratch_database(inventory_template, "upgraded", "template template0") as url:
        names = [each.name for each in INVENTORY.schema()]
        migrate(url, INVENTORY.schema()[: names.index("0002_idempotency.sql")])
        settings = unlimited(url, tmp_path)
        added, key = await INVENTORY.transact(settings, lambda tx: shops.add(tx, "old.myshopify.com"))
        with psycopg.connect(url) as connection:
            for idempotency_key, days in (("young", 29), ("old", 31)):
                command = AdjustPoolQuantity(pool_id=1, delta=-6, idempotency_key=idempotency_key)
                fingerprint = sha256(b"adjust_pool_quantity" + msgspec.json.encode(command)).digest()
                connection.execute(
                    ANSWERED, {"shop": added.id, "key": idempotency_key, "fingerprint": fingerprint, "days": days}
                )
        INVENTORY.migrate(url)
        async with running(settings) as inventory:
            shop = Shop(inventory.http, settings, added.id, added.domain, key)
            await shop.pool(50)

            again = await shop.refused("adjust_pool_quantity", pool_id=1, delta=-6, idempotency_key="young")
            other = await shop.refused("adjust_pool_quantity", pool_id=1, delta=-7, idempotency_key="young")
            await shop.call("adjust_pool_quantity", pool_id=1, delta=-6, idempotency_key="old")

            assert again["code"] == other["code"] == "idempotency_key_reused"
            assert "cannot be read any more" in again["message"]
            assert "with other arguments" in other["message"]
            assert await shop.on_hand(1) == 44


SOLD = """
    insert into ledger (shop_id, id, pool_id, seq, kind, delta, held_delta, balance_after, held_after, below_zero,
                        version, actor, source, created_at)
    values (%(shop)s, %(id)s, %(pool)s, %(id)s, 'sale', -6, 0, -6 * %(id)s, 0, true, 9, 'agent', 'record_sale',
            now() - make_interval(days => %(days)s))
"""


async def test_what_was_taken_before_0016_is_in_the_sums_for_no_variant(
    inventory_template: str, tmp_path: Path
) -> None:
    with scratch_database(inventory_template, "drawn", "template template0") as url:
        names = [each.name for each in INVENTORY.schema()]
        migrate(url, INVENTORY.schema()[: names.index("0016_drawn.sql")])
        settings = unlimited(url, tmp_path)
        added, _ = await INVENTORY.transact(settings, lambda tx: shops.add(tx, "old.myshopify.com"))
        with psycopg.connect(url) as connection:
            made = "insert into pools (shop_id, name, unit, version) values (%s, 'Honey', 'jars', 1) returning id"
            [pool] = connection.execute(made, [added.id]).fetchone() or [0]
            for id, days in enumerate((40, 3, 3, 1), start=1):
                connection.execute(SOLD, {"shop": added.id, "id": id, "pool": pool, "days": days})
        INVENTORY.migrate(url)
        with psycopg.connect(url) as connection:
            sums = "select source, variant_gid, times, taken, returned from drawn order by day"
            assert connection.execute(sums).fetchall() == [("record_sale", "", 2, 12, 0), ("record_sale", "", 1, 6, 0)]
