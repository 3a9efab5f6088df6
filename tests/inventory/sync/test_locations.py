"""How the quantity of a variant is spread over the locations of a shop, and which of them are set at all."""

import pytest

from holdfast.inventory.catalog import importing
from holdfast.inventory.sync import operations
from holdfast.inventory.sync.model import LocationPercent
from holdfast.kit.contract.problems import VALIDATION_FAILED, Problem
from holdfast_demo.shopify import payloads
from tests.helpers.platform_shop import DOMAIN, SECRET, PlatformSource, open_platform_scene
from tests.helpers.platform_webhooks import deliver, handle
from tests.inventory.sync.sync_scene import SyncScene, add_location, singles_by_location, spread_shares


async def import_again(scene: SyncScene) -> None:
    await scene.transact(lambda tx: importing.begin(tx, scene.shop.id))
    await scene.finish_import()


async def test_a_new_shop_has_its_stock_at_one_location(scene: SyncScene) -> None:
    await add_location(scene, "Market stall")
    await import_again(scene)

    assert await singles_by_location(scene) == (50, 0)
    status = await scene.shop.call("get_sync_status")
    assert (status["rule"], status["rule_warning"]) == ("one", None)
    percents = {location["name"]: location["percent"] for location in status["locations"]}
    assert percents == {"Market stall": 0, "Warehouse": 100}


async def test_the_location_of_a_new_shop_is_the_one_that_stocks_most_variants(platform_source: PlatformSource) -> None:
    async with open_platform_scene(platform_source) as installing:
        platform = installing.platform
        warehouse, stall = platform.locations(DOMAIN)[0], platform.add_location(DOMAIN, "Market stall")
        for variant in platform.variants(DOMAIN):
            platform.stock(DOMAIN, variant.id, stall.id, 1)
        first = platform.variants(DOMAIN)[0]
        platform.state.levels.remove(DOMAIN, first.item, warehouse.id)
        await installing.install()
        scene = SyncScene(installing, await installing.find_shop())
        await scene.finish_import()

        shares = await scene.transact(lambda tx: operations.spreading(tx, scene.shop.id))

    assert {location.name: location.percent for location in shares.locations} == {"Warehouse": 0, "Market stall": 100}


async def test_a_deleted_location_passes_its_share_to_another_one(scene: SyncScene) -> None:
    stall = await add_location(scene, "Market stall")
    warehouse = scene.platform.locations(DOMAIN)[0]

    await deliver(scene.shop, "locations/delete", {"id": warehouse.id}, secret=SECRET.encode())
    await handle(scene.inventory)

    status = await scene.shop.call("get_sync_status")
    assert [(location["gid"], location["percent"]) for location in status["locations"]] == [(stall.gid, 100)]


async def test_quantities_are_spread_by_the_rule(scene: SyncScene) -> None:
    first, second = scene.platform.locations(DOMAIN)[0], await add_location(scene, "Market stall")

    stored = await spread_shares(scene, LocationPercent(first.gid, 70), LocationPercent(second.gid, 30))
    assert [location.percent for location in stored.locations] == [70, 30]
    assert await singles_by_location(scene) == (35, 15)
    await scene.adjust(-1)
    assert await singles_by_location(scene) == (34, 15)

    await spread_shares(scene, LocationPercent(second.gid, 100))
    assert await singles_by_location(scene) == (34, 49)
    await spread_shares(scene)
    assert await singles_by_location(scene) == (49, 49)


async def test_the_whole_quantity_at_several_locations_warns(scene: SyncScene) -> None:
    assert (await spread_shares(scene)).warning is None
    await add_location(scene, "Market stall")

    stored, status = await spread_shares(scene), await scene.shop.call("get_sync_status")

    for warning in (stored.warning, status["rule_warning"]):
        assert "the same stock can be sold once at each of them" in (warning or "")


async def test_a_shop_without_an_open_location_that_has_a_share_is_warned(scene: SyncScene) -> None:
    await scene.inventory.sql("update locations set active = false")

    assert "no level is set" in (await scene.shop.call("get_sync_status"))["rule_warning"]


async def test_the_location_of_a_fulfillment_service_is_read_and_set_only_when_it_is_named(scene: SyncScene) -> None:
    service = await add_location(scene, "Parcel house", service=True)
    await spread_shares(scene)
    assert await singles_by_location(scene) == (50, 0)
    await import_again(scene)
    assert await singles_by_location(scene) == (50, 0)
    listed = {location["name"]: location for location in (await scene.shop.call("get_sync_status"))["locations"]}
    assert listed["Parcel house"]["fulfillment_service"] is True
    assert await scene.inventory.sql(f"select available from levels where location_gid = '{service.gid}'") == [(0,)]

    await spread_shares(scene, LocationPercent(service.gid, 100))

    assert await singles_by_location(scene) == (50, 50)


async def test_a_location_of_which_nothing_is_known_is_not_set(scene: SyncScene) -> None:
    await spread_shares(scene)
    await add_location(scene, "Somewhere", heard=False)

    assert await singles_by_location(scene) == (50, 0)


async def test_a_location_is_not_set_until_its_owner_is_known(scene: SyncScene) -> None:
    """Subscriptions that were made before do not tell that."""
    await spread_shares(scene)
    location = await add_location(scene, "Somewhere", heard=False)
    payload = {name: value for name, value in payloads.location(location).items() if name != "legacy"}
    await deliver(scene.shop, "locations/create", payload, secret=SECRET.encode())
    await handle(scene.inventory)
    assert await singles_by_location(scene) == (50, 0)

    await import_again(scene)

    assert await singles_by_location(scene) == (50, 50)


@pytest.mark.parametrize("shares", [[99], [50, 50], [0, 100], [None, 100]])
async def test_invalid_shares_of_locations_are_refused(scene: SyncScene, shares: list[int | None]) -> None:
    gid = scene.platform.locations(DOMAIN)[0].gid
    percentages = [
        LocationPercent("gid://shopify/Location/1" if percent is None else gid, percent or 0) for percent in shares
    ]

    with pytest.raises(Problem) as refusal:
        await spread_shares(scene, *percentages)

    assert refusal.value.type is VALIDATION_FAILED
