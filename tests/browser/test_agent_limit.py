"""The page of a daily limit in Chromium: accessible, in every width, and without JavaScript."""

from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio
from playwright.async_api import Browser

from holdfast.accounts import sessions
from holdfast.accounts.agents.limits import SetLimit
from holdfast.events.keys.operations import KEY_LIMITS
from holdfast.events.settings import Settings
from holdfast.kit.contract.caller import system
from tests.browser.looking import (
    open_context,
    parametrize_looks,
    session_cookie,
    submit,
    too_wide,
    violations,
    with_and_without_scripts,
)
from tests.browser.registering import FormStage, serve_stage
from tests.helpers.events_service import event_fields

LONG = "W" * 60 + " \u0627\u0644\u062a\u0637\u0628\u064a\u0642"


@pytest_asyncio.fixture(loop_scope="session")
async def stage(settings: Settings) -> AsyncIterator[FormStage]:
    async with serve_stage(settings) as stage:
        yield stage


async def address_of_limit(stage: FormStage) -> str:
    """The address of the page of a new key with a long name."""
    made = await stage.ada.post("/api/keys", {"api_key": {"name": LONG}})
    return f"{stage.base_url}/console/agents/limit?key={made.json()['data']['id']}"


async def cookie(stage: FormStage) -> Any:
    """The cookie of a session of the organizer."""
    secret = await stage.service.database.transact(lambda tx: sessions.begin(tx, stage.ada.id, "password", "a test"))
    return session_cookie(stage.base_url, secret)


@parametrize_looks
async def test_the_page_of_the_agent_limit_and_its_refusal_are_accessible_and_fit(
    chromium: Browser, stage: FormStage, scheme: Any, width: int, language: str
) -> None:
    context = await open_context(chromium, scheme, width, language)
    await context.add_cookies([await cookie(stage)])
    page = await context.new_page()

    await page.goto(await address_of_limit(stage))
    assert await too_wide(page) == []
    assert await violations(page) == []
    await page.locator("#daily_limit").fill("many")
    await submit(page.locator("form.form button"))

    assert await page.locator('[aria-invalid="true"]').count() == 1
    assert await too_wide(page) == []
    assert await violations(page) == []


@with_and_without_scripts
async def test_an_organizer_sets_a_limit(chromium: Browser, stage: FormStage, scripts: bool) -> None:
    context = await chromium.new_context(java_script_enabled=scripts)
    await context.add_cookies([await cookie(stage)])
    page = await context.new_page()
    address = await address_of_limit(stage)

    await page.goto(address)
    await page.get_by_label("People a day").fill("1,000")
    await submit(page.get_by_role("button", name="Save"))

    assert await page.get_by_text("0 of 1,000 people registered today.").count() == 1
    await page.goto(address)
    assert await page.get_by_label("People a day").input_value() == "1000"


@parametrize_looks
async def test_the_page_of_a_request_of_an_agent_is_accessible_and_fits(
    chromium: Browser, stage: FormStage, scheme: Any, width: int, language: str
) -> None:
    made = (await stage.ada.post("/api/keys", {"api_key": {"name": LONG}})).json()["data"]
    command = SetLimit(key_id=made["id"], asks_first=True)
    await stage.service.database.transact(lambda tx: KEY_LIMITS.store_limit(tx, system(stage.ada.id), command))
    body = {"event": event_fields(title=LONG, body=LONG * 9)}
    refusal = await stage.service.http.post("/api/events", json=body, headers={"X-API-Key": made["key"]})
    context = await open_context(chromium, scheme, width, language)
    await context.add_cookies([await cookie(stage)])
    page = await context.new_page()

    for path in ("", f"/requests/{refusal.json()['request_id']}"):
        await page.goto(f"{stage.base_url}/console/agents{path}")
        assert await page.locator("button[value=approve]").count() == 1
        assert await too_wide(page) == []
        assert await violations(page) == []
    await submit(page.locator("button[value=decline]"))

    assert await page.locator("button[value=approve]").count() == 0
