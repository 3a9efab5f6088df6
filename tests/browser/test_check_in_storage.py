"""What a browser at the entrance stores: scans until they are sent, and names of people only while they are needed."""

from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from holdfast.events.settings import Settings
from tests.browser.entrance import has_sent_all, open_scanner, register_organizer, stored_scans, type_code
from tests.browser.registering import FormStage, serve_stage
from tests.events.check_in.check_in_scene import code_of
from tests.helpers.events_service import eventually
from tests.helpers.people import sign_up


async def stored_text(page: Page) -> str:
    """Everything that the browser keeps of check-ins, as text."""
    return await page.evaluate(
        """async () => {
            const done = (request) => new Promise((resolve) => (request.onsuccess = () => resolve(request.result)));
            const contents = [];
            for (const { name } of await indexedDB.databases()) {
                const database = await done(indexedDB.open(name));
                for (const store of database.objectStoreNames)
                    contents.push(await done(database.transaction(store).objectStore(store).getAll()));
                database.close();
            }
            for (const name of await caches.keys())
                for (const answer of await (await caches.open(name)).matchAll())
                    contents.push(await answer.text());
            return JSON.stringify(contents);
        }"""
    )


@pytest_asyncio.fixture(loop_scope="session")
async def stage(settings: Settings) -> AsyncIterator[FormStage]:
    async with serve_stage(settings) as stage:
        yield stage


async def test_the_check_in_page_is_closed_and_opened_again_without_a_network(
    chromium: Browser, stage: FormStage
) -> None:
    ada = await register_organizer(stage)
    event = await ada.create_event()
    await sign_up(stage.service, event, "ann", "bob")
    context = await chromium.new_context()
    page = await open_scanner(stage, context, event["id"], "Door 1")
    address = page.url
    await context.set_offline(True)
    await type_code(page, await code_of(stage.service, event["id"], "ann"))
    await page.close()

    page = await context.new_page()
    await page.goto(address)

    await expect(page.locator("#unsent")).to_contain_text("1")
    assert await page.locator("#device").input_value() == "Door 1"
    assert "Already in" in await type_code(page, await code_of(stage.service, event["id"], "ann"))
    assert "Valid Bob Example" in await type_code(page, await code_of(stage.service, event["id"], "bob"))
    assert await stored_scans(stage) == []
    await context.set_offline(False)
    await eventually(lambda: has_sent_all(page))
    assert [row for row in await stored_scans(stage) if row[2]] == [("ann", "Door 1", True), ("bob", "Door 1", True)]


async def test_signing_out_deletes_the_list_and_keeps_the_scans(chromium: Browser, stage: FormStage) -> None:
    ada = await register_organizer(stage)
    event = await ada.create_event()
    await sign_up(stage.service, event, "ann", "bob")
    context = await chromium.new_context()
    page = await open_scanner(stage, context, event["id"], "Door 1")
    await context.set_offline(True)
    await type_code(page, await code_of(stage.service, event["id"], "ann"))
    # The server fails, no matter whether the page or its worker sends it.
    await stage.service.run_sql("alter table check_in_scans add constraint failing check (false)")
    await context.set_offline(False)
    assert "Example" in await stored_text(page)

    await page.get_by_role("button", name="Sign out").click()
    await page.wait_for_url(f"{stage.base_url}/")

    assert "Example" not in await stored_text(page)
    assert await stored_scans(stage) == []
    await stage.service.run_sql("alter table check_in_scans drop constraint failing")
    again = await open_scanner(stage, context, event["id"], "Door 1")
    await eventually(lambda: has_sent_all(again))
    assert await stored_scans(stage) == [("ann", "Door 1", True)]


async def test_a_session_that_ends_elsewhere_deletes_the_list_and_keeps_the_scans(
    chromium: Browser, stage: FormStage
) -> None:
    ada = await register_organizer(stage)
    event = await ada.create_event()
    await sign_up(stage.service, event, "ann")
    context = await chromium.new_context()
    page = await open_scanner(stage, context, event["id"], "Door 1")
    await context.set_offline(True)
    await type_code(page, await code_of(stage.service, event["id"], "ann"))
    await context.clear_cookies()
    await context.set_offline(False)

    await expect(page.get_by_role("link", name="sign in again")).to_be_visible(timeout=15_000)

    assert "Ann" not in (await stored_text(page)).replace("Announc", "")
    await expect(page.locator("#unsent")).to_contain_text("1")
    again = await open_scanner(stage, context, event["id"], "Door 1")
    await eventually(lambda: has_sent_all(again))
    assert await stored_scans(stage) == [("ann", "Door 1", True)]


async def test_the_list_of_an_event_that_is_over_is_deleted_by_any_page_of_the_console(
    chromium: Browser, stage: FormStage
) -> None:
    ada = await register_organizer(stage)
    event = await ada.create_event()
    await sign_up(stage.service, event, "ann")
    await stage.service.run_sql("update events set datetime = now() - interval '23:59:50'")
    context = await chromium.new_context()
    page = await open_scanner(stage, context, event["id"], "Door 1")
    assert "Ann Example" in await stored_text(page)

    async def is_deleted() -> bool:
        await page.goto(f"{stage.base_url}/console/agents")
        return "Ann Example" not in await stored_text(page)

    await eventually(is_deleted, 20)


async def test_a_service_worker_sends_scans_after_the_page_was_closed(chromium: Browser, stage: FormStage) -> None:
    ada = await register_organizer(stage)
    event = await ada.create_event()
    await sign_up(stage.service, event, "ann")
    context = await chromium.new_context()
    other = await context.new_page()
    devtools: Any = await context.new_cdp_session(other)
    known: list[str] = []

    def registered(answer: Any) -> None:
        known.extend(registration["registrationId"] for registration in answer["registrations"])

    devtools.on("ServiceWorker.workerRegistrationUpdated", registered)
    await devtools.send("ServiceWorker.enable")
    page = await open_scanner(stage, context, event["id"], "Door 1")
    await context.set_offline(True)
    assert "Valid" in await type_code(page, await code_of(stage.service, event["id"], "ann"))
    await page.close()
    assert await stored_scans(stage) == []

    await context.set_offline(False)
    # The browser does this by itself when it has a network again; here it never had none.
    sync = {"origin": stage.base_url, "registrationId": known[-1], "tag": "scans", "lastChance": False}
    await devtools.send("ServiceWorker.dispatchSyncEvent", sync)

    await eventually(lambda: stored_scans(stage))
    assert await stored_scans(stage) == [("ann", "Door 1", True)]
