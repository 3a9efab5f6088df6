"""An organizer in the console, and what a test asks of its pages."""

import csv
import io
import re

import httpx2

from tests.helpers.events_service import Client, Service
from tests.helpers.form_browser import Browser

OWNER_EMAIL = "owner@example.com"

PASSWORD = "correct horse battery"


async def sign_in_organizer(service: Service, name: str = "ada", language: str = "en") -> tuple[Client, Browser]:
    """A new organizer, with a key and at a browser in which it is signed in."""
    email = f"{name}@example.com"
    client = await service.organizer(
        name=f"{name.title()} Events", email=email, password=PASSWORD, slug=f"{name}-events"
    )
    browser = Browser(service, language=language)
    done = await browser.send("/sign-in", email=email, password=PASSWORD)
    assert done.status_code == 303, done.text
    return client, browser


async def sign_in_by_link(service: Service, name: str = "ada") -> tuple[Client, Browser]:
    """A new organizer, with a key and at a browser that signed in by the link of a mail, as payouts require."""
    email = f"{name}@example.com"
    client, browser = await service.organizer(f"{name.title()} Events", email=email), Browser(service)
    await browser.sign_in(email)
    return client, browser


def next_page_link(page: str) -> str | None:
    match = re.search(r'href="([^"]+)" rel="next"', page)
    return match[1].replace("&amp;", "&") if match else None


def csv_cells(file: httpx2.Response, separator: str = ",") -> list[list[str]]:
    assert file.content.startswith(b"\xef\xbb\xbf")
    text = io.StringIO(file.content.decode("utf-8-sig"), newline="")
    return [*csv.reader(text, strict=True, delimiter=separator)]


async def register_stranger(service: Service, **fields: str) -> Client:
    """A stranger's organizer with the owner's address."""
    return await service.organizer("Planted Bank", is_proved=False, email=OWNER_EMAIL, slug="planted-bank", **fields)
