"""Handling deliveries: once, again after a failure, and parked if they always fail."""

import asyncio
from functools import partial

import msgspec
import pytest

from holdfast.inventory.installs.operations import install
from holdfast.inventory.partner_webhooks import inbox
from holdfast.inventory.partner_webhooks import sql as partner_webhooks
from holdfast.inventory.partner_webhooks.inbox import MAX_ATTEMPTS, WebhookWork
from holdfast.inventory.partner_webhooks.model import Delivery, WaitingWebhook
from holdfast.inventory.problems import SHOP_NOT_CONNECTED
from holdfast.inventory.resources import Steps
from holdfast.inventory.shopify.domains import REQUIRED
from holdfast.inventory.shopify.platform_client import PlatformUnreachable
from holdfast.inventory.shopify.platform_tokens import GrantedTokens
from holdfast.kit.background.leases import LEASE_SECONDS
from holdfast.kit.background.row_work import run
from holdfast.kit.contract.problems import Problem
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import eventually
from tests.helpers.inventory_service import Inventory
from tests.helpers.platform_webhooks import DeliveryScene, install_app
from tests.helpers.row_work import handle_all


@pytest.fixture
async def scene(inventory: Inventory) -> DeliveryScene:
    return DeliveryScene(inventory, await install_app(inventory))


async def test_a_delivery_is_handled_once_and_its_payload_is_deleted(scene: DeliveryScene) -> None:
    await scene.receive("w1")

    assert [await handle_all(scene.handling) for _ in range(2)] == [1, 0]

    [delivery] = scene.handled
    assert (delivery.shop_id, delivery.topic, delivery.webhook_id) == (scene.shop.id, "orders/updated", "w1")
    assert (delivery.event_id, delivery.payload) == ("e", b'{"id":1}')
    assert (await scene.row())[:2] == (True, False)
    assert await scene.inventory.sql("select payload from webhooks") == [(None,)]


async def test_a_handler_sees_rows_of_its_shop_only(scene: DeliveryScene) -> None:
    seen: list[int] = []

    async def look(steps: Steps) -> None:
        seen.append(await steps.transact(lambda tx: tx.value("select count(*) from shops")))

    await scene.inventory.create_shop()
    scene.meanwhile = look
    await scene.receive("w1")
    await handle_all(scene.handling)

    assert seen == [1]


async def test_a_delivery_that_fails_is_tried_again_after_pauses_that_grow(scene: DeliveryScene) -> None:
    scene.faults = [
        ValueError("no such line"),
        PlatformUnreachable("The platform is away."),
        PlatformUnreachable("Busy.", 200.0),
    ]
    await scene.receive("w1")
    await handle_all(scene.handling)
    pauses: list[float] = []
    errors: list[str] = []
    for _ in range(3):
        handled, due, pause, _, error = await scene.row()
        assert (handled, due) == (False, True)
        pauses.append(pause)
        errors.append(error)
        await scene.deliver_again()

    assert [0.5 < pauses[0] <= 1, 1.5 < pauses[1] <= 2, 190 < pauses[2] <= 200] == [True] * 3
    assert errors == ["ValueError: no such line", "The platform is away.", "Busy."]
    assert (await scene.row())[0] is True
    assert len(scene.handled) == 4


async def test_a_delivery_that_always_fails_is_parked_and_can_be_tried_again(scene: DeliveryScene) -> None:
    scene.faults = [PlatformUnreachable("The platform is away.") for _ in range(MAX_ATTEMPTS)]
    await scene.receive("w1")
    for _ in range(MAX_ATTEMPTS + 2):
        await scene.deliver_again()

    assert len(scene.handled) == MAX_ATTEMPTS
    assert (await scene.row())[:2] == (False, False)
    [parked] = await scene.inventory.database.transact(inbox.list_retrying_and_parked)
    assert (parked.domain, parked.topic, parked.attempts) == (scene.shop.domain, "orders/updated", MAX_ATTEMPTS)
    assert parked.error == "The platform is away."
    with pytest.raises(Problem, match="No webhook with the id 999 is parked or waits"):
        await scene.inventory.database.transact(lambda tx: inbox.retry(tx, 999))

    assert await scene.inventory.database.transact(lambda tx: inbox.retry(tx, parked.id)) == 1
    await handle_all(scene.handling)

    assert (await scene.row())[0] is True
    assert await scene.inventory.database.transact(lambda tx: inbox.retry(tx, None)) == 0


async def test_a_delivery_that_can_never_be_read_is_parked_at_once(scene: DeliveryScene) -> None:
    scene.faults = [msgspec.ValidationError("Expected `int`, got `str` - at `$.id`")]
    await scene.receive("w1")
    await handle_all(scene.handling)

    assert (await scene.row())[:2] == (False, False)
    [parked] = await scene.inventory.database.transact(inbox.list_retrying_and_parked)
    assert (parked.attempts, parked.next_attempt_at) == (1, None)
    assert parked.error == "It cannot be read: Expected `int`, got `str` - at `$.id`"


async def test_a_delivery_that_waits_is_listed_and_can_be_tried_again_at_once(scene: DeliveryScene) -> None:
    scene.faults = [PlatformUnreachable("The platform is away.", 3600.0)]
    await scene.receive("w1")
    await handle_all(scene.handling)

    [waiting] = await scene.inventory.database.transact(inbox.list_retrying_and_parked)
    assert (waiting.topic, waiting.attempts, waiting.error) == ("orders/updated", 1, "The platform is away.")
    assert waiting.next_attempt_at is not None
    assert await scene.inventory.database.transact(lambda tx: inbox.retry(tx, waiting.id)) == 1
    await handle_all(scene.handling)

    assert (await scene.row())[0] is True
    assert await scene.inventory.database.transact(inbox.list_retrying_and_parked) == []


async def test_a_parked_webhook_is_handled_again_when_its_shop_is_connected(scene: DeliveryScene) -> None:
    scene.faults = [SHOP_NOT_CONNECTED()]
    await scene.receive("w1")
    await scene.inventory.sql(f"update webhooks set attempts = {MAX_ATTEMPTS - 1}")
    await handle_all(scene.handling)
    assert (await scene.row())[:2] == (False, False)
    granted = GrantedTokens("shpat", ",".join(REQUIRED))

    await scene.inventory.database.transact(lambda tx: install(tx, scene.shop.domain, granted, ()))
    await handle_all(scene.handling)

    assert (await scene.row())[0] is True


async def test_a_delivery_whose_process_always_dies_is_parked(scene: DeliveryScene) -> None:
    await scene.receive("w1")
    await scene.inventory.sql(f"update webhooks set attempts = {MAX_ATTEMPTS}")
    await handle_all(scene.handling)

    assert scene.handled == []
    assert (await scene.row())[4] == "The process that handled it was ended each time."


async def test_a_delivery_whose_process_died_is_due_again_after_the_lease(scene: DeliveryScene) -> None:
    async def hang(_: Steps) -> None:
        await asyncio.Event().wait()

    scene.meanwhile = hang
    await scene.receive("w1")
    async with run_in_background(handle_all(scene.handling)):
        await eventually(lambda: scene.handled)
    scene.meanwhile = lambda _: None

    assert await handle_all(scene.handling) == 0
    assert 0 < (await scene.row())[2] <= LEASE_SECONDS
    await scene.deliver_again()
    assert (await scene.row())[0] is True


@pytest.mark.usefixtures("short_leases")
async def test_a_delivery_in_work_is_leased_by_no_other_process(
    scene: DeliveryScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partner_webhooks, "LEASE_SECONDS", 0.5)
    longer = asyncio.Event()
    scene.meanwhile = lambda _: longer.wait()
    await scene.receive("w1")
    handles = asyncio.create_task(handle_all(scene.handling))
    await eventually(lambda: scene.handled)
    asyncio.get_running_loop().call_later(2.0, longer.set)

    handled_by_others = 0
    while not handles.done():
        handled_by_others += await handle_all(scene.handling)
        await asyncio.wait([handles], timeout=0.05)

    assert (handled_by_others, len(scene.handled)) == (0, 1)
    assert (await scene.row())[0] is True


async def test_a_handler_that_lost_its_lease_stores_nothing(scene: DeliveryScene) -> None:
    stored: list[bool] = []

    async def lose_the_lease(steps: Steps) -> None:
        await scene.lock_in_another_process()
        await steps.transact(lambda tx: tx.value("select true"))
        stored.append(True)

    scene.meanwhile = lose_the_lease
    await scene.receive("w1")
    await handle_all(scene.handling)

    assert stored == []
    assert (await scene.row())[:2] == (False, True)


async def test_a_delivery_leased_by_another_process_meanwhile_is_not_settled(scene: DeliveryScene) -> None:
    scene.meanwhile = lambda _: scene.lock_in_another_process()
    await scene.receive("w1")
    await handle_all(scene.handling)

    assert (await scene.row())[:2] == (False, True)


async def test_deliveries_are_handled_as_they_come_while_the_service_runs(scene: DeliveryScene) -> None:
    async with run_in_background(run(scene.inventory.database, scene.handling)):
        await scene.receive(*(f"w{number}" for number in range(30)))

        await eventually(lambda: len(scene.handled) == 30)
        count = "select count(*) from webhooks where handled_at is null"
        await eventually(lambda: nothing_left(scene, count))
    assert sorted(delivery.webhook_id for delivery in scene.handled) == sorted(f"w{number}" for number in range(30))


async def nothing_left(scene: DeliveryScene, count: str) -> bool:
    return await scene.inventory.sql(count) == [(0,)]


async def test_a_shop_whose_deliveries_hang_does_not_delay_those_of_others(scene: DeliveryScene) -> None:
    other = DeliveryScene(scene.inventory, await install_app(scene.inventory))
    slow = scene.shop.id

    async def hang_for_one(_: Steps, delivery: Delivery) -> None:
        scene.handled.append(delivery)
        if delivery.shop_id == slow:
            await asyncio.Event().wait()

    await scene.receive(*(f"slow {number}" for number in range(20)))
    await other.receive(*(f"other {number}" for number in range(5)))
    work = WebhookWork(scene.inventory.database, {"orders/updated": hang_for_one})
    async with run_in_background(run(scene.inventory.database, work)):
        await eventually(lambda: sum(delivery.shop_id != slow for delivery in scene.handled) == 5)
        assert sum(delivery.shop_id == slow for delivery in scene.handled) <= 3


async def test_leased_deliveries_of_a_shop_do_not_exceed_its_share(scene: DeliveryScene) -> None:
    await scene.receive(*(f"w{number}" for number in range(6)))
    work = scene.handling
    [first, second, _] = await work.lease(8, (), scan_all=True)

    more = await work.lease(8, work.busy_keys([first, second]), scan_all=True)

    assert len(more) == 1


async def test_a_webhook_in_work_or_due_has_no_next_attempt(scene: DeliveryScene) -> None:
    async def look(steps: Steps) -> None:
        seen.extend(await steps.read(partial(inbox.list_waiting_order_webhooks, shop_id=scene.shop.id)))

    seen: list[WaitingWebhook] = []
    scene.meanwhile = look
    await scene.receive("w1")
    due = await scene.inventory.database.read(partial(inbox.list_waiting_order_webhooks, shop_id=scene.shop.id))
    await handle_all(scene.handling)

    assert [webhook.next_attempt_at for webhook in (*due, *seen)] == [None, None]


async def test_deliveries_are_forgotten_after_8_days_unless_they_are_parked(scene: DeliveryScene) -> None:
    await scene.receive("handled long ago", "handled lately")
    await handle_all(scene.handling)
    scene.faults = [ValueError()]
    await scene.receive("parked long ago")
    await handle_all(scene.handling)
    await scene.inventory.sql(
        "update webhooks set handled_at = now() - interval '9 days' where webhook_id = 'handled long ago'"
    )
    await scene.inventory.sql(
        "update webhooks set received_at = now() - interval '9 days', due_at = null where handled_at is null"
    )

    assert await scene.inventory.database.transact(partner_webhooks.forget_handled) == 1
    left = await scene.inventory.sql("select webhook_id from webhooks order by id")
    assert left == [("handled lately",), ("parked long ago",)]
