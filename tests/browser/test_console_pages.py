"""The console's keys, apps, queues and mails in Chromium: accessible, in every width, and without JavaScript."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, expect

from holdfast.accounts import sessions
from holdfast.events.settings import Settings
from tests.browser.looking import (
    open_boxes,
    open_context,
    parametrize_looks,
    session_cookie,
    submit,
    too_wide,
    violations,
)
from tests.browser.page_costs import measure_page
from tests.browser.registering import Watch
from tests.browser.visitors import PHONE
from tests.events.oauth_server.oauth_server_scene import VERIFIER, register_client, sign_in_person
from tests.helpers.events_service import Client, Service
from tests.helpers.serving import serve_events

LONG = "W" * 60 + " \u0627\u0644\u062a\u0637\u0628\u064a\u0642"


@dataclass
class ConsoleScene:
    """The service behind a port, and an organizer with a key, an app, queues and mails."""

    service: Service
    base_url: str
    ada: Client
    queue: int
    app: str

    async def enter(self, context: BrowserContext, account_id: int = 0) -> None:
        """Sign the organizer in, or another person."""
        id = account_id or self.ada.id
        secret = await self.service.database.transact(lambda tx: sessions.begin(tx, id, "link", LONG))
        await context.add_cookies([session_cookie(self.base_url, secret)])


@pytest_asyncio.fixture(loop_scope="session")
async def office(settings: Settings) -> AsyncIterator[ConsoleScene]:
    async with serve_events(settings, oauth_builtin=True, stripe_key="sk_test") as service:
        ada = await service.organizer()
        person = await sign_in_person(service, ada.id)
        app = await register_client(service, client_name=LONG)
        answer = await person.allow(app.query())
        assert (await app.redeem(answer["code"], code_verifier=VERIFIER)).status_code == 200
        await ada.post("/api/keys", {"api_key": {"name": LONG}})
        event = await ada.create_event(title=LONG)
        for name in ("ann", "bob"):
            await ada.register(event["id"], email=f"{name}@{'w' * 60}.example")
        await service.settle()
        await service.run_sql(
            "update mails set outcome = 'failed', ended_at = now(), error = %(error)s where recipient like 'bob@%%'",
            error="550 " + "w" * 100,
        )
        await service.run_sql(PAID, event=event["id"])
        queue = await ada.create_queue(title=LONG, target_url=f"https://shop.example/{'w' * 90}", max_queue_size=500)
        for number in range(40):
            await ada.post(f"/api/queues/{queue['id']}/join", {"visitor_id": f"visitor {number}"})
        await service.run_sql(
            "update queue_visitors set joined_at = now() - interval '29 minutes' + ticket * interval '5 seconds'"
        )
        await service.run_sql(
            """
            with released as (
                insert into queue_releases (queue_id, first_ticket, last_ticket, released_at)
                select %(id)s, n, n, now() - (21 - n) * interval '80 seconds' from generate_series(1, 20) as n)
            update queues set serving = 20 where id = %(id)s
            """,
            id=queue["id"],
        )
        yield ConsoleScene(service, service.base_url, ada, queue["id"], app.id)


PAID = """
    with account as (
        insert into payout_accounts (organizer_id, account_id)
        select organizer_id, 'acct_' || repeat('w', 40) from events where id = %(event)s),
    registration as (
        update registrations set amount_due = 120000, amount_paid = 120000
         where event_id = %(event)s and user_id = (select id from users where email like 'ann@%%') returning *),
    payment as (
        insert into payments (event_id, user_id, arrival, amount, fee, currency, state, session_id, intent_id, paid_at,
                              ends_at)
        select event_id, user_id, arrival, 120000, 6000, 'EUR', 'paid', 'cs', 'pi_' || repeat('w', 40), now(), now()
          from registration returning id)
    insert into refunds (payment_id, amount, reason, state, error)
    select id, 500, 'by_organizer', 'refused', repeat('w', 200) from payment
"""


@parametrize_looks
async def test_the_question_whose_an_organizer_is_is_accessible_and_fits(
    chromium: Browser, office: ConsoleScene, scheme: Any, width: int, language: str
) -> None:
    await office.service.run_sql("update users set proved_at = null where id = %(id)s", id=office.ada.id)
    context = await open_context(chromium, scheme, width, language)
    await office.enter(context)
    page = await context.new_page()

    await page.goto(f"{office.base_url}/console")

    await expect(page.locator("form.form button")).to_have_count(2)
    assert await too_wide(page) == []
    assert await violations(page) == []


@parametrize_looks
async def test_pages_of_keys_apps_queues_and_mails_are_accessible_and_fit(
    chromium: Browser, office: ConsoleScene, scheme: Any, width: int, language: str
) -> None:
    context = await open_context(chromium, scheme, width, language)
    await office.enter(context)
    watch = Watch(context)
    page = await context.new_page()
    [(key,)] = await office.service.run_sql("select id from api_keys order by id limit 1")
    [(event, ann)] = await office.service.run_sql(
        "select event_id, public_id from registrations join users on users.id = user_id where email like 'ann@%%'"
    )

    for path in (
        "agents",
        "console/agents",
        "console/agents/done",
        f"console/agents/keys/{key}/revoke",
        f"console/agents/disconnect?app={office.app}",
        "console/queues",
        "console/queues/new",
        "console/queues/new?event=",
        "console/queues/new?site=",
        f"console/queues/{office.queue}",
        f"console/queues/{office.queue}/edit",
        f"console/queues/{office.queue}/delete",
        "console/look",
        "console/mails",
        "console/payouts",
        "console/payouts?organizer=another",
        *(f"console/events/{event}/registrations/{ann}{more}" for more in ("", "/payments")),
        f"console/events/{event}/payments",
        "account",
        "account/secure",
    ):
        await page.goto(f"{office.base_url}/{path}")
        assert await too_wide(page) == [], path
        assert await violations(page) == [], path
    for path in ("console/agents", "agents"):
        await page.goto(f"{office.base_url}/{path}")
        await open_boxes(page)
        assert await too_wide(page) == [], path
        assert await violations(page) == [], path
    await page.goto(f"{office.base_url}/console/agents")
    await open_boxes(page)
    await submit(page.get_by_role("button").last)
    assert await page.locator('[aria-invalid="true"]').count() == 1
    assert await violations(page) == []
    await page.locator("#name").fill(LONG)
    await page.locator("#name").press("Enter")
    await expect(page.locator("#key")).to_contain_text("hf_")
    assert await too_wide(page) == []
    assert await violations(page) == []
    await page.goto(f"{office.base_url}/account/secure")
    await page.locator("main button").click()
    await expect(page.locator('[data-state="secured"]')).to_be_visible()
    assert await violations(page) == []
    [(ann,)] = await office.service.run_sql("select id from users where email like 'ann@%%'")
    await office.enter(context, ann)
    for state in ("asking", "sent"):
        await page.goto(f"{office.base_url}/account/data")
        await office.service.run_sql("update sessions set began_at = now() - interval '2 hours'")
        if state == "sent":
            await page.locator("main button").click()
        await expect(page.locator(f'[data-state="{state}"]')).to_be_visible()
        assert await too_wide(page) == []
        assert await violations(page) == []
    assert watch.hosts == {office.base_url.partition("://")[2]}


async def test_keys_and_queues_are_managed_without_scripts(chromium: Browser, office: ConsoleScene) -> None:
    context = await chromium.new_context(java_script_enabled=False, locale="en-US")
    await office.enter(context)
    watch = Watch(context)
    page = await context.new_page()

    await page.goto(f"{office.base_url}/console/agents")
    await page.locator("summary", has_text="Create a key").click()
    await page.get_by_label("Name").fill("Ticket machine")
    await page.get_by_role("button", name="Create a key").click()
    secret = await page.locator("#key").text_content()
    await page.get_by_role("link", name="I have copied it").click()
    await page.get_by_role("link", name="Remove Ticket machine").click()
    await submit(page.get_by_role("button", name="Remove the key"))
    await page.get_by_role("link", name="Waiting rooms").click()
    await page.get_by_role("link", name="Create a waiting room").click()
    await page.get_by_role("link", name="Another site").click()
    await page.get_by_label("Title").fill("Spring sale")
    await page.get_by_label("Address of the site").fill("https://shop.example/sale")
    await page.get_by_text("More options").click()
    await page.get_by_label("Opens").fill("2090-05-01T10:00")
    await page.get_by_role("button", name="Create a waiting room").click()
    await expect(page.get_by_role("heading", name="Spring sale")).to_be_visible()
    await page.get_by_role("button", name="Pause").click()
    await expect(page.get_by_text("Nobody can join, and")).to_be_visible()
    await page.get_by_role("link", name="Edit").click()
    await page.get_by_label("Title").fill("Summer sale")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("heading", name="Summer sale")).to_be_visible()
    await page.get_by_role("link", name="Edit").click()
    await page.get_by_role("link", name="Delete the waiting room").click()
    await page.get_by_role("button", name="Delete the waiting room").click()

    await expect(page.get_by_role("link", name="Summer sale")).to_have_count(0)
    await office.service.wait_for_notices()
    assert secret
    assert (await Client(office.service.http, secret).get("/api/events")).status_code == 401
    assert watch.failures == []


async def test_the_chart_of_a_queue_follows_visitors_who_join_and_leave(
    chromium: Browser, office: ConsoleScene
) -> None:
    context = await chromium.new_context(locale="en-US")
    await office.enter(context)
    watch = Watch(context)
    page = await context.new_page()
    await page.goto(f"{office.base_url}/console/queues/{office.queue}")
    await expect(page.get_by_role("link", name="Reload")).to_be_hidden()
    waiting = page.locator("#picture dd strong").first
    await expect(waiting).to_have_text("20")

    await office.ada.post(f"/api/queues/{office.queue}/join", {"visitor_id": "one more"})
    await office.ada.patch(f"/api/queues/{office.queue}", {"queue_event": {"active": False}})

    await expect(waiting).to_have_text("21", timeout=15_000)
    await expect(page.get_by_text("Nobody can join, and")).to_be_visible()
    assert watch.failures == []


async def test_pages_of_the_console_move_little_while_they_load_on_a_slow_phone(
    chromium: Browser, office: ConsoleScene
) -> None:
    context = await chromium.new_context(viewport={"width": PHONE, "height": 900})
    await office.enter(context)

    shifts = {
        path: (await measure_page(context, office.base_url + path)).shift
        for path in ("/console", *(f"/console/events/1{tab}" for tab in ("", "/registrations", "/check-in", "/edit")))
    }

    assert {path: shift for path, shift in shifts.items() if shift >= 0.1} == {}
    await context.close()
