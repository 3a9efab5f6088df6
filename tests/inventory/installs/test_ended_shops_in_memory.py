"""Data of a shop in the memory of processes ends when the shop uninstalls the app or is deleted."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from holdfast.accounts import sessions
from holdfast.inventory.installs import uninstalling
from holdfast.inventory.installs.model import ShopTask
from holdfast.inventory.merchants import operations as merchants
from tests.helpers.events_service import eventually
from tests.helpers.exchange import read_stream
from tests.helpers.inventory_service import SINGLE, Shop, running_inventory
from tests.helpers.platform_shop import DOMAIN, PlatformScene, key_in
from tests.helpers.platform_webhooks import deliver, handle
from tests.inventory.installs.uninstalling import move_uninstall_back, uninstall_app


@pytest.fixture
async def shop(scene: PlatformScene) -> Shop:
    """A shop that has the app, with a pool of 50, whose numbers were just shown."""
    shop = await scene.find_shop(key_in((await scene.install()).text))
    await shop.create_golden_pool()
    assert await numbers(shop) == 50
    return shop


@pytest.fixture
async def other_process(scene: PlatformScene, shop: Shop) -> AsyncIterator[Shop]:
    """The shop at another process, which has shown its numbers too."""
    async with running_inventory(scene.inventory.settings) as second:
        other_shop = shop.at_service(second)
        assert await numbers(other_shop) == 50
        yield other_shop


async def numbers(shop: Shop) -> int | None:
    return (await shop.read_storefront()).json()["variants"].get(SINGLE)


async def redact(scene: PlatformScene, shop: Shop) -> None:
    await move_uninstall_back(scene)
    await deliver(shop, "shop/redact", {"shop_domain": DOMAIN})
    await handle(scene.inventory)


def is_unknown(answer: httpx2.Response) -> bool:
    return answer.status_code == 404 and answer.json()["error"] == "not_found"


async def test_a_storefront_of_a_shop_that_has_uninstalled_the_app_is_unknown_at_once(
    scene: PlatformScene, shop: Shop
) -> None:
    await uninstall_app(scene, shop)

    assert is_unknown(await shop.read_storefront())


async def test_a_shop_that_uninstalled_is_unknown_in_every_process(
    scene: PlatformScene, shop: Shop, other_process: Shop
) -> None:
    await uninstall_app(scene, shop)

    async def unknown() -> bool:
        return is_unknown(await other_process.read_storefront())

    await eventually(unknown, 1)


async def test_streams_of_a_shop_that_has_uninstalled_the_app_end_and_cannot_be_opened_again(
    scene: PlatformScene, shop: Shop
) -> None:
    url = (await shop.read_storefront()).json()["stream_url"]
    async with read_stream(scene.inventory.app, url) as reader:
        await reader.next()

        await uninstall_app(scene, shop)

        await reader.wait_until_closed()
    assert is_unknown(await shop.http.get(url))


async def test_streams_end_within_seconds_also_where_the_announcement_was_lost(
    scene: PlatformScene, shop: Shop
) -> None:
    url = (await shop.read_storefront()).json()["stream_url"]
    async with read_stream(scene.inventory.app, url) as reader:
        await reader.next()

        await scene.inventory.sql("update installs set uninstalled_at = now()")

        await reader.wait_until_closed()

    async def unknown() -> bool:
        return is_unknown(await shop.read_storefront())

    await eventually(unknown, 2)  # the look-up of a domain is used for a second


async def test_a_shop_that_is_being_deleted_is_unknown_before_and_after_its_rows_are_gone(
    scene: PlatformScene, shop: Shop
) -> None:
    await uninstall_app(scene, shop)
    await redact(scene, shop)
    assert is_unknown(await shop.read_storefront())

    await uninstalling.delete(scene.steps, ShopTask(shop.id))

    assert is_unknown(await shop.read_storefront())


async def test_a_deleted_shop_is_unknown_to_a_process_that_got_no_notice(scene: PlatformScene, shop: Shop) -> None:
    await scene.inventory.sql("update installs set uninstalled_at = now(), redacted_at = now()")
    await uninstalling.delete(scene.steps, ShopTask(shop.id))

    async def unknown() -> bool:
        return is_unknown(await shop.read_storefront())

    await eventually(unknown, 3)


async def test_a_shop_that_was_deleted_and_installs_the_app_again_shows_its_new_numbers(
    scene: PlatformScene, shop: Shop, other_process: Shop
) -> None:
    before = (await shop.read_storefront()).json()["shared_inventory_id"]
    await uninstall_app(scene, shop)
    await redact(scene, shop)
    await uninstalling.delete(scene.steps, ShopTask(shop.id))

    again = await scene.find_shop(key_in((await scene.install()).text))
    await again.create_pool(7, members=[{"variant_gid": SINGLE, "units_per_sale": 1}])

    for reached in (again, other_process):
        data = (await reached.read_storefront()).json()
        assert data["variants"] == {SINGLE: 7}
        assert data["shared_inventory_id"] != before


async def test_a_shop_that_installs_the_app_again_within_two_days_shows_its_numbers_again(
    scene: PlatformScene, shop: Shop
) -> None:
    await uninstall_app(scene, shop)
    assert is_unknown(await shop.read_storefront())
    again = await scene.find_shop(key_in((await scene.install()).text))

    await again.call("adjust_pool_quantity", pool_id=1, delta=-1)

    assert await numbers(again) == 49
    async with read_stream(scene.inventory.app, (await again.read_storefront()).json()["stream_url"]) as reader:
        assert (await reader.next())["data"]["variants"][SINGLE] == 49


async def test_the_key_of_a_shop_that_uninstalled_is_refused_everywhere_and_its_streams_end(
    scene: PlatformScene, shop: Shop, other_process: Shop
) -> None:
    assert await other_process.on_hand(1) == 50
    headers = {"authorization": f"Bearer {shop.key}", "accept": "text/event-stream"}
    async with read_stream(scene.inventory.app, "/mcp", mcp_protocol_version="2025-11-25", **headers) as agent:
        assert agent.status == 200

        await uninstall_app(scene, shop)

        await agent.wait_until_closed()

    async def is_refused() -> bool:
        return (await other_process.send_call("list_pools", {})).status_code == 401

    await eventually(is_refused, 1)


async def test_merchants_of_a_shop_that_uninstalled_are_signed_out_in_every_process(
    scene: PlatformScene, shop: Shop, other_process: Shop
) -> None:
    id = await scene.inventory.database.transact(lambda tx: merchants.add_owner(tx, shop.id, "ada@example.com"))
    assert id is not None
    secret = await scene.inventory.database.transact(lambda tx: sessions.begin(tx, id, "link", "Firefox"))
    cookie = {"cookie": f"__Host-session={secret}"}

    async def console_status(reached: Shop) -> int:
        return (await reached.http.get("/console", headers=cookie)).status_code

    assert [await console_status(shop), await console_status(other_process)] == [200, 200]

    await uninstall_app(scene, shop)

    async def signed_out() -> bool:
        return [await console_status(shop), await console_status(other_process)] == [303, 303]

    await eventually(signed_out, 1)
