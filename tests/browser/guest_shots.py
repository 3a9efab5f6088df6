"""Pages of the events service for people without an account: after a form, in a mail, in a waiting room."""

from collections.abc import Awaitable, Callable
from typing import Any

from playwright.async_api import Browser, Page

from tests.browser.demonstration import Demonstration
from tests.browser.looking import submit
from tests.browser.mail_shots import payment_of
from tests.browser.sheet_people import LANGUAGES, SheetOrganizer, in_days, per_look
from tests.browser.visitors import DESKTOP, SheetVisitor, Shot, remember, signed_in


async def open_guest(
    chromium: Browser, demonstration: Demonstration, organizer: SheetOrganizer, mails: list[Shot]
) -> SheetVisitor:
    """The visitor whose pages these are."""
    shots = [
        Shot("sign in, signed out", (f"{demonstration.events}/sign-in",)),
        Shot("sign in, no address", (f"{demonstration.events}/sign-in",), send_email("ann@example")),
        Shot("link was sent", (f"{demonstration.events}/sign-in/sent",)),
        Shot("link of another browser", (await organizer.mails.find_sign_in_link("organizer-en@example.org"),)),
        *await event_shots(organizer),
        *await registration_shots(chromium, organizer),
    ]
    guest = SheetVisitor("guest", [])
    return guest._replace(shots=(*shots, *await room_shots(chromium, organizer, demonstration, guest), *mails))


async def event_shots(organizer: SheetOrganizer) -> list[Shot]:
    """Events in each of their statuses."""
    cancelled = await organizer.event("Winter market", 25)
    await organizer.ask("DELETE", f"/api/events/{cancelled['id']}")
    past = await organizer.event("Harbour walk", 0.0002)
    drawn = await organizer.event("Kiln opening", 30, capacity=2, opens_at=in_days(3))
    moving = await organizer.event(
        "Jazz night", 21, pricing_mode="dynamic", price=1200, min_price=1000, max_price=2400, capacity=40
    )
    full = await organizer.event("Breakfast at sea", 12, capacity=1)
    await organizer.send_form(full, "first@example.net")
    await organizer.mails.find("first@example.net")
    return [
        Shot("event, cancelled", (cancelled["public_url"],)),
        Shot("event, past", (past["public_url"],)),
        Shot("event, places are drawn", (drawn["public_url"],)),
        Shot("event, price moves", (moving["public_url"],)),
        Shot("event, full, no waiting list", (full["public_url"],)),
        Shot("event, form with an error", (moving["public_url"],), send_email("ann@example")),
        Shot("embedded form, alone", (moving["embed_url"],)),
        Shot("embedded form with an error", (moving["embed_url"],), send_email("")),
    ]


async def registration_shots(chromium: Browser, organizer: SheetOrganizer) -> list[Shot]:
    """What people see after they have registered, until they have passed their seat on."""
    free = await organizer.event("Open rehearsal", 14, waitinglist_capacity=10)
    seats = [await organizer.send_form(free, f"seat-{n}@example.net", "Kim Berg", LANGUAGES[n]) for n in (0, 1)]
    full = await organizer.event("Wine tasting", 16, capacity=6, waitinglist_capacity=10)
    for number in range(14):
        await organizer.send_form(full, f"taster-{number}@example.net")
    passing = [await organizer.own_page(f"taster-{number}@example.net") for number in range(6)]
    small = await organizer.event("Sourdough workshop", 17, capacity=1, waitinglist_capacity=10)
    await organizer.send_form(small, "baker@example.net")
    await organizer.mails.find("baker@example.net")
    waits = [await organizer.send_form(small, f"waits-{n}@example.net", "", LANGUAGES[n]) for n in (0, 1)]
    waiting = [await organizer.own_page(f"waits-{number}@example.net") for number in (0, 1)]
    paid = await organizer.event("Chamber concert", 20, pricing_mode="fixed", price=1850, capacity=20)
    holds = [await organizer.send_form(paid, f"buyer-{n}@example.net", "Kim Berg", LANGUAGES[n]) for n in (0, 1)]
    drawn = await organizer.event("Pottery raffle", 40, capacity=2, opens_at=in_days(5))
    entries = [await organizer.send_form(drawn, f"draw-{n}@example.net", "", LANGUAGES[n]) for n in (0, 1)]
    ticket = await organizer.own_page("seat-0@example.net")
    async with await chromium.new_context() as context:
        page = await context.new_page()
        await page.goto(passing[4])
        await pass_on(page)
        await page.goto(holds[0])
        payment = await payment_of(page)
    return [
        Shot("after registering", per_look(seats)),
        Shot("after registering, wrong address", per_look(seats), correct_address),
        Shot("already registered", (free["public_url"],), send_email("seat-0@example.net")),
        Shot("on the waiting list", per_look(waits)),
        Shot("in the draw", per_look(entries)),
        Shot("a seat is held, to be paid", per_look(holds)),
        Shot("page of the payment processor", (payment,)),
        Shot("ticket", (ticket,)),
        Shot("own place on the waiting list", per_look(waiting)),
        Shot("pass my seat on", (f"{passing[5]}/cancel",)),
        Shot("pass my seat on, 30 seconds", tuple(passing[:4]), pass_on),
        Shot("somebody else has it now", (passing[4],)),
        Shot("leave the waiting list", (f"{waiting[0]}/cancel",)),
        Shot("stop e-mails about a registration", (f"{ticket}/unsubscribe",)),
        Shot("own data, ask for a link", (f"{ticket}/data",)),
        Shot("a link that is no link", (f"{ticket[:-4]}0000",)),
    ]


async def room_shots(
    chromium: Browser, organizer: SheetOrganizer, demonstration: Demonstration, guest: SheetVisitor
) -> list[Shot]:
    """Waiting rooms, which know the visitor by a cookie."""
    rush = await organizer.event("Ticket rush", 50)
    other = await organizer.event("Early birds", 51)
    room = {"title": "Ticket rush", "token_ttl_minutes": 10, "target_url": "https://shop.example.com"}
    line = await _queue(organizer, **room, release_rate=1, description="Two hundred tickets, one each.")
    paused = await _queue(organizer, **room, release_rate=1)
    open_room = await _queue(
        organizer, title="Ticket rush", token_ttl_minutes=10, event_id=rush["id"], release_rate=600
    )
    full = await _queue(organizer, **room, release_rate=1, max_queue_size=2, starts_at=in_days(0.1))
    before = await _queue(organizer, **room, release_rate=5, starts_at=in_days(0.1))
    drawn = await _queue(organizer, **room, release_rate=5, draw_at=in_days(0.2))
    ended = await _queue(organizer, **room, release_rate=5, ends_at=in_days(0.0002))
    sold = await organizer.event("Last tickets", 52)
    over = await _queue(
        organizer,
        title="Last tickets",
        token_ttl_minutes=10,
        event_id=sold["id"],
        release_rate=1,
        ends_at=in_days(0.0002),
    )
    guarded = await _queue(organizer, title="Early birds", token_ttl_minutes=10, event_id=other["id"], release_rate=1)
    for queue, count in ((line, 20), (paused, 8), (full, 2), (guarded, 12)):
        for number in range(count):
            await organizer.ask("POST", f"/api/queues/{queue['id']}/join", {"visitor_id": f"visitor-{number}"})
    context = await signed_in(chromium, guest, "light", DESKTOP, "en")
    page = await context.new_page()
    for queue in (line, paused, open_room, drawn, guarded):
        await page.goto(f"{demonstration.events}/queues/{queue['id']}")
        await arrive(page)
    await organizer.ask("PATCH", f"/api/queues/{paused['id']}", {"queue_event": {"active": False}})
    await remember(guest, context)
    return [
        *(
            Shot(f"waiting room, {status}", (f"{demonstration.events}/queues/{queue['id']}",), arrive)
            for status, queue in {
                "in line": line,
                "paused": paused,
                "your turn": open_room,
                "full": full,
                "before it opens": before,
                "in the draw": drawn,
                "ended": ended,
                "ended, before an event": over,
            }.items()
        ),
        Shot("event behind a waiting room", (other["public_url"],)),
        Shot("event behind a waiting room that has ended", (sold["public_url"],)),
    ]


async def _queue(organizer: SheetOrganizer, **fields: Any) -> Any:
    return await organizer.ask("POST", "/api/queues", {"queue_event": fields})


def send_email(email: str) -> Callable[[Page], Awaitable[None]]:
    """Fill in the first field of a form, and send it."""

    async def send(page: Page) -> None:
        await page.locator("#email").fill(email)
        async with page.expect_event("framenavigated"):
            await page.locator("#email").press("Enter")
        await page.wait_for_load_state()

    return send


async def arrive(page: Page) -> None:
    """Wait until a waiting room has said how it stands, or has led to the event."""
    await page.locator("main:not([data-state=arriving])").wait_for(timeout=30_000)


async def pass_on(page: Page) -> None:
    """Press the button that gives a seat away."""
    if not page.url.endswith("/cancel"):
        await page.goto(f"{page.url.partition('?')[0]}/cancel")
    await submit(page.locator("main form button"))
    await page.wait_for_load_state()


async def correct_address(page: Page) -> None:
    """Enter an address that is none where a wrong one is corrected, as long as it can be."""
    await page.locator("#address summary").click()
    if await page.locator("#email").count():
        await send_email("kim@example")(page)
