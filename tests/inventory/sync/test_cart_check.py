"""Numbers for the cart check: the metafields of variants have the quantities of their pools."""

import json
from typing import Any

import pytest
from prometheus_client import REGISTRY

from holdfast.inventory.service import AFTER_INSTALL
from holdfast.inventory.shopify.domains import REQUIRED
from holdfast.inventory.sync import cart_check
from holdfast.inventory.sync.shop_sync import SyncWork
from holdfast.kit.background import row_work
from holdfast_demo.shopify.admin_api import metafields
from holdfast_demo.shopify.checkout import CheckoutStopped
from holdfast_demo.shopify.errors import Fault
from holdfast_demo.shopify.orders import SaleLine
from holdfast_demo.shopify.platform_state import WebhookMessage
from holdfast_demo.shopify.shops import NewVariant
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import eventually
from tests.helpers.platform_shop import DOMAIN
from tests.helpers.platform_webhooks import handle
from tests.inventory.sync.sync_scene import PACKS, SyncScene, deliver_message


async def grant(scene: SyncScene, *more: str) -> None:
    """Let the app do what it must, and more, from now on."""
    shop = scene.platform.shop(DOMAIN)
    shop.scopes = [*REQUIRED, *more]
    scene.platform.state.store.put(DOMAIN, shop)
    await scene.inventory.sql("update installs set scopes = %(scopes)s", scopes=shop.scopes)


@pytest.fixture
async def checked_scene(scene: SyncScene) -> SyncScene:
    """The shop, which has granted the cart check."""
    await grant(scene, "write_products")
    await scene.sync_due()
    return scene


def metafield_value(scene: SyncScene, title: str) -> Any:
    """What the metafield of a variant says; None if there is none."""
    metafield = metafields.find(scene.platform.state, DOMAIN, scene.variants[title].gid, "$app:stock", "pools")
    return metafield and json.loads(metafield.value)


def pools(scene: SyncScene) -> list[Any]:
    values = [metafield_value(scene, title) for title in PACKS]
    return [value and value["pools"] for value in values]


async def attend_later(scene: SyncScene, hours: float = 0.001) -> None:
    """Let everything have been written a while ago, and attend to it."""
    await scene.inventory.sql(
        "update cart_numbers set written_at = written_at - %(hours)s * interval '1 hour'", hours=hours
    )
    await scene.make_due()
    await scene.sync_due()


async def test_a_shop_without_the_scope_of_the_cart_check_gets_no_metafields(scene: SyncScene) -> None:
    await scene.adjust(-6)
    await scene.sync_due()

    assert pools(scene) == [None, None, None]
    status = (await scene.shop.call("get_sync_status"))["cart_check"]
    assert status == {"granted": False, "variants": 0, "pending": 0, "error": None}


async def test_a_shop_that_grants_it_gets_the_numbers_of_all_variants(checked_scene: SyncScene) -> None:
    assert pools(checked_scene) == [[[checked_scene.pool_id, units, 50]] for units in PACKS.values()]
    status = (await checked_scene.shop.call("get_sync_status"))["cart_check"]
    assert status == {"granted": True, "variants": 3, "pending": 0, "error": None}


async def test_a_sale_reaches_the_numbers_while_the_service_runs(checked_scene: SyncScene) -> None:
    await checked_scene.inventory.sql("update cart_numbers set written_at = written_at - interval '2 seconds'")
    before = metafield_value(checked_scene, "Single")["v"]
    async with run_in_background(
        row_work.run(checked_scene.inventory.database, SyncWork(checked_scene.inventory.database))
    ):
        await checked_scene.adjust(-6)
        await eventually(lambda: pools(checked_scene) == [[[checked_scene.pool_id, n, 44]] for n in PACKS.values()])

    assert metafield_value(checked_scene, "Single")["v"] > before


async def test_a_cart_that_takes_too_much_of_the_pool_is_stopped_at_the_platform(checked_scene: SyncScene) -> None:
    single, six = checked_scene.variants["Single"].id, checked_scene.variants["6-pack"].id

    with pytest.raises(CheckoutStopped, match="not enough left"):
        await checked_scene.platform.buy(DOMAIN, SaleLine(single, 45), SaleLine(six, 1))
    await checked_scene.platform.buy(DOMAIN, SaleLine(single, 44), SaleLine(six, 1))


async def test_units_bought_in_a_checkout_are_missing_in_the_metafields(checked_scene: SyncScene) -> None:
    messages: list[WebhookMessage] = []
    checked_scene.platform.state.on_message.append(messages.append)
    await checked_scene.platform.buy(DOMAIN, SaleLine(checked_scene.variants["6-pack"].id, 1))
    for number, message in enumerate(messages):
        await deliver_message(checked_scene, (message.topic, message.payload, f"w{number}"))
    await handle(checked_scene.inventory)
    await attend_later(checked_scene)

    assert pools(checked_scene) == [[[checked_scene.pool_id, units, 44]] for units in PACKS.values()]
    single, twelve = checked_scene.variants["Single"].id, checked_scene.variants["12-pack"].id
    with pytest.raises(CheckoutStopped):
        await checked_scene.platform.buy(DOMAIN, SaleLine(single, 33), SaleLine(twelve, 1))
    await checked_scene.platform.buy(DOMAIN, SaleLine(single, 32), SaleLine(twelve, 1))


async def test_kits_name_all_their_pools_and_what_may_go_below_zero_or_is_paused_is_left_out(
    checked_scene: SyncScene,
) -> None:
    six = checked_scene.variants["6-pack"].gid
    lids = await checked_scene.shop.create_pool(9, members=[{"variant_gid": six, "units_per_sale": 1}])
    await attend_later(checked_scene)
    assert metafield_value(checked_scene, "6-pack")["pools"] == [[checked_scene.pool_id, 6, 50], [lids["id"], 1, 9]]

    await checked_scene.shop.call("update_pool", pool_id=lids["id"], allow_negative=True)
    await checked_scene.shop.call("update_pool", pool_id=checked_scene.pool_id, buffer=10)
    await checked_scene.shop.call("hold_quantity", pool_id=checked_scene.pool_id, quantity=3, ttl_s=600)
    await attend_later(checked_scene)
    assert metafield_value(checked_scene, "6-pack")["pools"] == [[checked_scene.pool_id, 6, 37]]

    await checked_scene.shop.call("pause_pool", pool_id=checked_scene.pool_id)
    await attend_later(checked_scene)
    assert pools(checked_scene) == [[], [], []]


async def test_an_unlinked_variant_stops_no_cart(checked_scene: SyncScene) -> None:
    await checked_scene.shop.call(
        "unlink_variants", pool_id=checked_scene.pool_id, variant_gids=[checked_scene.variants["Single"].gid]
    )
    await attend_later(checked_scene)

    assert pools(checked_scene)[0] == []
    assert (await checked_scene.shop.call("get_sync_status"))["cart_check"]["variants"] == 2


async def test_a_variant_is_not_written_again_within_two_seconds(checked_scene: SyncScene) -> None:
    await checked_scene.adjust(-6)
    await checked_scene.sync_due()
    assert pools(checked_scene)[0] == [[checked_scene.pool_id, 1, 50]]
    [(due,)] = await checked_scene.inventory.sql("select extract(epoch from due_at - now())::float8 from syncs")
    assert 0 < due <= 2

    await attend_later(checked_scene)

    assert pools(checked_scene)[0] == [[checked_scene.pool_id, 1, 44]]


async def test_numbers_for_the_cart_check_are_renewed_before_they_expire(checked_scene: SyncScene) -> None:
    first = metafield_value(checked_scene, "Single")["until"]
    metafield = metafields.find(
        checked_scene.platform.state, DOMAIN, checked_scene.variants["Single"].gid, "$app:stock", "pools"
    )
    assert metafield
    written = metafield.updated
    await attend_later(checked_scene, hours=90)
    assert metafield_value(checked_scene, "Single")["until"] == first
    await attend_later(checked_scene, hours=10)

    metafield = metafields.find(
        checked_scene.platform.state, DOMAIN, checked_scene.variants["Single"].gid, "$app:stock", "pools"
    )
    assert metafield
    assert metafield.updated > written


@pytest.mark.parametrize("kind", ["before", "after", "down", "throttle"])
async def test_numbers_whose_outcome_is_unknown_are_written_again(checked_scene: SyncScene, kind: str) -> None:
    await checked_scene.adjust(-6)
    checked_scene.platform.plan(Fault(kind, "WriteNumbers"))  # pyright: ignore[reportArgumentType]
    await attend_later(checked_scene)
    assert checked_scene.levels() == (44, 7, 3)
    assert (await checked_scene.shop.call("get_sync_status"))["error"] is None
    await checked_scene.inventory.sql("update syncs set numbers_rest_until = now()")
    await attend_later(checked_scene)

    assert pools(checked_scene) == [[[checked_scene.pool_id, units, 44]] for units in PACKS.values()]
    assert (await checked_scene.shop.call("get_sync_status"))["cart_check"]["pending"] == 0


async def test_a_metafield_written_by_another_app_is_read_and_overwritten(checked_scene: SyncScene) -> None:
    metafield = {
        "ownerId": checked_scene.variants["Single"].gid,
        "namespace": "$app:stock",
        "key": "pools",
        "type": "json",
    }
    metafields.write(checked_scene.platform.state, checked_scene.platform.shop(DOMAIN), [{**metafield, "value": "17"}])
    await checked_scene.adjust(-6)
    await attend_later(checked_scene)
    assert metafield_value(checked_scene, "Single") == 17
    await attend_later(checked_scene)

    assert pools(checked_scene) == [[[checked_scene.pool_id, units, 44]] for units in PACKS.values()]


async def test_a_variant_unknown_to_the_platform_does_not_delay_others(checked_scene: SyncScene) -> None:
    member = {"variant_gid": "gid://shopify/ProductVariant/999", "units_per_sale": 1}
    await checked_scene.shop.call("link_variants", pool_id=checked_scene.pool_id, members=[member])
    await checked_scene.adjust(-6)
    await attend_later(checked_scene)

    assert pools(checked_scene) == [[[checked_scene.pool_id, units, 44]] for units in PACKS.values()]
    status = (await checked_scene.shop.call("get_sync_status"))["cart_check"]
    assert (status["pending"], "Owner does not exist" in status["error"]) == (1, True)


async def test_a_grant_that_was_withdrawn_is_noticed_and_levels_go_on(checked_scene: SyncScene) -> None:
    there_now = checked_scene.platform.shop(DOMAIN)
    there_now.scopes = [*REQUIRED]
    checked_scene.platform.state.store.put(DOMAIN, there_now)
    await checked_scene.adjust(-6)
    await attend_later(checked_scene)

    assert checked_scene.levels() == (44, 7, 3)
    status = await checked_scene.shop.call("get_sync_status")
    assert "write_products" in status["cart_check"]["error"]
    assert status["error"] is None

    await grant(checked_scene)
    await checked_scene.sync_due()

    assert (await checked_scene.shop.call("get_sync_status"))["cart_check"]["variants"] == 0
    assert await checked_scene.sync_due() == 0


def calls() -> float:
    """How many calls have written numbers."""
    return REGISTRY.get_sample_value("holdfast_platform_calls_total", {"query": "write_numbers", "how": "done"}) or 0


async def test_a_call_writes_up_to_25_variants(checked_scene: SyncScene) -> None:
    made = checked_scene.platform.add_product(DOMAIN, "Candle", [NewVariant(f"No. {n}") for n in range(60)])
    members = [{"variant_gid": variant.gid, "units_per_sale": 1} for variant in made]
    before = calls()
    pool = await checked_scene.shop.create_pool(7, members=members)
    await checked_scene.sync_due()

    assert calls() == before + 3
    platform_state = checked_scene.platform.state
    numbers_at_platform = [
        metafields.find(platform_state, DOMAIN, variant.gid, "$app:stock", "pools") for variant in made
    ]
    assert all(
        metafield and json.loads(metafield.value)["pools"] == [[pool["id"], 1, 7]] for metafield in numbers_at_platform
    )


async def test_a_shop_that_installs_the_app_again_gets_its_numbers_again(checked_scene: SyncScene) -> None:
    await checked_scene.transact(lambda tx: cart_check.forget(tx, checked_scene.shop.id))
    checked_scene.platform.state.store.db.execute("delete from things where kind = 'Metafield'")
    assert pools(checked_scene) == [None, None, None]

    await checked_scene.sync_due()

    assert pools(checked_scene) == [[[checked_scene.pool_id, units, 50]] for units in PACKS.values()]
    assert cart_check.forget in AFTER_INSTALL
