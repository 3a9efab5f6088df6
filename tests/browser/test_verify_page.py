"""The page that checks receipts, in Chromium: served by the service, and opened as a saved file without any network."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from playwright.async_api import Browser, ConsoleMessage, Page, Route, expect

from holdfast.events.settings import Settings
from holdfast_verify.formats.signed_note import Signer
from tests.browser.looking import open_context, parametrize_looks, too_wide, violations
from tests.events.log.log_scene import seal_logs
from tests.events.pages.own_registration import register_and_settle
from tests.helpers.serving import serve_events
from tests.verify.audit.honest_event import ORIGIN, VKEY, HonestEvent, proof_file

SAYS = {
    "en": {
        "receipt": "This receipt of event 7 at events.example.com is right.",
        "entry": "Number 2 of event 7 at events.example.com is in the log.",
        "arrived": "It came on November 26, 2026",
        "signature": "It is not signed with this key: it was altered, or another service made it.",
        "promise": "The receipt was altered: what it promises is not what was signed.",
        "commitment": "It is not for person2: it is for somebody else, or was altered.",
        "path": "The entry is not in the log that was signed: it was altered.",
        "unreadable": "This is neither a receipt nor a proof file. Paste all of it.",
        "key": "The key cannot be read. It looks like name+id+key.",
    },
    "de": {
        "receipt": "Dieser Nachweis von Veranstaltung 7 auf events.example.com stimmt.",
        "signature": "Er ist nicht mit diesem Schlüssel signiert: Er wurde verändert, oder ein anderer "
        "Dienst hat ihn ausgestellt.",
        "promise": "Der Nachweis wurde verändert: Was er zusagt, ist nicht das, was signiert wurde.",
        "commitment": "Er ist nicht für person2: Er ist für jemand anderen, oder er wurde verändert.",
        "path": "Der Eintrag steht nicht in dem Protokoll, das signiert wurde: Er wurde verändert.",
        "unreadable": "Das ist weder ein Nachweis noch eine Beweisdatei. Fügen Sie alles ein.",
        "key": "Der Schlüssel ist nicht lesbar. Er sieht aus wie Name+Kennung+Schlüssel.",
    },
}


def with_members(answer: Mapping[str, Any], **members: Any) -> str:
    return json.dumps({**answer, "receipt": {**answer["receipt"], **members}})


def asks_log(message: ConsoleMessage) -> bool:
    """Whether a message is about the log, which cannot be reached on the page of another host, nor offline."""
    return f"{ORIGIN}/" in f"{message.text} {message.location['url']}"


async def check_text(page: Page, text: str, key: str) -> None:
    await page.locator("#key").evaluate("(field, value) => { field.value = value }", key)
    await page.locator("details", has=page.locator("#proof")).evaluate("(details) => { details.open = true }")
    await page.locator("#proof").fill(text)
    await page.locator("form button[type=submit]").click()


@parametrize_looks
async def test_a_receipt_is_checked_by_the_browser_alone_also_in_a_saved_file(
    chromium: Browser, settings: Settings, tmp_path: Path, scheme: Any, width: int, language: str
) -> None:
    says = SAYS[language]
    event = HonestEvent()
    for _ in range(4):
        event.arrive()
    event.seal()
    answer, other, proof = event.receipts[2], event.receipts[3], proof_file(event.entries, 2)
    receipt: Mapping[str, Any] = answer["receipt"]
    path: list[str] = receipt["path"]
    stranger = Signer(ORIGIN, Ed25519PrivateKey.generate()).vkey
    failures = [
        (with_members(answer, signed=receipt["signed"].replace("\n3\n", "\n4\n")), VKEY, "signature"),
        (json.dumps(answer), stranger, "signature"),
        (with_members(answer, promise=receipt["promise"].replace('"within":60', '"within":61')), VKEY, "promise"),
        (with_members(answer, promise=other["receipt"]["promise"]), VKEY, "promise"),
        (with_members(answer, path=path[::-1]), VKEY, "promise"),
        (with_members(answer, path=path[:1]), VKEY, "promise"),
        (with_members(answer, index=1), VKEY, "promise"),
        (with_members(answer, nonce="0" * 32), VKEY, "commitment"),
        (proof._replace(index=3).text, VKEY, "path"),
        (proof._replace(extra=(proof.extra or b"").replace(b"registered", b"waitlisted")).text, VKEY, "path"),
        (proof._replace(checkpoint=proof.checkpoint.replace("\n6\n", "\n7\n")).text, VKEY, "signature"),
        (json.dumps(answer)[:-30], VKEY, "unreadable"),
        (json.dumps(answer), VKEY[:-2], "key"),
    ]
    refusals: list[str] = []
    async with serve_events(settings) as service:
        context = await open_context(chromium, scheme, width, language)
        page = await context.new_page()
        page.on("console", lambda message: None if asks_log(message) else refusals.append(message.text))
        page.on("pageerror", lambda error: refusals.append(str(error)))
        await page.goto(f"{service.base_url}/verify")
        assert await violations(page) == []
        assert await too_wide(page) == []

        for text, key, reason in failures:
            await check_text(page, text, key)
            await expect(page.locator("#result .note.alarm")).to_have_text(says[reason])
        assert await violations(page) == []
        await check_text(page, json.dumps(answer), VKEY)
        await expect(page.locator("#result h2")).to_contain_text(says["receipt"])
        # Whether the log has it was not checked, so there is no green tick.
        await expect(page.locator("#result .mark.partly")).to_be_visible()
        assert await violations(page) == []
        assert await too_wide(page) == []
        (tmp_path / "verify.html").write_text(
            await (await page.request.get(f"{service.base_url}/verify?lang=en")).text()
        )

    async def serve_key(route: Route) -> None:
        await route.fulfill(body=VKEY, headers={"access-control-allow-origin": "*"})

    # The file, and nothing else but the key, which it fetches from the log.
    await page.goto((tmp_path / "verify.html").as_uri())
    await page.route("https://events.example.com/log/events/7/key", serve_key)
    (tmp_path / "2.tlog-proof").write_text(proof.text)
    await page.locator("#file").set_input_files(tmp_path / "2.tlog-proof")
    await expect(page.locator("#result h2")).to_contain_text(SAYS["en"]["entry"])
    await expect(page.locator("#result")).to_contain_text(SAYS["en"]["arrived"])
    await page.unroute_all()
    await context.set_offline(True)
    await check_text(page, json.dumps(answer), VKEY)
    await expect(page.locator("#result h2")).to_contain_text(SAYS["en"]["receipt"])
    await check_text(page, *failures[0][:2])
    await expect(page.locator("#result .note.alarm")).to_have_text(SAYS["en"]["signature"])
    assert refusals == []
    await context.close()


async def test_a_link_shows_that_the_log_has_the_number_and_the_saved_receipt_whose_number_it_is(
    chromium: Browser, settings: Settings, tmp_path: Path
) -> None:
    async with serve_events(settings) as service:
        ada = await service.organizer()
        event = await ada.create_event()
        address_of_ann, _ = await register_and_settle(service, ada, event, "ann", "ben")
        await seal_logs(service)
        context = await chromium.new_context()
        page = await context.new_page()
        await page.goto(address_of_ann)
        await page.get_by_text("How is this fair?").click()
        async with page.expect_popup() as opened:
            await page.get_by_text("Check it yourself").click()
        check = await opened.value
        await expect(check.locator("#result h2")).to_contain_text(f"Number 1 of event {event['id']} at")
        await expect(check.locator("#result .mark.partly")).to_be_visible()
        await expect(check.locator("#result")).to_contain_text("The page that linked here shows the same: a seat.")

        async with page.expect_download() as saving:
            await page.get_by_text("Save your receipt").click()
        await (await saving.value).save_as(tmp_path / "receipt.json")
        await check.locator("#file").set_input_files(tmp_path / "receipt.json")
        await expect(check.locator("#result h2")).to_contain_text(f"You have number 1 of event {event['id']} at")
        await expect(check.locator("#result .mark.registered")).to_be_visible()
        receipt = json.loads((tmp_path / "receipt.json").read_text())
        await check_text(check, json.dumps({**receipt, "number": 2}), "")
        await expect(check.locator("#result .note.alarm")).to_contain_text("number 2 is another person")

        # Saved, it needs neither the service nor a key to be pasted.
        saved = await context.new_page()
        (tmp_path / "verify.html").write_text(
            await (await page.request.get(f"{service.base_url}/verify?lang=en")).text()
        )
        await context.set_offline(True)
        await saved.goto((tmp_path / "verify.html").as_uri())
        await saved.locator("#file").set_input_files(tmp_path / "receipt.json")
        await expect(saved.locator("#result h2")).to_contain_text("is right.")
        await expect(saved.locator("#result")).to_contain_text("the log cannot be reached from here")
        await context.set_offline(False)

        await check.evaluate("() => { location.hash = location.hash.replace(/1[?]/, '3?') }")
        await expect(check.locator("#result .note.alarm")).to_contain_text("The log does not have this number")
        async with page.expect_download() as started:
            await page.get_by_text("Proof of your number").click()
        assert (await started.value).suggested_filename == f"{event['id']}-1.tlog-proof"
        await context.close()
