"""The stream of a storefront sends everything first, then each change, from any process."""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from holdfast.inventory.settings import Settings
from holdfast.kit.http import event_streams
from holdfast.kit.http.event_streams import MAX_RETRY_MS, MIN_RETRY_MS
from tests.helpers.events_service import eventually
from tests.helpers.exchange import Event, parse_event, read_stream
from tests.helpers.inventory_service import PACKS, SINGLE, SIX_PACK, TWELVE_PACK, Inventory, Shop, running_inventory
from tests.helpers.processes import running_processes


async def stream_url(shop: Shop) -> str:
    return (await shop.read_storefront()).json()["stream_url"]


async def version(shop: Shop) -> int:
    return (await shop.call("get_availability", variant_gids=[SINGLE]))["version"]


async def test_the_stream_of_a_storefront_begins_with_a_snapshot_of_all_variants(
    shop: Shop, inventory: Inventory
) -> None:
    await shop.create_golden_pool()

    async with read_stream(inventory.app, await stream_url(shop)) as reader:
        event = await reader.next()

    assert (event["event"], event["id"]) == ("snapshot", str(await version(shop)))
    assert event["data"] == {
        "version": await version(shop),
        "variants": {SINGLE: 50, SIX_PACK: 8, TWELVE_PACK: 4},
    }


async def test_the_stream_of_a_storefront_is_readable_from_any_origin_and_not_buffered(
    shop: Shop, inventory: Inventory
) -> None:
    async with read_stream(inventory.app, await stream_url(shop), origin="https://any.example") as reader:
        pass

    assert reader.status == 200
    assert reader.headers["content-type"] == "text/event-stream"
    assert reader.headers["access-control-allow-origin"] == "*"
    assert reader.headers["x-accel-buffering"] == "no"
    assert reader.headers["cache-control"] == "no-store"
    assert "access-control-allow-credentials" not in reader.headers


async def test_readers_of_a_storefront_stream_get_different_times_to_reconnect(
    shop: Shop, inventory: Inventory
) -> None:
    times: list[int] = []
    for _ in range(4):
        async with read_stream(inventory.app, await stream_url(shop)) as reader:
            await reader.next()
        begins = re.match(r"retry: (\d+)\n\nevent: snapshot\nid: ", reader.sent)
        assert begins
        times.append(int(begins[1]))

    assert all(MIN_RETRY_MS <= milliseconds <= MAX_RETRY_MS for milliseconds in times)
    assert len(set(times)) > 1


async def test_a_silent_storefront_stream_sends_comments(
    shop: Shop, inventory: Inventory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert event_streams.HEARTBEAT_SECONDS == 15
    monkeypatch.setattr(event_streams, "HEARTBEAT_SECONDS", 0.01)

    async with read_stream(inventory.app, await stream_url(shop)) as reader:
        await eventually(lambda: reader.sent.endswith(":\n\n:\n\n"))


@pytest.mark.parametrize("method", ["POST", "HEAD", "PUT"])
async def test_the_stream_of_a_storefront_allows_get_only(shop: Shop, method: str) -> None:
    response = await shop.http.request(method, await stream_url(shop))

    assert (response.status_code, response.headers["allow"]) == (405, "GET")


async def test_the_stream_of_a_storefront_sends_only_changes_after_the_snapshot(
    shop: Shop, inventory: Inventory
) -> None:
    pool = await shop.create_golden_pool()
    async with read_stream(inventory.app, await stream_url(shop)) as reader:
        await reader.next()

        change = await shop.call("set_pool_quantity", pool_id=pool["id"], quantity=49)
        event = await reader.next()

    assert (event["event"], event["id"]) == ("change", str(change["version"]))
    assert event["data"] == {"version": change["version"], "variants": {SINGLE: 49}, "removed": []}


async def test_the_stream_of_a_storefront_reports_variants_that_are_removed_and_offered_again(
    shop: Shop, inventory: Inventory
) -> None:
    pool = await shop.create_golden_pool()
    other = await shop.create_pool(5)
    async with read_stream(inventory.app, await stream_url(shop)) as reader:
        await reader.next()
        changes: list[Event] = []
        for tool, arguments in (
            ("unlink_variants", {"pool_id": pool["id"], "variant_gids": [SIX_PACK]}),
            ("pause_pool", {"pool_id": pool["id"]}),
            ("link_variants", {"pool_id": other["id"], "members": [PACKS[1]]}),
            ("resume_pool", {"pool_id": pool["id"]}),
        ):
            await shop.call(tool, **arguments)
            changes.append((await reader.next())["data"])

    assert [(sorted(change["removed"]), change["variants"]) for change in changes] == [
        ([SIX_PACK], {}),
        ([SINGLE, TWELVE_PACK], {}),
        ([], {SIX_PACK: 0}),
        ([], {SINGLE: 50, TWELVE_PACK: 4}),
    ]


async def test_a_change_without_new_quantities_is_not_streamed_to_a_storefront(
    shop: Shop, inventory: Inventory
) -> None:
    pool = await shop.create_golden_pool()
    async with read_stream(inventory.app, await stream_url(shop)) as reader:
        await reader.next()
        await shop.call("update_pool", pool_id=pool["id"], name="Honey")
        await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-6, dry_run=True)
        await shop.refusal("adjust_pool_quantity", pool_id=pool["id"], delta=-51)
        await (await inventory.create_shop()).create_golden_pool()
        last = await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-1)

        event = await reader.next()

    assert event["id"] == str(last["version"])


async def test_a_replay_of_the_storefront_stream_ends_with_the_present_quantities(
    shop: Shop, inventory: Inventory
) -> None:
    """Changes of every kind, in quick succession; ids rise, and the sum of all events is the present."""
    pool, boxes = await shop.create_golden_pool(), await shop.create_pool(30)
    async with read_stream(inventory.app, await stream_url(shop)) as reader:
        known = (await reader.next())["data"]["variants"]
        seen = 0
        calls = [
            shop.call("adjust_pool_quantity", pool_id=(pool if n % 3 else boxes)["id"], delta=-1) for n in range(40)
        ]
        await shop.call("link_variants", pool_id=boxes["id"], members=[{**PACKS[1], "units_per_sale": 7}])
        await asyncio.gather(*calls)
        last = await shop.call("unlink_variants", pool_id=pool["id"], variant_gids=[TWELVE_PACK])
        while seen < last["version"]:
            event = await reader.next()
            assert int(event["id"]) > seen
            seen = int(event["id"])
            known |= event["data"]["variants"]
            for gid in event["data"]["removed"]:
                del known[gid]

    assert known == (await shop.read_storefront()).json()["variants"]


async def test_a_resumed_storefront_stream_sends_the_missed_changes_only(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_golden_pool()
    url = await stream_url(shop)
    async with read_stream(inventory.app, url) as reader:
        await reader.next()
        first = await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-1)
        assert (await reader.next())["id"] == str(first["version"])
    # Another client keeps listening meanwhile.
    async with read_stream(inventory.app, url) as other:
        await other.next()
        for _ in range(2):
            await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-1)
            await other.next()

        async with read_stream(inventory.app, url, last_event_id=str(first["version"])) as again:
            missed = [await again.next(), await again.next()]
            assert again.nothing_more()

    assert [(event["event"], event["data"]["variants"][SINGLE]) for event in missed] == [("change", 48), ("change", 47)]


async def test_a_resumed_storefront_stream_without_missed_changes_sends_only_new_ones(
    shop: Shop, inventory: Inventory
) -> None:
    pool = await shop.create_golden_pool()
    seen = str(await version(shop))

    async with read_stream(inventory.app, await stream_url(shop), last_event_id=seen) as reader:
        change = await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-1)
        event = await reader.next()

    assert (event["event"], event["id"]) == ("change", str(change["version"]))


@pytest.mark.parametrize("last_event_id", ["0", "999999", "-1", "abc", "", "1" * 30])
async def test_a_storefront_stream_resumed_at_an_unknown_position_begins_with_a_snapshot(
    shop: Shop, inventory: Inventory, last_event_id: str
) -> None:
    await shop.create_golden_pool()

    async with read_stream(inventory.app, await stream_url(shop), last_event_id=last_event_id) as reader:
        assert (await reader.next())["event"] == "snapshot"


async def test_a_storefront_stream_has_variants_of_its_own_shop_only(shop: Shop, inventory: Inventory) -> None:
    other = await inventory.create_shop()
    mine, theirs = await shop.create_golden_pool(), await other.create_golden_pool()
    async with read_stream(inventory.app, await stream_url(shop)) as reader:
        await reader.next()
        for _ in range(3):
            await other.call("adjust_pool_quantity", pool_id=theirs["id"], delta=-1)
        await shop.call("adjust_pool_quantity", pool_id=mine["id"], delta=-6)

        assert (await reader.next())["data"]["variants"][SINGLE] == 44


async def test_a_change_made_in_another_instance_arrives(shop: Shop, inventory: Inventory, settings: Settings) -> None:
    pool = await shop.create_golden_pool()
    async with running_inventory(settings) as second, read_stream(inventory.app, await stream_url(shop)) as reader:
        await reader.next()
        change = await shop.at_service(second).call("adjust_pool_quantity", pool_id=pool["id"], delta=-6)
        event = await reader.next()

    assert event["id"] == str(change["version"])
    assert event["data"]["variants"] == {SINGLE: 44, SIX_PACK: 7, TWELVE_PACK: 3}


async def next_event(lines: AsyncIterator[str]) -> Event:
    """The next event of a stream that a real server sends."""
    text: list[str] = []
    async for line in lines:
        text.append(line)
        if not line:
            if "data" in (event := parse_event("\n".join(text))):
                return event
            text.clear()
    raise AssertionError("the stream has ended")


async def test_a_change_in_one_process_is_streamed_by_another_until_that_stops(
    shop: Shop, inventory_url: str, tmp_path: Path
) -> None:
    pool = await shop.create_golden_pool()
    async with httpx2.AsyncClient(timeout=15) as http:
        with running_processes(inventory_url, tmp_path, 2, service="inventory") as (one, two):
            availability = (await http.get(f"{one.url}/storefront/availability?{shop.signed_query()}")).json()
            async with http.stream("GET", availability["stream_url"]) as stream:
                assert stream.headers["content-type"] == "text/event-stream"
                lines = stream.aiter_lines()
                assert (await next_event(lines))["event"] == "snapshot"
                call = {"name": "adjust_pool_quantity", "arguments": {"pool_id": pool["id"], "delta": -6}}
                await http.post(
                    f"{two.url}/mcp",
                    json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
                    headers={"authorization": f"Bearer {shop.key}"},
                )
                assert (await next_event(lines))["data"]["variants"] == {SINGLE: 44, SIX_PACK: 7, TWELVE_PACK: 3}

                began = time.monotonic()
                assert await asyncio.to_thread(one.stop) == 143
                assert time.monotonic() - began < 2
                assert [line async for line in lines if line.startswith("data:")] == []
