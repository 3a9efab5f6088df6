"""An organizer connects an agent from nothing, in Chromium, by the steps of the page "Agents".

The agent is the official client. It gets the address that the page shows, and opens the page on which the organizer
allows it. Then it calls a tool, and the page tells what it did, with a way back.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest_asyncio
from playwright.async_api import Browser, expect

from holdfast.accounts import sessions
from holdfast.events.settings import Settings
from tests.browser.agent_program import AgentProgram
from tests.browser.looking import session_cookie
from tests.helpers.events_service import Client as Organizer
from tests.helpers.events_service import Service
from tests.helpers.outside_servers import outside_server, raw_answer
from tests.helpers.serving import serve_events


@dataclass
class ConnectionScene:
    """The service behind a port, with an organizer who has an event.

    callback    where the client waits for the browser
    """

    service: Service
    base_url: str
    ada: Organizer
    event: int
    callback: str


@pytest_asyncio.fixture(loop_scope="session")
async def scene(settings: Settings) -> AsyncIterator[ConnectionScene]:
    back = raw_answer(
        "200 OK\r\nContent-Type: text/html\r\nContent-Length: 35", b"<!doctype html><title>Done</title>\n"
    )
    async with serve_events(settings, oauth_builtin=True) as service, outside_server(back) as program:
        ada = await service.organizer()
        event = await ada.create_event(title="Jazz night")
        yield ConnectionScene(service, service.base_url, ada, event["id"], f"http://localhost:{program.port}/callback")


async def test_an_agent_is_connected_from_nothing_and_what_it_did_is_undone(
    chromium: Browser, scene: ConnectionScene
) -> None:
    context = await chromium.new_context()
    secret = await scene.service.database.transact(lambda tx: sessions.begin(tx, scene.ada.id, "link", "a test"))
    await context.add_cookies([session_cookie(scene.base_url, secret)])
    page = await context.new_page()
    await page.goto(f"{scene.base_url}/console")
    await page.get_by_role("link", name="Agents").first.click()

    # The organizer has a key already.
    await page.get_by_role("link", name="Connect another agent").click()
    await page.locator(".client summary", has_text="Another agent").click()
    await expect(page.get_by_text("Add one, and paste the address.")).to_be_visible()
    address = await page.locator("#mcp-address").inner_text()
    program = AgentProgram(page, address, scene.callback)
    await program.call("create_registration", {"event_id": scene.event, "email": "ben@example.com"})
    await scene.service.settle()

    await page.goto(f"{scene.base_url}/console/agents")
    card = page.locator("li.card", has=page.get_by_role("heading", name="Mira"))
    await expect(card).to_contain_text("Publish and change events, and register people.")
    line = page.locator(".timeline li").first
    await expect(line).to_contain_text("Mira registered ben@example.com for Jazz night")
    await line.get_by_role("link", name="Undo").click()
    await page.get_by_role("button", name="Remove the registration").click()
    await page.goto(f"{scene.base_url}/console/agents")
    await expect(page.locator(".timeline li").first).to_contain_text("was undone")

    await card.get_by_role("link", name="Remove").click()
    await page.get_by_role("button", name="Remove the app").click()
    await expect(page.get_by_role("heading", name="Mira")).to_have_count(0)


async def test_steps_can_be_read_without_scripts(chromium: Browser, scene: ConnectionScene) -> None:
    context = await chromium.new_context(java_script_enabled=False)
    page = await context.new_page()

    await page.goto(f"{scene.base_url}/agents")
    await page.locator("summary", has_text="Claude Code").click()

    await expect(page.locator("#claude-code-command")).to_contain_text(f"{scene.base_url}/mcp")
    await expect(page.locator("#mcp-address")).to_have_text(f"{scene.base_url}/mcp")
