"""A waiting person asks for a push message with one click in Chromium, and gets it when the seat is there.

Chromium has no push service here, so its subscription comes from the double; the worker, the page and the service are
real.
"""

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest_asyncio
from playwright.async_api import Browser, expect

from holdfast.events.push import sending
from holdfast.events.push.encryption import sender_keys
from holdfast.events.settings import Settings
from holdfast.kit.outbound.requests import OutboundClient
from tests.browser.looking import AXE_SCRIPT, FAULTS
from tests.browser.registering import FormStage, Watch, serve_stage
from tests.events.check_in.check_in_scene import link_of
from tests.events.push.push_service import LOCAL, PushServiceDouble, push_service
from tests.helpers.people import sign_up
from tests.helpers.row_work import handle_all

SUBSCRIBE = """
    // Headless Chromium says "denied" whatever was granted.
    Object.defineProperty(Notification, "permission", { get: () => "default" });
    PushManager.prototype.subscribe = async function (options) {
      if (!options.userVisibleOnly || options.applicationServerKey !== KEY) throw new Error("another key");
      localStorage.setItem("the browser is subscribed with", KEY);
      return { toJSON: () => ({ endpoint: ENDPOINT, keys: { p256dh: P256DH, auth: AUTH } }) };
    };
    PushManager.prototype.getSubscription = async () => {
      const key = localStorage.getItem("the browser is subscribed with");
      if (key === null) return null;
      const bytes = Uint8Array.from(atob(key.replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0));
      return { endpoint: ENDPOINT, options: { applicationServerKey: bytes.buffer } };
    };
"""


@pytest_asyncio.fixture(loop_scope="session")
async def stage(settings: Settings) -> AsyncIterator[tuple[FormStage, PushServiceDouble]]:
    async with serve_stage(settings) as stage, push_service() as double:
        database = stage.service.database
        reaching = OutboundClient(exempt=[(LOCAL, double.port)], seconds=5)
        database.resources = replace(database.resources, push=reaching)
        yield stage, double


async def test_a_push_message_is_switched_on_and_off_with_one_click_each(
    chromium: Browser, stage: tuple[FormStage, PushServiceDouble]
) -> None:
    scene, pushes = stage
    service = scene.service
    event = await scene.ada.create_event(capacity=1, waitinglist_capacity=2)
    await sign_up(service, event, "ann", "bob")
    ann, bob = [
        f"{scene.base_url}/registrations/{await link_of(service, event['id'], name)}" for name in ("ann", "bob")
    ]
    browser = pushes.subscribe(sender_keys(service.database.resources.secret)[0].public_key)
    fields = {"KEY": "sender_key", "ENDPOINT": "endpoint", "P256DH": "p256dh", "AUTH": "auth"}
    script = SUBSCRIBE
    for name, field in fields.items():
        script = script.replace(name, json.dumps(browser.fields[field]))
    context = await chromium.new_context()
    await context.grant_permissions(["notifications"], origin=scene.base_url)
    await context.add_init_script(script)
    watch = Watch(context)
    page = await context.new_page()

    await page.goto(bob)
    button = page.locator("#push button")
    await expect(button).to_have_text("Tell me here as well")
    await page.evaluate(AXE_SCRIPT)
    assert await page.evaluate(FAULTS) == []
    assert await service.run_sql("select count(*) from push_subscriptions") == [(0,)]
    await button.click()
    await expect(button).to_have_text("Do not tell me here")
    await page.reload()
    await expect(button).to_have_text("Do not tell me here")
    assert await service.run_sql("select count(*) from push_subscriptions") == [(1,)]
    await button.click()
    await expect(button).to_have_text("Tell me here as well")
    assert await service.run_sql("select count(*) from push_subscriptions") == [(0,)]
    await button.click()
    await expect(button).to_have_text("Do not tell me here")
    # The browser has ended its subscription, as when the person clears its data or takes the permission back.
    await page.evaluate("localStorage.removeItem('the browser is subscribed with')")
    await page.reload()
    await expect(button).to_have_text("Tell me here as well")
    assert await service.run_sql("select count(*) from push_subscriptions") == [(0,)]
    await button.click()
    await expect(button).to_have_text("Do not tell me here")

    going = await (await chromium.new_context()).new_page()
    await going.goto(f"{ann}/cancel")
    await going.locator("main form button").click()
    await going.wait_for_url(ann)
    await service.complete_cancellations()
    await handle_all(sending.PushWork(service.database))

    [message] = browser.messages
    assert message["url"] == bob
    assert watch.failures == []
