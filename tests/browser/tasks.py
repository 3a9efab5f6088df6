"""Does what people come for on a real `holdfast up`, and prints clicks, fields and seconds: `make tasks`.

Each task begins where the person stands who has it: at home in a console, on a page of an event, in the admin of a
shop. Before each click a picture of the page is stored in a folder of the task, to be read without the code.
"""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import httpx2
from playwright.async_api import Browser, BrowserContext, Error, Page, expect

from tests.browser.agent_program import AgentProgram
from tests.browser.conftest import launch_chromium
from tests.browser.demonstration import Demonstration, SentMails, run_demonstration
from tests.browser.person import Person
from tests.browser.sheet_people import SheetOrganizer
from tests.browser.visitors import DESKTOP, PHONE, SheetVisitor, signed_in
from tests.helpers.outside_servers import outside_server, raw_answer
from tests.helpers.pictures import picture

SOON = 60_000
"""Milliseconds for what the background does."""

MAX_SECONDS = 120
"""The most seconds that a task may take, by the clock."""

BEGINS = "2036-07-12T19:30"
BEGINS_KEYS = len("071220360730p")
"""A moment, and how many keys type it."""

HEAD = "| task | clicks | fields | seconds of a person |"


class TaskScene(NamedTuple):
    """The browser, and the demonstration with its organizer."""

    chromium: Browser
    demonstration: Demonstration
    demo: SheetOrganizer

    async def organizer(self, width: int = DESKTOP) -> BrowserContext:
        """The browser of the demo's organizer."""
        return await signed_in(
            self.chromium,
            SheetVisitor("demo", [], links=(self.demonstration.links["organizer"],)),
            "light",
            width,
            "en",
        )

    async def newcomer(self, name: str) -> BrowserContext:
        """The browser of an organizer who has just come, and has nothing yet."""
        mailed = (f"{self.demonstration.events}/sign-in", self.demonstration.mails, f"{name}@example.com")
        return await signed_in(
            self.chromium, SheetVisitor(name, [f"{self.demonstration.events}/account"], mailed), "light", DESKTOP, "en"
        )

    async def home(self, context: BrowserContext) -> Page:
        page = await context.new_page()
        page.set_default_timeout(15_000)
        await page.goto(f"{self.demonstration.events}/console")
        return page


async def fill_event(page: Page, person: Person, price: str = "") -> None:
    """Enter what an event with a photo needs."""
    await person.click(page.get_by_role("link", name="New event").first)
    await person.enter(page.get_by_label("Title"), "Pottery evening")
    await person.enter(page.get_by_label("Date and time"), BEGINS, keys=BEGINS_KEYS)
    await person.enter(page.get_by_label("Place", exact=True), "Studio 4")
    await person.enter(page.get_by_role("textbox", name="Seats", exact=True), "12")
    if price:
        await person.enter(page.get_by_role("textbox", name="Price", exact=True), price)
    await person.choose_file(page.get_by_label("Add photos"), "clay.jpg", picture())
    await person.enter(page.get_by_label("Description"), "We make cups. Bring an apron.")
    await person.click(page.get_by_role("button", name="Publish", exact=True))


async def publish(scene: TaskScene, person: Person) -> None:
    """Publish an event with a photo"""
    page = await scene.home(await scene.newcomer("publisher"))
    await fill_event(page, person)
    await expect(page.get_by_role("heading", name="Pottery evening")).to_be_visible()
    await person.see(page)


async def publish_paid(scene: TaskScene, person: Person) -> None:
    """Publish a paid event, from an empty console"""
    page = await scene.home(await scene.newcomer("seller"))
    await fill_event(page, person, "12.50")
    await expect(page.get_by_role("heading", name="Nobody can pay you yet")).to_be_visible()
    await person.click(page.get_by_role("button", name="Connect payouts"))
    await person.click(page.get_by_role("button", name="Finish the account"))
    await expect(page.get_by_text("Payouts are connected: people can pay you.")).to_be_visible()
    await person.click(page.get_by_role("button", name="Publish", exact=True))
    await expect(page.get_by_text("Open", exact=True)).to_be_visible()
    await person.see(page)


async def find_unpaid(scene: TaskScene, person: Person) -> None:
    """Find who has not paid"""
    event = await scene.demo.event("Wine tasting", 30, pricing_mode="fixed", price=2500)
    for name, amount in (("ann", 2500), ("bob", 0), ("cleo", 2500)):
        registration = {"event_id": event["id"], "email": f"{name}@example.com", "amount_paid": amount}
        await scene.demo.ask("POST", "/api/registrations", {"registration": registration})
    page = await scene.home(await scene.organizer())
    await person.click(page.get_by_role("link", name="Wine tasting"))
    await person.click(page.get_by_role("link", name="Registrations", exact=True))
    await person.click(page.get_by_role("link", name="Not paid"))
    await expect(page.get_by_role("row").nth(1)).to_contain_text("bob@example.com")
    await person.see(page)


async def let_in_by_name(scene: TaskScene, person: Person) -> None:
    """Let a person in at the door who has no code"""
    event = await scene.demo.event("Book club", 30)
    registration = {"event_id": event["id"], "email": "dora@example.com"}
    await scene.demo.ask("POST", "/api/registrations", {"registration": registration})
    page = await scene.home(await scene.organizer())
    await person.click(page.get_by_role("link", name="Book club"))
    await person.click(page.get_by_role("link", name="Check-in", exact=True))
    await person.enter(page.get_by_label("Address or name"), "dora")
    await person.press(page.get_by_label("Address or name"), "Enter")
    await person.click(page.get_by_role("button", name="Check in dora"))
    await expect(page.locator("#verdict")).to_contain_text("Valid")
    await person.see(page)


async def first_check_in(scene: TaskScene, person: Person) -> None:
    """Check the first guest in on a new phone, by the code"""
    event = await scene.demo.event("Night market", 30)
    guest = await (await scene.chromium.new_context(locale="en-US")).new_page()
    await guest.goto(event["public_url"])
    await guest.get_by_label("E-mail address").fill("eve@example.com")
    await guest.get_by_role("button", name="Register").click()
    code = await guest.locator(".ticket .code").inner_text(timeout=SOON)
    page = await scene.home(await scene.organizer(PHONE))
    await person.click(page.get_by_role("link", name="Night market"))
    await person.click(page.get_by_role("link", name="Check-in", exact=True))
    await person.enter(page.locator("#text"), code)
    await person.press(page.locator("#text"), "Enter")
    await expect(page.locator("#verdict")).to_contain_text("Valid")
    await person.see(page)


async def embed(scene: TaskScene, person: Person) -> None:
    """Put the form into an organizer's own site"""
    event = await scene.demo.event("Open rehearsal", 30)
    context = await scene.organizer()
    await context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = await scene.home(context)
    await person.click(page.get_by_role("link", name="Open rehearsal"))
    await person.click(page.get_by_role("link", name="Put the form on your site"))
    await person.click(page.locator("button[data-copies=share-code]"))
    await expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert f"/events/{event['id']}/embed" in await page.evaluate("navigator.clipboard.readText()")
    await person.see(page)


async def make_waiting_room(scene: TaskScene, person: Person) -> None:
    """Put a waiting room before an organizer's own event"""
    await scene.demo.event("Ticket rush", 30)
    page = await scene.home(await scene.organizer())
    await person.click(page.get_by_role("link", name="Ticket rush"))
    await person.click(page.get_by_role("link", name="Create a waiting room"))
    await person.click(page.get_by_role("button", name="Create a waiting room"))
    await expect(page.get_by_text("For your event")).to_be_visible()
    await person.see(page)


async def connect_agent(scene: TaskScene, person: Person) -> None:
    """Connect an agent from nothing, the official MCP client"""
    context = await scene.newcomer("commander")
    page = await scene.home(context)
    await person.click(page.get_by_role("link", name="Agents").first)
    await person.click(page.locator(".client summary", has_text="Another agent"))
    await expect(page.get_by_text("Add one, and paste the address.")).to_be_visible()
    await person.click(page.locator("button[data-copies=mcp-address]"))
    address = await page.locator("#mcp-address").inner_text()
    back = raw_answer(
        "200 OK\r\nContent-Type: text/html\r\nContent-Length: 35", b"<!doctype html><title>Done</title>\n"
    )
    async with outside_server(back) as program:
        # The agent opens its pages beside the page that the person reads.
        agent = TaskAgent(await context.new_page(), address, f"http://localhost:{program.port}/callback")
        agent.person = person
        await agent.call("list_events", {})
    await person.click(page.get_by_role("link", name="Check again"))
    await expect(page.get_by_role("heading", name="Mira")).to_be_visible()
    await person.see(page)


class TaskAgent(AgentProgram):
    """The official client, for which a person allows what it asks for."""

    person: Person

    async def allow(self, page: Page) -> None:
        await self.person.click(page.get_by_role("button", name="Allow"))


async def replay(scene: TaskScene, person: Person) -> None:
    """First run of a merchant: see the last 30 days with pools"""
    page = await in_shop(scene)
    frame = page.frame_locator("iframe")
    await person.click(page.get_by_role("button", name="Install"))
    await person.click(frame.locator("a[href*='/console/suggestions']").first)
    await person.click(frame.locator(".replay-first button"))
    await expect(frame.locator(".level")).to_be_visible(timeout=SOON)
    await person.see(page)
    await person.click(frame.get_by_role("link", name="Make these pools"))
    await expect(frame.locator("img.product").first).to_be_visible()
    await person.see(page)


async def make_pools(scene: TaskScene, person: Person) -> None:
    """Make three pools from imported products"""
    page = await in_shop(scene)
    frame = page.frame_locator("iframe")
    await person.click(frame.get_by_role("link", name="Make from products"))
    for name in ("Beeswax candles", "Honey mustard · 200 ml", "Lavender soap"):
        await person.click(frame.get_by_role("button", name=f"Make this pool {name}"))
        await expect(page.get_by_role("status")).to_have_text(f"{name} is a pool now.")
    await person.see(page)


async def find_sale(scene: TaskScene, person: Person) -> None:
    """Find out who took the last six jars"""
    shop = await scene.chromium.new_context(locale="en-US")
    storefront = await shop.new_page()
    await storefront.goto(scene.demonstration.links["demo shop"])
    await storefront.get_by_role("button", name="Sell one 6-pack").first.click()
    page = await in_shop(scene)
    frame = page.frame_locator("iframe")
    await person.click(frame.get_by_role("link", name="Honey jars", exact=True))
    await expect(frame.locator("#entries li").first).to_contain_text("took 6 units", timeout=SOON)
    await person.see(page)


async def in_shop(scene: TaskScene) -> Page:
    """The app in the admin of the demo's shop."""
    context = await scene.chromium.new_context(
        locale="en-US", viewport={"width": DESKTOP, "height": 900}, reduced_motion="reduce"
    )
    page = await context.new_page()
    await page.goto(scene.demonstration.links["merchant"])
    return page


Task = Callable[[TaskScene, Person], Awaitable[None]]

MAX_CLICKS: dict[Task, int] = {
    publish: 10,
    publish_paid: 14,
    find_unpaid: 3,
    let_in_by_name: 4,
    first_check_in: 3,
    embed: 3,
    make_waiting_room: 3,
    connect_agent: 5,
    replay: 4,
    make_pools: 4,
    find_sale: 1,
}
"""The tasks, and the most clicks of each. Those in the demo's shop follow each other in this order."""


class Outcome(NamedTuple):
    """What a task took, and why it could not be done, if so."""

    task: Task
    person: Person
    fault: Exception | None

    def __str__(self) -> str:
        counts = f"{self.person.clicks} | {self.person.fields} | {self.person.seconds:.0f}"
        return f"| {self.task.__doc__} | {'stopped' if self.fault else counts} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?", type=Path, default=Path("tasks"), help="where the pictures are written")
    parser.add_argument("--only", default="", help="do only the tasks whose name has this text")
    arguments = parser.parse_args()
    with run_demonstration() as demonstration:
        outcomes = asyncio.run(do_tasks(demonstration, arguments.directory, arguments.only))
    print(HEAD, "|---|---|---|---|", *outcomes, sep="\n")
    faults = [f"{outcome.task.__name__}: {outcome.fault}" for outcome in outcomes if outcome.fault]
    sys.exit("\n".join(faults))


async def do_tasks(demonstration: Demonstration, directory: Path, only: str = "") -> list[Outcome]:
    """Do the tasks with what `holdfast up` has started. The last page of one that stops is in `stopped.png`."""
    headers = {"X-API-Key": demonstration.organizer_key}
    async with (
        httpx2.AsyncClient(base_url=demonstration.events, headers=headers, timeout=60, trust_env=False) as http,
        launch_chromium() as chromium,
    ):
        scene = TaskScene(chromium, demonstration, SheetOrganizer(http, SentMails(demonstration.mails)))
        chosen = [task for task in MAX_CLICKS if only in task.__name__]
        return [await do_task(scene, task, directory / task.__name__) for task in chosen]


async def do_task(scene: TaskScene, task: Task, pictures: Path) -> Outcome:
    await asyncio.to_thread(pictures.mkdir, parents=True, exist_ok=True)
    person, fault = Person(pictures), None
    try:
        await asyncio.wait_for(task(scene, person), MAX_SECONDS)
    except (Error, AssertionError, TimeoutError) as error:
        fault = error
        for page in [page for context in scene.chromium.contexts for page in context.pages]:
            await page.screenshot(path=pictures / "stopped.png")
    for context in scene.chromium.contexts:
        await context.close()
    return Outcome(task, person, fault)


if __name__ == "__main__":
    main()
