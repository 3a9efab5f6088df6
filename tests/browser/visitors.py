"""Three visitors of what `holdfast up` starts, and all pages that each of them finds by following links.

An organizer who has nothing yet ("empty"), the demonstration ("typical"), and an organizer with forty events and
hundreds of people ("full"). Pages to which no link leads are in `guest_shots.py`, `host_shots.py` and
`shop_shots.py`.
"""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urldefrag, urlsplit

import httpx2
from playwright.async_api import Browser, BrowserContext, Page

from tests.browser.demonstration import Demonstration, SentMails
from tests.browser.looking import LOCALES
from tests.browser.sheet_people import SheetOrganizer

PHONE, DESKTOP = 390, 1280
"""Widths of screens, in pixels."""

MAX_PAGES = 120
"""The most pages of one visitor."""

MANY_EVENTS, MANY_PEOPLE = 40, 300

LEFT_OUT = re.compile(
    r"/sign-out|/sign-in(/|$)|/mcp|/oauth/|/media/|/photos/|\.(csv|ics|png|jpe?g|rss|txt|md|js|css|json|svg)$|"
    # Pages of other visitors, and links that begin a download.
    r"/calendar$|/admin/oauth/"
)
"""Addresses that are no pages, or that change something."""

CONSOLE = re.compile(r"/console|/account")
"""Addresses of pages of one's own."""

EXAMPLE_QUERIES = {"status", "tab", "page", "sort", "view"}
"""Names of query parameters that make another page of the same address."""


class Shot(NamedTuple):
    """A page that is drawn.

    name         what the sheet calls it
    addresses    its address; or one for each look, if no two looks can have the same
    act          what a person does on it before it is drawn
    """

    name: str
    addresses: tuple[str, ...]
    act: Callable[[Page], Awaitable[None]] | None = None

    def address(self, look: int) -> str:
        return self.addresses[look % len(self.addresses)]


class SheetVisitor(NamedTuple):
    """A visitor whose pages are drawn.

    starts    the addresses at which they begin to follow links
    mailed    the page on which they ask for a link, the directory of the mails, and their address
    links     links that sign them in; they work once
    shots     pages to which no link leads
    """

    name: str
    starts: list[str]
    mailed: tuple[str, Path, str] | None = None
    links: tuple[str, ...] = ()
    shots: tuple[Shot, ...] = ()


async def visitors(_: Browser, demonstration: Demonstration, __: Path) -> list[SheetVisitor]:
    """Those who follow links; the demonstration is there, and the others are made."""
    links, events, inventory = demonstration.links, demonstration.events, demonstration.inventory
    public = [links[name] for name in links if name not in {"organizer", "merchant", "console"}]
    open_pages = [f"{origin}/{path}" for origin in (events, inventory) for path in ("", "docs", "nowhere")]
    consoles = [f"{events}/console", f"{events}/account"]
    typical = SheetVisitor(
        "typical",
        [*public, *open_pages, *consoles, f"{inventory}/console"],
        links=(links["organizer"], links["console"]),
    )
    async with httpx2.AsyncClient(base_url=events, timeout=60) as http:
        await fill(SheetOrganizer(http, SentMails(demonstration.mails)))
    sign_in, mails = f"{events}/sign-in", demonstration.mails
    return [
        typical,
        SheetVisitor("empty", consoles, (sign_in, mails, "empty@example.com")),
        SheetVisitor("full", [f"{events}/organizers/full", *consoles], (sign_in, mails, "full@example.com")),
    ]


async def ask_for_link(page: Page, address: str, mails: Path, email: str) -> str:
    """Ask for a mail with a link that signs a person in, in the browser in which the link works. Returns the link."""
    await page.goto(address)
    await page.get_by_role("textbox").first.fill(email)
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/sign-in/sent")
    return await SentMails(mails).find_sign_in_link(email)


async def become_organizer(page: Page, account: str) -> None:
    """Give an organizer a name, which the console asks for at the first visit."""
    await page.goto(account.replace("/account", "/console"))
    if urlsplit(page.url).path.endswith("/start"):
        await page.get_by_role("textbox").first.fill("Nobody Yet")
        await page.keyboard.press("Enter")
        await page.wait_for_url(lambda url: not urlsplit(url).path.endswith("/start"))


async def fill(organizer: SheetOrganizer) -> None:
    """Make an organizer with many events, one of them with many people."""
    await organizer.register("Philharmonic Society of the Free and Hanseatic City", "full@example.com", "full")
    concert: dict[str, Any] = {
        "body": "Doors open **an hour** before. " * 20,
        "waitinglist_capacity": 100,
        "location_name": "Großer Saal",
        "address": "Platz der Deutschen Einheit 1\n20457 Hamburg",
    }
    ids: list[int] = []
    for number in range(MANY_EVENTS):
        title = f"Concert {number + 1} of the season, with an introduction for families and a talk afterwards"
        seats = MANY_PEOPLE - 50 if number == 0 else 20
        ids.append((await organizer.event(title, 1 + 3 * number, capacity=seats, **concert))["id"])
    for number in range(MANY_PEOPLE):
        person = {"event_id": ids[0], "email": f"guest-with-a-long-address-{number}@orchestra.example.com"}
        await organizer.ask("POST", "/api/registrations", {"registration": person})


async def pages_of(chromium: Browser, visitor: SheetVisitor, drawn: set[str]) -> list[str]:
    """The addresses of all pages that are found by following links, one of each kind.

    drawn    the kinds of public pages of earlier visitors, which look the same to everybody; those here are added
    """
    context = await signed_in(chromium, visitor, "light", DESKTOP, "en")
    page = await context.new_page()
    origins = {urlsplit(url).netloc for url in visitor.starts}
    waiting, known, addresses = [*visitor.starts], {*drawn, *map(kind, visitor.starts)}, list[str]()
    while waiting and len(addresses) < MAX_PAGES:
        url = waiting.pop(0)
        answer = await page.goto(url, wait_until="domcontentloaded")
        if not answer or "text/html" not in answer.headers.get("content-type", ""):
            continue
        addresses.append(url)
        links: list[str] = await page.eval_on_selector_all("a[href]", "links => links.map((link) => link.href)")
        for link in links:
            address = urldefrag(link).url
            is_page = urlsplit(address).netloc in origins and not LEFT_OUT.search(urlsplit(address).path)
            if is_page and kind(address) not in known:
                known.add(kind(address))
                waiting.append(address)
    await context.close()
    drawn.update(kind(url) for url in addresses if not CONSOLE.match(urlsplit(url).path))
    return addresses


def kind(url: str) -> str:
    """What pages of the same kind have in common: their address without ids, and what their query chooses."""
    parts = urlsplit(url)
    path = re.sub(r"(?<=/)(\d+[\w-]*|[0-9a-f]{8,})(?=/|$)|(?<=/registrations/)\w+", "ID", parts.path)
    chosen = sorted(name for name in parse_qs(parts.query) if name in EXAMPLE_QUERIES)
    return f"{parts.netloc}{path}?{'&'.join(chosen)}"


async def signed_in(chromium: Browser, visitor: SheetVisitor, scheme: Any, width: int, language: str) -> BrowserContext:
    """A browser in which the visitor is signed in, in the time zone of the demonstration. Nothing moves in it."""
    context = await chromium.new_context(
        storage_state=_states.get(visitor.name),
        color_scheme=scheme,
        viewport={"width": width, "height": 900},
        locale=LOCALES[language],
        timezone_id="Europe/Berlin",
        reduced_motion="reduce",
    )
    if visitor.name not in _states:
        page = await context.new_page()
        for link in [await ask_for_link(page, *visitor.mailed)] if visitor.mailed else visitor.links:
            await page.goto(link)
            await page.locator("main button").first.click()
            await page.wait_for_load_state()
            if await (keep := page.get_by_role("button", name="It is mine: keep it")).count():
                await keep.click()
                await page.wait_for_load_state()
        if visitor.mailed:
            await become_organizer(page, visitor.starts[-1])
        await page.close()
        await remember(visitor, context)
    return context


async def remember(visitor: SheetVisitor, context: BrowserContext) -> None:
    """Keep the cookies of a visitor for all later browsers."""
    _states[visitor.name] = await context.storage_state()


_states: dict[str, Any] = {}
"""The cookies of visitors who are signed in: their links work once."""
