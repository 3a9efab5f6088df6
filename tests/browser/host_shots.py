"""An organizer of what `holdfast up` starts, the people who come to the events, and the mails between them."""

from pathlib import Path

import httpx2
from playwright.async_api import Browser

from tests.browser.guest_shots import open_guest
from tests.browser.mail_shots import mail_shots
from tests.browser.seller_shots import open_seller, request_shots, seller_shots
from tests.browser.sheet_people import SentMails, SheetOrganizer
from tests.browser.visitors import Place, Visitor


async def hosts(chromium: Browser, place: Place, directory: Path) -> list[Visitor]:
    """The organizer, and somebody without an account."""
    async with httpx2.AsyncClient(base_url=place.events, timeout=60, trust_env=False) as http:
        organizer = SheetOrganizer(http, SentMails(place.mails))
        seller = await open_seller(chromium, place, organizer)
        mails = await mail_shots(chromium, organizer, place, directory)
        guest = await open_guest(chromium, place, organizer, mails)
        shots = [
            *await seller_shots(chromium, organizer, place),
            *await request_shots(chromium, organizer, place, seller, directory),
        ]
        return [guest, seller._replace(shots=tuple(shots))]
