"""The pages of webhooks in Chromium: accessible, and in every width."""

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest_asyncio
from playwright.async_api import Browser

from holdfast.accounts import sessions
from holdfast.events.settings import Settings
from tests.browser.looking import open_context, parametrize_looks, session_cookie
from tests.browser.webhook_pages import faults_of_pages
from tests.helpers.serving import serve_events
from tests.helpers.webhook_programs import OrganizerProgram, OrganizerPrograms
from tests.helpers.webhook_receiver import ReceiverAnswer, receivers_of

LONG = "W" * 60 + " \u0627\u0644\u062a\u0637\u0628\u064a\u0642"


class WebhookScene(NamedTuple):
    """The service at an address, and a program that got messages, of which one failed."""

    base_url: str
    secret: str
    program: OrganizerProgram


@pytest_asyncio.fixture(loop_scope="session")
async def office(settings: Settings) -> AsyncIterator[WebhookScene]:
    async with (
        serve_events(settings) as service,
        receivers_of(service.database) as receivers,
    ):
        ada = await service.organizer()
        program = await OrganizerPrograms(service, receivers).add(
            ada, types=["event.created", "event.full", "event.cancelled"]
        )
        statuses = [204, 204, 500, 0]
        program.receiver.answer = lambda _: ReceiverAnswer(statuses.pop(0) if statuses else 204)
        for title in ("Jazz", "Portraits", LONG):
            await ada.create_event(title=title)
            await program.deliver()
        await program.pass_pauses()
        await program.deliver()
        await service.run_sql(
            "update webhook_endpoints set url = %(url)s", url=f"https://shop.example/{'w' * 90}?from=holdfast"
        )
        secret = await service.database.transact(lambda tx: sessions.begin(tx, ada.id, "link", "Firefox"))
        yield WebhookScene(service.base_url, secret, program)


@parametrize_looks
async def test_the_pages_of_webhooks_have_no_faults_of_accessibility_and_fit(
    office: WebhookScene, chromium: Browser, scheme: Any, width: int, language: str
) -> None:
    message = office.program.receiver.received[-1].id
    async with await open_context(chromium, scheme, width, language) as context:
        await context.add_cookies([session_cookie(office.base_url, office.secret)])
        page = await context.new_page()
        faults = await faults_of_pages(page, office.base_url, office.program.endpoint["id"], message)
        assert faults == {}
