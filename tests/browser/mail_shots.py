"""Mails of every kind, each in English and in German.

They are stored as they are sent. No person can cause the one about webhooks in a minute: it is written from an example.
"""

import asyncio
from datetime import UTC, datetime
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Any, NamedTuple

from playwright.async_api import Browser, Page

from holdfast.accounts.webhooks.mail import WebhookMail
from holdfast.events.mails.model import MailBatch
from holdfast.events.mails.writing import write
from tests.browser.demonstration import Demonstration
from tests.browser.looking import LOCALES
from tests.browser.sheet_people import LANGUAGES, SheetOrganizer, in_days, per_look, store_mail, subject_has
from tests.browser.visitors import Shot


class MailKind(NamedTuple):
    """A kind of mail.

    person      what its recipients' addresses begin with
    subjects    how its subject begins, in English and in German
    """

    name: str
    person: str
    subjects: tuple[str, str]


KINDS = (
    MailKind("seat", "seat", ("You have a seat:", "Sie haben einen Platz:")),
    MailKind("waiting list", "waits", ("You are on the waiting list", "Sie stehen auf der Warteliste")),
    MailKind("moved up", "waits", ("You have a seat now", "Jetzt haben Sie einen Platz")),
    MailKind("removed", "removed", ("Your registration was", "Ihre Anmeldung wurde")),
    MailKind("please pay", "due", ("Please pay", "Bitte bezahlen")),
    MailKind("paid seat", "pays", ("You have a seat:", "Sie haben einen Platz:")),
    MailKind("money back", "pays", ("You get €24.50 back", "Sie bekommen 24,50\u00a0€ zurück")),
    MailKind("confirm an entry", "enters", ("Please confirm", "Bitte bestätigen")),
    MailKind("event cancelled", "cancelled", ("Cancelled:", "Abgesagt:")),
    MailKind("own data", "seat", ("Your data at", "Ihre Daten bei")),
    MailKind("sign in", "organizer", ("", "")),
    MailKind("sign in, inventory", "merchant", ("", "")),
)


async def mail_shots(
    chromium: Browser, organizer: SheetOrganizer, demonstration: Demonstration, directory: Path
) -> list[Shot]:
    """A mail of each kind, stored as a page."""
    await cause_mails(chromium, organizer)
    for language in LANGUAGES:
        await ask_for_links(chromium, organizer, demonstration, language)
    shots: list[Shot] = []
    for kind in KINDS:
        pages: list[str] = []
        for language, subject in zip(LANGUAGES, kind.subjects, strict=True):
            mail = await organizer.mails.find(f"{kind.person}-{language}@example.org", subject_has(subject))
            name = f"{kind.name.replace(',', '').replace(' ', '-')}-{language}"
            pages.append(await asyncio.to_thread(store_mail, mail, directory / "mails", name))
        shots.append(Shot(f"mail, {kind.name}", per_look(pages)))
    return [*shots, await asyncio.to_thread(webhook_shot, demonstration, directory)]


def webhook_shot(demonstration: Demonstration, directory: Path) -> Shot:
    """The mail about a program that was not reached for days."""
    pages: list[str] = []
    for language in LANGUAGES:
        mail = WebhookMail(
            "kim@example.org",
            "webhook@example.com",
            datetime.now(UTC),
            language,
            f"{demonstration.events}/console/webhooks/1",
            f"{demonstration.events}/mails/0",
            host="crm.example.com",
        )
        [content] = write(MailBatch(demonstration.events, "holdfast@example.com", "", [mail]))
        written = message_from_bytes(content, policy=default)
        pages.append(store_mail(written, directory / "mails", f"webhooks-stopped-{language}"))
    return Shot("mail, webhooks stopped", per_look(pages))


async def cause_mails(chromium: Browser, organizer: SheetOrganizer) -> None:
    """Do what causes mails about registrations."""
    fields: dict[str, Any] = {"waitinglist_capacity": 2, "capacity": 2}
    free = await organizer.event("Life drawing class", 14, cancellation_hours=24)
    small = await organizer.event("Studio concert", 15, **fields)
    paid = await organizer.event("Wine and cheese", 18, pricing_mode="fixed", price=2450, **fields)
    drawn = await organizer.event("Glass blowing", 40, capacity=2, opens_at=in_days(5))
    cancelled = await organizer.event("Night swim", 22)

    async def send(event: Any, person: str) -> str:
        return await organizer.send_form(event, f"{person}-{language}@example.org", "Kim Berg", language)

    outcomes: dict[str, str] = {}
    for language in LANGUAGES:
        for event, person in ((free, "seat"), (small, "removed"), (cancelled, "cancelled"), (drawn, "enters")):
            await send(event, person)
        outcomes[language] = await send(paid, "pays")
    for language in LANGUAGES:
        await organizer.mails.find(f"removed-{language}@example.org")
        await organizer.mails.find(f"cancelled-{language}@example.org")
        await send(small, "waits")
        await pay(chromium, outcomes[language])
    for language in LANGUAGES:
        await organizer.mails.find(f"waits-{language}@example.org")
        await organizer.mails.find(f"pays-{language}@example.org")
        await send(paid, "due")
    for language in LANGUAGES:
        await organizer.remove(small, f"removed-{language}@example.org")
        await organizer.remove(paid, f"pays-{language}@example.org")
    await organizer.ask("DELETE", f"/api/events/{cancelled['id']}")


async def pay(chromium: Browser, outcome: str) -> None:
    """Pay for a seat that is held, from the page after the form."""
    async with await chromium.new_context() as context:
        page = await context.new_page()
        await page.goto(outcome)
        await page.goto(await payment_of(page))
        await page.get_by_label("Card number").fill("4242 4242 4242 4242")
        await page.get_by_role("button", name="Pay").click()
        await page.locator("main[data-state=registered]").wait_for(timeout=40_000)


async def payment_of(page: Page) -> str:
    """The address at which a seat is paid that is held, once the page has it."""
    link = page.locator(".outcome a.button").first
    await link.wait_for(timeout=40_000)
    return await link.get_attribute("href") or ""


async def ask_for_links(
    chromium: Browser, organizer: SheetOrganizer, demonstration: Demonstration, language: str
) -> None:
    """Ask for links to sign in, and to one's own data."""
    async with await chromium.new_context(locale=LOCALES[language]) as context:
        page = await context.new_page()
        for origin, person in ((demonstration.events, "organizer"), (demonstration.inventory, "merchant")):
            await page.goto(f"{origin}/sign-in")
            await page.locator("#email").fill(f"{person}-{language}@example.org")
            await page.locator("#email").press("Enter")
            await page.wait_for_url("**/sign-in/sent")
        await page.goto(f"{await organizer.own_page(f'seat-{language}@example.org')}/data")
        await page.locator("main form button").click()
        await page.wait_for_load_state()
