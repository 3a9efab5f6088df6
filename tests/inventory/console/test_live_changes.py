"""The stream of the console names the pools that have changed, as long as the session lasts."""

import pytest

from holdfast.inventory.shops.operations import announce_sync_status
from tests.helpers.exchange import read_stream
from tests.helpers.inventory_service import PACKS, SIX_PACK, Inventory, Shop
from tests.inventory.console.signing_in import Owner, add_merchant

STREAM = "/console/stream"


@pytest.fixture
async def owner(inventory: Inventory, shop: Shop) -> Owner:
    """An owner who has signed in."""
    await add_merchant(inventory, shop)
    return await Owner(inventory).sign_in()


def cookie(owner: Owner) -> str:
    return "; ".join(f"{name}={value}" for name, value in owner.http.cookies.items())


async def test_the_stream_of_the_console_names_changed_pools(owner: Owner, shop: Shop, inventory: Inventory) -> None:
    honey, boxes = await shop.create_pool(50, name="Honey", members=PACKS), await shop.create_pool(9, name="Boxes")
    other = await (await inventory.create_shop()).create_pool(5)
    async with read_stream(inventory.app, STREAM, cookie=cookie(owner)) as reader:
        await (await inventory.create_shop()).create_pool(5)
        await shop.call("record_sale", variant_gid=SIX_PACK, quantity=1)
        sold = await reader.next()
        await shop.call("update_pool", pool_id=boxes["id"], name="Crates")
        renamed = await reader.next()

    assert (sold["event"], sold["data"]) == ("changed", {"changed": [f"pool {honey['id']}"]})
    assert renamed["data"] == {"changed": [f"pool {boxes['id']}"]}
    assert reader.headers["content-type"] == "text/event-stream"
    assert f"pool {other['id']}" not in reader.sent


async def test_the_stream_ends_with_the_session(owner: Owner, inventory: Inventory) -> None:
    async with read_stream(inventory.app, STREAM, cookie=cookie(owner)) as reader:
        await owner.send("/account", "/sign-out")
        last = await reader.next()
        await reader.wait_until_closed()

    assert last["event"] == "signed_out"


async def test_a_stranger_gets_no_stream(inventory: Inventory) -> None:
    refusal = await Owner(inventory).get(STREAM)

    assert (refusal.status_code, refusal.headers["location"]) == (303, "/sign-in?return_to=%2Fconsole%2Fstream")


async def test_pages_of_pools_follow_the_stream_of_the_console(owner: Owner, shop: Shop) -> None:
    pool = await shop.create_pool(50, members=PACKS)
    paths = {
        "/console": "",
        f"/console/pools/{pool['id']}": f' data-about="pool {pool["id"]}"',
        f"/console/pools/{pool['id']}/history": f' data-about="pool {pool["id"]}"',
        f"/console/variant?gid={SIX_PACK}": ' data-about="pool"',
        "/console/holds": ' data-about="pool"',
        "/console/low-stock": ' data-about="pool"',
        "/console/suggestions": "",
        "/console/sync": "",
    }

    for path, about in paths.items():
        page = await owner.get(path)

        assert f'data-live data-stream="{STREAM}"{about} data-lost=' in page.text, path
        assert "live.js" in page.text, path
        assert "data-says" in page.text, path


async def test_a_change_of_the_sync_is_streamed_to_the_console(owner: Owner, shop: Shop, inventory: Inventory) -> None:
    async with read_stream(inventory.app, STREAM, cookie=cookie(owner)) as reader:
        await inventory.database.transact(lambda tx: announce_sync_status(tx, shop.id))

        assert (await reader.next())["data"] == {"changed": ["sync"]}
