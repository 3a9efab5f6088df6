"""In Chromium people are checked in with the network off and on again, and several scanners agree afterwards."""

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio
from playwright.async_api import Browser, expect

from holdfast.events.registrations import links
from holdfast.events.registrations.entrance_code import parse_short_code, short_code
from holdfast.events.registrations.links import OWN_PAGE, Link
from holdfast.events.settings import Settings
from tests.browser.entrance import has_sent_all, open_scanner, register_organizer, sign_in, stored_scans, type_code
from tests.browser.looking import open_context, parametrize_looks, too_wide, violations
from tests.browser.registering import FormStage, Watch, serve_stage
from tests.events.check_in.check_in_scene import code_of
from tests.helpers.events_service import eventually
from tests.helpers.people import sign_up


@pytest_asyncio.fixture(loop_scope="session")
async def stage(settings: Settings) -> AsyncIterator[FormStage]:
    async with serve_stage(settings) as stage:
        yield stage


async def test_on_a_phone_a_code_is_typed_and_sent_on_the_first_screen(chromium: Browser, stage: FormStage) -> None:
    ada = await register_organizer(stage)
    event = await ada.create_event()
    context = await chromium.new_context(viewport={"width": 390, "height": 780})

    # The name of the device is asked for: nothing was scanned here yet.
    page = await open_scanner(stage, context, event["id"], "Door 1")

    await expect(page.locator("#device")).to_be_visible()
    for name in ("Scan with the camera", "Check in"):
        await expect(page.get_by_role("button", name=name, exact=True)).to_be_in_viewport(ratio=1)
    await context.close()


async def test_scanners_that_were_offline_agree_afterwards(chromium: Browser, stage: FormStage) -> None:
    ada = await register_organizer(stage)
    event = await ada.create_event()
    await sign_up(stage.service, event, "ann", "bob", "cleo")
    codes = {name: await code_of(stage.service, event["id"], name) for name in ("ann", "bob", "cleo")}
    contexts = [await chromium.new_context() for _ in range(2)]
    watches = [Watch(context) for context in contexts]
    first, second = [
        await open_scanner(stage, context, event["id"], f"Door {number + 1}") for number, context in enumerate(contexts)
    ]

    assert "✓ Valid" in await type_code(first, codes["cleo"])
    await expect(second.locator("#entered")).to_have_text("1")  # a stream tells it: the page asks every 15 seconds
    for context in contexts:
        await context.set_offline(True)
    assert "✓ Valid" in await type_code(first, codes["ann"])
    assert "! Already in" in await type_code(first, codes["ann"])
    assert "✓ Valid" in await type_code(second, codes["ann"])
    assert "! Already in" in await type_code(second, codes["cleo"])
    assert "✗ Not on the list" in await type_code(second, "4F-7K3M9Q")
    await expect(first.locator("#unsent")).to_contain_text("2")
    await expect(second.locator("#unsent")).to_contain_text("2")
    await expect(first.locator("[data-state=offline]")).to_be_visible()
    assert await violations(first) == []
    for context in contexts:
        await context.set_offline(False)
        await eventually(lambda page=context.pages[0]: has_sent_all(page))

    assert [row for row in await stored_scans(stage) if row[0] == "ann"] == [
        ("ann", "Door 1", True),
        ("ann", "Door 1", False),
        ("ann", "Door 2", False),
    ]
    for page in (first, second):
        await expect(page.locator("#entered")).to_have_text("2", timeout=15_000)
        await expect(page.locator("#report")).to_contain_text("by Door 2", timeout=15_000)
        assert "by Door 1" in await type_code(page, codes["ann"])
    assert {host for watch in watches for host in watch.hosts} == {stage.base_url.split("/")[2]}


async def test_a_new_phone_checks_in_at_once_and_names_itself_once(chromium: Browser, stage: FormStage) -> None:
    ada = await register_organizer(stage)
    event = await ada.create_event()
    await sign_up(stage.service, event, "ann", "bob")
    context = await chromium.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    await sign_in(stage, context)
    page = await context.new_page()
    await page.goto(f"{stage.base_url}/console/events/{event['id']}/check-in")

    # Nothing moves on the page while its scripts begin.
    await expect(page.locator("body[data-kept]")).to_be_attached()
    await expect(page.locator("#device")).to_be_hidden()
    assert "✓ Valid Ann Example" in await type_code(page, await code_of(stage.service, event["id"], "ann"))
    await expect(page.locator("#device")).to_be_hidden()
    await eventually(lambda: has_sent_all(page))
    assert await stored_scans(stage) == [("ann", "Door 1", True)]

    await page.get_by_text("This device: Door 1").click()
    await page.locator("#device").fill("Door 2")
    await page.locator("#device").press("Tab")
    await page.reload()
    await expect(page.get_by_text("This device: Door 2")).to_be_visible()
    await expect(page.locator("#device")).to_be_hidden()
    assert await violations(page) == []


async def test_scanners_and_the_server_read_codes_alike(chromium: Browser, stage: FormStage) -> None:
    ada = await register_organizer(stage)
    event = await ada.create_event()
    page = await open_scanner(stage, await chromium.new_context(), event["id"], "Door 1")
    chance = random.Random(1)
    every = [Link(event["id"], "aaaaaaaa", chance.randint(1, 2 ** chance.randint(1, 59))) for _ in range(50)]
    texts = [links.write(stage.service.database.resources.secret, OWN_PAGE, id) for id in every]
    codes = [str(short_code(text)) for text in texts]
    typed = [code.lower().replace("-", " ").replace("0", "o").replace("1", "l") for code in codes]
    pages = [f"https://x.example/registrations/{text}?lang=de" for text in texts]
    others = [
        "",
        "x",
        "ann@example.com",
        "0A-7K3M9Q",
        "U-7K3M9Q",
        "7K3M9Q",
        f"{'Z' * 13}-7K3M9Q",
        "1-2-3",
        texts[0] + "0",
    ]

    read = await page.evaluate(
        "([id, texts]) => Promise.all(texts.map((text) => readCode(text, id)))",
        [str(event["id"]), [*texts, *typed, *pages, *others]],
    )

    assert [code["code"] for code in read[: 3 * len(codes)]] == [*codes, *codes, *codes]
    assert read[3 * len(codes) :] == [None] * len(others)
    assert [parse_short_code(text) for text in others] == [None] * len(others)


async def test_the_form_of_check_in_works_without_scripts(chromium: Browser, stage: FormStage) -> None:
    ada = await register_organizer(stage)
    event = await ada.create_event()
    await sign_up(stage.service, event, "ann")
    context = await chromium.new_context(java_script_enabled=False)
    await sign_in(stage, context)
    page = await context.new_page()
    await page.goto(f"{stage.base_url}/console/events/{event['id']}/check-in")
    await page.get_by_label("Address or name").fill("ann")
    await page.get_by_role("button", name="Search").click()
    await page.get_by_role("button", name="Check in Ann Example").click()

    await expect(page.locator("#verdict")).to_contain_text("✓ Valid")
    assert await stored_scans(stage) == [("ann", "By name", True)]


@parametrize_looks
async def test_the_check_in_page_is_accessible_and_fits(
    chromium: Browser, stage: FormStage, scheme: Any, width: int, language: str
) -> None:
    ada = await register_organizer(stage)
    event = await ada.create_event(title="Life drawing " + "W" * 60, capacity=2, waitinglist_capacity=5)
    await sign_up(stage.service, event, "ann", "bob", "cleo")
    await stage.service.run_sql("update registrations set name = %(name)s", name="Wolfeschlegelsteinhausen" * 4)
    context = await open_context(chromium, scheme, width, language)
    page = await open_scanner(stage, context, event["id"], "Door " + "1" * 50)
    for name in ("ann", "ann", "bob", "cleo"):
        await type_code(page, await code_of(stage.service, event["id"], name))
        assert await violations(page) == []
        assert await too_wide(page) == []
    address = page.url
    await page.goto(f"{address}?q=wolf")
    assert await violations(page) == []
    assert await too_wide(page) == []
    await stage.service.run_sql("delete from check_in_scans")
    for moment in ("now() + interval '1 hour'", "now()"):
        await stage.service.run_sql(f"update events set datetime = {moment}")
        await page.goto(f"{address}/no-shows")
        assert await violations(page) == []
        assert await too_wide(page) == []
    assert await page.evaluate("document.documentElement.lang") == language


RECORD = """
    globalThis.signals = [];
    const create = AudioContext.prototype.createOscillator;
    AudioContext.prototype.createOscillator = function () {
        const tone = create.call(this);
        signals.push(tone);
        return tone;
    };
    const vibrate = navigator.vibrate.bind(navigator);
    navigator.vibrate = (pattern) => signals.push(pattern) && vibrate(pattern);
"""


async def test_verdicts_differ_in_colour_sound_and_vibration(chromium: Browser, stage: FormStage) -> None:
    ada = await register_organizer(stage)
    event = await ada.create_event()
    await sign_up(stage.service, event, "ann", "bob")
    context = await chromium.new_context()
    await context.add_init_script(RECORD)
    watch = Watch(context)
    page = await open_scanner(stage, context, event["id"], "Door 1")
    code = await code_of(stage.service, event["id"], "ann")

    async def signalled() -> str:
        """The frequencies and vibrations since the last time, and the colour of the verdict."""
        return await page.evaluate(
            """() => JSON.stringify([
                signals.splice(0).map((one) => one.frequency?.value ?? one),
                getComputedStyle(document.querySelector(".verdict")).backgroundColor,
            ])"""
        )

    signals: dict[str, str] = {}
    for text in (code, code, "4F-7K3M9Q"):
        words = await type_code(page, text)
        signals[words[:4]] = await signalled()
    await page.get_by_role("button", name="Sound is on").click()
    await type_code(page, code)
    muted = await signalled()
    await page.reload()

    assert list(signals) == ["✓ Va", "! Al", "✗ No"]
    assert len({*signals.values()}) == 3
    assert all("[" in signal[2:] and "[[]" not in signal for signal in signals.values())
    assert muted.startswith("[[],")
    await expect(page.get_by_role("button", name="Sound is off")).to_be_visible()
    await expect(page.locator("#device")).to_have_value("Door 1")
    await page.locator("#q").fill("bob")
    await page.locator("#q").press("Enter")
    await page.get_by_role("button", name="Check in Bob Example").click()
    await expect(page.locator("#verdict")).to_contain_text("Valid Bob Example")
    assert ("bob", "Door 1", True) in await stored_scans(stage)
    assert watch.failures == []
