"""An organizer of what `holdfast up` starts, the people who come to the events, and the mails between them."""

from pathlib import Path

import httpx2
from playwright.async_api import Browser

from tests.browser.demonstration import Demonstration, SentMails
from tests.browser.guest_shots import open_guest
from tests.browser.looking import submit
from tests.browser.mail_shots import mail_shots
from tests.browser.seller_shots import open_seller, request_shots, seller_shots, send_empty_form
from tests.browser.sheet_people import SheetOrganizer
from tests.browser.visitors import Shot, Visitor, ask_for_link, remember


async def hosts(chromium: Browser, place: Demonstration, directory: Path) -> list[Visitor]:
    """The organizer, a visitor without an account, and a newcomer."""
    async with httpx2.AsyncClient(base_url=place.events, timeout=60, trust_env=False) as http:
        organizer = SheetOrganizer(http, SentMails(place.mails))
        seller = await open_seller(chromium, place, organizer)
        mails = await mail_shots(chromium, organizer, place, directory)
        guest = await open_guest(chromium, place, organizer, mails)
        shots = [
            *await seller_shots(chromium, organizer, place),
            *await request_shots(chromium, organizer, place, seller, directory),
        ]
        return [guest, await open_newcomer(chromium, place), seller._replace(shots=tuple(shots))]


async def open_newcomer(chromium: Browser, place: Demonstration) -> Visitor:
    """A person who has signed in, and is no organizer yet."""
    form = f"{place.events}/console/start"
    shots = (
        Shot("become an organizer", (form,)),
        Shot("become an organizer, without a name", (form,), send_empty_form),
    )
    newcomer = Visitor("newcomer", [], shots=shots)
    async with await chromium.new_context() as context:
        page = await context.new_page()
        await page.goto(await ask_for_link(page, f"{place.events}/sign-in", place.mails, "newcomer@example.com"))
        await submit(page.locator("main button"))
        await remember(newcomer, context)
    return newcomer
