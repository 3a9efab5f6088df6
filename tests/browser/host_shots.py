"""An organizer who sells seats, an agent who acts for them, a newcomer, and the people who come to the events."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import repeat
from pathlib import Path
from urllib.parse import urlencode

import httpx2
from playwright.async_api import Browser, Page

from tests.browser.demonstration import Demonstration, SentMails
from tests.browser.guest_shots import open_guest
from tests.browser.looking import submit
from tests.browser.mail_shots import mail_shots, pay
from tests.browser.sheet_people import SheetOrganizer, store_mail
from tests.browser.visitors import DESKTOP, SheetVisitor, Shot, ask_for_link, remember, signed_in

EMAIL = "harbour@example.com"


async def hosts(chromium: Browser, demonstration: Demonstration, directory: Path) -> list[SheetVisitor]:
    """The organizer, a visitor without an account, and a newcomer."""
    async with httpx2.AsyncClient(base_url=demonstration.events, timeout=60, trust_env=False) as http:
        organizer = SheetOrganizer(http, SentMails(demonstration.mails))
        seller = await open_seller(chromium, demonstration, organizer)
        mails = await mail_shots(chromium, organizer, demonstration, directory)
        guest = await open_guest(chromium, demonstration, organizer, mails)
        shots = [
            *await seller_shots(chromium, organizer, demonstration),
            *await request_shots(chromium, organizer, demonstration, seller, directory),
        ]
        return [guest, await open_newcomer(chromium, demonstration), seller._replace(shots=tuple(shots))]


async def open_newcomer(chromium: Browser, demonstration: Demonstration) -> SheetVisitor:
    """A person who has signed in, and is no organizer yet."""
    form = f"{demonstration.events}/console/start"
    shots = (
        Shot("become an organizer", (form,)),
        Shot("become an organizer, without a name", (form,), send_empty_form),
    )
    newcomer = SheetVisitor("newcomer", [], shots=shots)
    async with await chromium.new_context() as context:
        page = await context.new_page()
        await page.goto(
            await ask_for_link(page, f"{demonstration.events}/sign-in", demonstration.mails, "newcomer@example.com")
        )
        await submit(page.locator("main button"))
        await remember(newcomer, context)
    return newcomer


async def open_seller(chromium: Browser, demonstration: Demonstration, organizer: SheetOrganizer) -> SheetVisitor:
    """An organizer who has confirmed the address, and is paid out."""
    await organizer.register("Harbour hall", EMAIL, "harbour")
    seller = SheetVisitor(
        "seller", [f"{demonstration.events}/account"], (f"{demonstration.events}/sign-in", demonstration.mails, EMAIL)
    )
    async with await signed_in(chromium, seller, "light", DESKTOP, "en") as context:
        page = await context.new_page()
        await page.goto(f"{demonstration.events}/console/payouts")
        await page.locator("main form button").first.click()
        await page.get_by_role("button", name="Finish the account").click()
        await page.wait_for_url(f"{demonstration.events}/console/**")
    return seller._replace(starts=[])


async def seller_shots(chromium: Browser, organizer: SheetOrganizer, demonstration: Demonstration) -> list[Shot]:
    """Sales, check-in verdicts and requests of agents."""
    sold = await organizer.event(
        "Harbour jazz night", 21, pricing_mode="dynamic", price=1000, min_price=1000, max_price=2400, capacity=12
    )
    for number in range(8):
        person = {"event_id": sold["id"], "email": f"guest-{number}@example.net", "amount_paid": 1000 + 120 * number}
        await organizer.ask("POST", "/api/registrations", {"registration": person})
    buyers = [f"{name}@example.net" for name in ("mira", "jonas", "ada")]
    for email in buyers:
        await pay(chromium, await organizer.send_form(sold, email, email.partition("@")[0].title()))
    await organizer.remove(sold, buyers[2])
    guests = [f"guest-{number}@example.net" for number in range(5)]
    codes = [await organizer.entrance_code(email) for email in guests]
    console = f"{demonstration.events}/console"
    event = f"{console}/events/{sold['id']}"
    people = await organizer.ask("GET", f"/api/registrations?event_id={sold['id']}")
    [buyer] = [row["user_id"] for row in people if row["email"] == buyers[0]]
    draft = await organizer.event("Secret supper", 33, published=False)
    return [
        Shot("event with sales", (event,)),
        Shot("event with sales, people", (f"{event}/registrations",)),
        Shot("event with sales, payments", (f"{event}/payments",)),
        Shot("a person who has paid", (f"{event}/registrations/{buyer}",)),
        Shot("payments of a person", (f"{event}/registrations/{buyer}/payments",)),
        Shot("draft, for its organizer", (f"{console}/events/{draft['id']}",)),
        Shot("e-mails, preview of a change", (f"{event}/mails",), preview("event_changed")),
        Shot("e-mails, preview of a refusal", (f"{event}/mails",), preview("refused")),
        Shot("new event, form with errors", (f"{console}/events/new",), send_empty_form),
        Shot("check-in, valid", (f"{event}/check-in",), scan(iter(codes[:4]))),
        Shot("check-in, already in", (f"{event}/check-in",), scan(repeat(codes[0]))),
        Shot("check-in, not on the list", (f"{event}/check-in",), scan(repeat("4F-7K3M9Q"))),
        Shot("an app asks for consent", (await consent_address(organizer, demonstration),)),
    ]


async def request_shots(
    chromium: Browser, organizer: SheetOrganizer, demonstration: Demonstration, seller: SheetVisitor, directory: Path
) -> list[Shot]:
    """What an agent wants to do, which the organizer has to approve."""
    key = await organizer.ask("POST", "/api/keys", {"api_key": {"name": "Claude"}})
    limit = f"{demonstration.events}/console/agents/limit?key={key['id']}"
    async with await signed_in(chromium, seller, "light", DESKTOP, "en") as context:
        page = await context.new_page()
        await page.goto(limit)
        await page.locator("input[name=asks_first]").check()
        await page.locator("input[name=mails_requests]").check()
        await submit(page.locator("form:has(input[name=asks_first]) button").first)
    request_id = await organizer.request_by(key["key"], "Summer ball")
    mail = await organizer.mails.find(EMAIL, lambda mail: "sign in" not in str(mail["Subject"]).lower())
    return [
        Shot("limits of an agent", (limit,)),
        Shot("agents with a request", (f"{demonstration.events}/console/agents",)),
        Shot("a request of an agent", (f"{demonstration.events}/console/agents/requests/{request_id}",)),
        Shot(
            "mail, request of an agent", (await asyncio.to_thread(store_mail, mail, directory / "mails", "request-en"),)
        ),
    ]


async def consent_address(organizer: SheetOrganizer, demonstration: Demonstration) -> str:
    """The address that a new app opens in the browser."""
    callback = "http://localhost:9/callback"
    client_id = await organizer.register_app("Claude", callback)
    query = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": callback,
        "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
        "code_challenge_method": "S256",
        "scope": "read_events write_events",
        "state": "xyz",
        "resource": f"{demonstration.events}/mcp",
    }
    return f"{demonstration.events}/oauth/authorize?{urlencode(query)}"


def scan(codes: Iterator[str]) -> Callable[[Page], Awaitable[None]]:
    """Type the next code at the check-in."""

    async def type_code(page: Page) -> None:
        await page.locator("body[data-kept]").wait_for(state="attached", timeout=15_000)
        await page.locator("#text").fill(next(codes))
        await page.locator("#text").press("Enter")
        await page.locator("#verdict [data-says]:not([data-says=asking])").first.wait_for(timeout=15_000)

    return type_code


async def send_empty_form(page: Page) -> None:
    await submit(page.locator("main form.form button.button:not(.secondary)").last)
    await page.wait_for_load_state()


def preview(kind: str) -> Callable[[Page], Awaitable[None]]:
    """Look at a mail before it is sent."""

    async def press(page: Page) -> None:
        await page.locator(f"#of-{kind} summary").first.click()
        await submit(page.locator(f"button[name=preview][value={kind}]"))
        await page.wait_for_load_state()

    return press
