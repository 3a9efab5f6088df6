"""The answer to a storefront has three members, is true at any moment, and is cheap to repeat."""

import asyncio
from pathlib import Path

import httpx2

from holdfast.inventory.availability.cache import AvailabilityCache
from holdfast.inventory.settings import Settings
from tests.helpers.events_service import eventually
from tests.helpers.inventory_service import PACKS, SINGLE, SIX_PACK, TWELVE_PACK, Inventory, Shop, running_inventory
from tests.helpers.processes import running_processes


async def test_the_answer_of_a_storefront_has_exactly_the_three_members_of_the_contract(
    shop: Shop, inventory: Inventory
) -> None:
    await shop.create_golden_pool()

    response = await shop.read_storefront()

    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert body.keys() == {"shared_inventory_id", "variants", "stream_url"}
    [[shared]] = await inventory.sql("select id from shared_inventories where shop_id = %(id)s", id=shop.id)
    assert body["shared_inventory_id"] == shared
    assert body["variants"] == {SINGLE: 50, SIX_PACK: 8, TWELVE_PACK: 4}
    assert body["stream_url"].startswith("http://inventory.test/storefront/stream?")


async def test_the_answer_of_a_storefront_without_pools_has_no_variants(shop: Shop) -> None:
    assert (await shop.read_storefront()).json()["variants"] == {}


async def test_the_shared_inventory_id_of_a_shop_never_changes(shop: Shop, inventory: Inventory) -> None:
    first = (await shop.read_storefront()).json()["shared_inventory_id"]
    other = (await (await inventory.create_shop()).read_storefront()).json()["shared_inventory_id"]
    await shop.create_golden_pool()

    assert (await shop.read_storefront()).json()["shared_inventory_id"] == first != other


async def test_the_answer_of_a_storefront_leaves_out_the_buffer(shop: Shop) -> None:
    await shop.create_pool(50, members=PACKS, buffer=3)

    assert (await shop.read_storefront()).json()["variants"] == {SINGLE: 47, SIX_PACK: 7, TWELVE_PACK: 3}


async def test_the_answer_of_a_storefront_has_a_kit_with_the_least_of_its_pools(shop: Shop) -> None:
    await shop.create_golden_pool()
    await shop.create_pool(2, members=[{"variant_gid": SIX_PACK, "units_per_sale": 1}])

    assert (await shop.read_storefront()).json()["variants"] == {SINGLE: 50, SIX_PACK: 2, TWELVE_PACK: 4}


async def test_the_answer_of_a_storefront_leaves_out_variants_of_paused_and_archived_pools(shop: Shop) -> None:
    for tool in ("pause_pool", "archive_pool"):
        pool = await shop.create_pool(50, members=PACKS[:1])
        await shop.create_pool(50, members=PACKS[1:2])
        await shop.call(tool, pool_id=pool["id"])
        assert (await shop.read_storefront()).json()["variants"].keys() == {SIX_PACK}


async def test_a_change_is_in_the_next_answer_of_the_storefront(shop: Shop) -> None:
    pool = await shop.create_golden_pool()

    for left in range(49, 29, -1):
        await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-1)
        assert (await shop.read_storefront()).json()["variants"][SINGLE] == left


async def test_a_crowd_that_waits_for_a_change_is_answered_at_the_same_moment(shop: Shop, inventory: Inventory) -> None:
    await shop.create_golden_pool()
    cache, turns, answered_at = AvailabilityCache(inventory.database), 0, list[int]()

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def look() -> None:
        assert (await cache.cached_shop(shop.id)).variants[SINGLE] == 50
        answered_at.append(turns)

    counting = asyncio.create_task(count_turns())
    await asyncio.gather(*(look() for _ in range(200)))
    counting.cancel()

    assert max(answered_at) - min(answered_at) <= 1


async def test_a_change_in_one_process_is_soon_in_the_storefront_answers_of_others(
    shop: Shop, settings: Settings
) -> None:
    pool = await shop.create_golden_pool()
    async with running_inventory(settings) as second:
        other_process = shop.at_service(second)
        assert (await other_process.read_storefront()).json()["variants"][SINGLE] == 50

        await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-6)

        async def is_updated() -> bool:
            return (await other_process.read_storefront()).json()["variants"][SINGLE] == 44

        await eventually(is_updated, 2)


async def test_an_answer_of_a_storefront_is_never_older_than_an_earlier_one(shop: Shop, settings: Settings) -> None:
    pool = await shop.create_golden_pool()
    async with running_inventory(settings) as second:
        other_process = shop.at_service(second)
        seen = 50
        for left in range(49, 19, -1):
            await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-1)
            now = (await other_process.read_storefront()).json()["variants"][SINGLE]
            assert left <= now <= seen
            seen = now


async def test_an_unchanged_storefront_answer_is_304_until_it_changes(shop: Shop) -> None:
    pool = await shop.create_golden_pool()
    first = await shop.read_storefront()
    etag = first.headers["etag"]

    for condition in (etag, f"W/{etag}", f'"other", {etag}'):
        again = await shop.read_storefront(**{"if-none-match": condition})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-6)

    changed = await shop.read_storefront(**{"if-none-match": etag})
    assert (changed.status_code, changed.json()["variants"][SINGLE]) == (200, 44)
    assert changed.headers["etag"] != etag


async def test_a_storefront_request_with_if_none_match_star_is_answered_with_304(shop: Shop) -> None:
    await shop.create_golden_pool()

    assert (await shop.read_storefront(**{"if-none-match": "*"})).status_code == 304


async def test_the_answer_of_a_storefront_is_revalidated_by_caches(shop: Shop) -> None:
    headers = (await shop.read_storefront()).headers

    assert headers["cache-control"] == "public, max-age=0, s-maxage=1"
    assert "accept-encoding" in headers["vary"].lower()


async def create_many_variants(shop: Shop) -> int:
    """Variants enough to be worth compressing; how many."""
    pool = await shop.create_pool(50)
    members = [{"variant_gid": f"gid://shopify/ProductVariant/{n}", "units_per_sale": 1} for n in range(200)]
    await shop.call("link_variants", pool_id=pool["id"], members=members)
    return len(members)


async def test_a_storefront_answer_is_compressed_only_for_clients_that_accept_gzip(shop: Shop) -> None:
    count = await create_many_variants(shop)

    packed = await shop.read_storefront(**{"accept-encoding": "br, gzip;q=0.8"})
    plain = await shop.read_storefront(**{"accept-encoding": "identity"})
    refusal = await shop.read_storefront(**{"accept-encoding": "gzip;q=0"})

    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert "content-encoding" not in refusal.headers
    assert packed.json() == plain.json() == refusal.json()
    assert len(packed.json()["variants"]) == count
    assert int(packed.headers["content-length"]) < len(plain.content) / 4
    assert packed.headers["etag"] != plain.headers["etag"]


async def test_an_unchanged_compressed_answer_is_304_too(shop: Shop) -> None:
    await create_many_variants(shop)
    etag = (await shop.read_storefront(**{"accept-encoding": "gzip"})).headers["etag"]

    again = await shop.read_storefront(**{"accept-encoding": "gzip", "if-none-match": etag})

    assert again.status_code == 304


async def test_a_long_compressed_answer_is_decompressed_unchanged(shop: Shop) -> None:
    """Long enough to be compressed beside everything else that goes on."""
    pools = [await shop.create_pool(number) for number in range(5)]
    for number, pool in enumerate(pools):
        members = [
            {"variant_gid": f"gid://shopify/ProductVariant/{number}{n:06}", "units_per_sale": 1} for n in range(250)
        ]
        await shop.call("link_variants", pool_id=pool["id"], members=members)

    packed = await shop.http.get(f"/storefront/availability?{shop.signed_query()}", headers={"accept-encoding": "gzip"})
    plain = await shop.read_storefront(**{"accept-encoding": "identity"})

    assert packed.headers["content-encoding"] == "gzip"
    assert packed.json()["variants"] == plain.json()["variants"]
    assert len(plain.json()["variants"]) == 1250


async def test_storefront_availability_through_a_real_server_is_the_same(
    shop: Shop, inventory_url: str, tmp_path: Path
) -> None:
    pool = await shop.create_golden_pool()
    with running_processes(inventory_url, tmp_path, 1, service="inventory") as (process,):
        url = f"{process.url}/storefront/availability?{shop.signed_query()}"
        async with httpx2.AsyncClient() as http:
            got, head = await http.get(url), await http.head(url)
            await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-6)

            async def is_updated() -> bool:
                return (await http.get(url)).json()["variants"] == {SINGLE: 44, SIX_PACK: 7, TWELVE_PACK: 3}

            await eventually(is_updated)

    assert got.json()["variants"] == {SINGLE: 50, SIX_PACK: 8, TWELVE_PACK: 4}
    assert got.json()["stream_url"].startswith(f"{process.url}/storefront/stream?")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(got.content))
