"""Only the owner of an organizer's address, signed in by a mailed link, sets where its money goes."""

import re
from typing import Any

from holdfast_demo.stripe.accounts import LINK
from tests.helpers.event_visitor import page_text
from tests.helpers.events_service import Client
from tests.helpers.form_browser import Browser
from tests.helpers.payments import PaymentScene

PAYOUTS = "/console/payouts"
RETURN = "/console/payouts/return"
OWNER = "owner@example.com"


async def ask_for_link(client: Client) -> dict[str, Any]:
    return (await client.post("/api/stripe/onboarding_link")).json()["data"]


async def payment_status(client: Client, event_id: int) -> str:
    return (await client.get(f"/api/events/{event_id}")).json()["data"]["payment"]["status"]


async def connect(browser: Browser) -> str:
    """Press the button of the console. Returns where it leads."""
    page = await browser.send(PAYOUTS, f"{PAYOUTS}/connect")
    assert page.status_code == 200, page.text
    [address] = re.findall(r'class="button" href="([^"]+)"', page.text)
    return address


async def signed_in(payment_scene: PaymentScene, whose: str = "mine") -> Browser:
    """The owner, who has signed in by a link and said whose it is what was made before."""
    browser = Browser(payment_scene.service)
    await browser.sign_in(OWNER)
    await browser.send("/console/before", whose=whose)
    return browser


async def test_a_key_gets_a_page_of_ours_that_asks_for_sign_in(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.service.organizer(is_proved=False, email=OWNER)
    link = await ask_for_link(ada)

    base_url = payment_scene.service.database.resources.settings.base_url
    assert link["onboarding_url"] == f"{base_url}{PAYOUTS}?organizer={ada.slug}"
    led = await Browser(payment_scene.service).get(PAYOUTS)
    assert (led.status_code, led.headers["location"].startswith("/sign-in?")) == (303, True)

    browser = await signed_in(payment_scene)
    assert (await connect(browser)).startswith(payment_scene.processor.address)
    assert [account["id"] for account in payment_scene.processor.things("account")] == [link["stripe_account_id"]]


async def test_a_password_is_not_enough_for_payouts_before_the_address_is_proved(payment_scene: PaymentScene) -> None:
    password = "correct horse battery"
    await payment_scene.service.organizer(is_proved=False, email=OWNER, password=password)
    stranger = Browser(payment_scene.service)
    await stranger.send("/sign-in", email=OWNER, password=password)

    page = await stranger.get(PAYOUTS)
    refusal = await stranger.send(PAYOUTS, f"{PAYOUTS}/connect")

    assert "Sign in with a link" in page_text(page)
    assert f'action="{PAYOUTS}/connect"' not in page.text
    assert refusal.status_code == 403
    assert payment_scene.processor.address not in refusal.text
    assert payment_scene.processor.things("account") == []


async def test_a_password_is_not_enough_for_payouts_even_after_the_address_was_proved(
    payment_scene: PaymentScene,
) -> None:
    """The caller who made the organizer may have chosen it, and the owner has kept what was made."""
    password = "correct horse battery"
    await payment_scene.service.organizer(is_proved=False, email=OWNER, password=password)
    await connect(await signed_in(payment_scene))
    accounts = payment_scene.processor.things("account")
    stranger = Browser(payment_scene.service)
    await stranger.send("/sign-in", email=OWNER, password=password)

    page = await stranger.get(PAYOUTS)
    refusals = [
        await stranger.send(PAYOUTS, f"{PAYOUTS}/{path}", account=accounts[0]["id"]) for path in ("connect", "confirm")
    ]

    assert "Sign in with a link" in page_text(page)
    assert f'action="{PAYOUTS}/connect"' not in page.text
    assert [response.status_code for response in refusals] == [403, 403]
    assert payment_scene.processor.address not in refusals[0].text
    assert (await stranger.sign_in(OWNER, PAYOUTS)).headers["location"] == PAYOUTS
    assert (await connect(stranger)).startswith(payment_scene.processor.address)


async def test_the_page_of_payouts_names_their_organizer(payment_scene: PaymentScene) -> None:
    await payment_scene.service.organizer("Ada Events", email=OWNER, slug="ada-events")
    browser = Browser(payment_scene.service)
    await browser.sign_in(OWNER)

    page = await browser.get(PAYOUTS)

    assert "What people pay for the events of Ada Events goes to your bank account." in page_text(page)


async def test_the_link_of_one_organizer_connects_no_other(payment_scene: PaymentScene) -> None:
    meant = await payment_scene.service.organizer()
    await payment_scene.service.organizer("Ada Events", email=OWNER)
    browser = Browser(payment_scene.service)
    await browser.sign_in(OWNER)

    url = (await ask_for_link(meant))["onboarding_url"]
    page = await browser.get(url)

    assert "The link that you opened is for another organizer." in page_text(page)
    assert f'action="{PAYOUTS}/connect"' not in page.text


async def test_a_link_to_payouts_leads_through_sign_in_to_the_page_of_that_organizer(
    payment_scene: PaymentScene,
) -> None:
    ada = await payment_scene.service.organizer(email=OWNER)
    url = (await ask_for_link(ada))["onboarding_url"]

    led = (await Browser(payment_scene.service).get(url)).headers["location"]

    assert led == f"/sign-in?return_to=%2Fconsole%2Fpayouts%3Forganizer%3D{ada.slug}"


async def test_an_owner_who_says_not_mine_ends_the_payout_account_and_gets_a_new_one(
    payment_scene: PaymentScene,
) -> None:
    stranger = await payment_scene.service.organizer(is_proved=False, email=OWNER)
    event_id = await payment_scene.event(stranger)
    planted = (await ask_for_link(stranger))["stripe_account_id"]
    payment_scene.processor.finish(planted)
    await payment_scene.deliver()
    assert await payment_status(stranger, event_id) == "required"
    buyer = await payment_scene.register(event_id, "buyer@example.com")
    session = await buyer.session()

    browser = await signed_in(payment_scene, "not mine")
    await payment_scene.work()

    assert await payment_scene.service.run_sql("select account_id from payout_accounts") == []
    assert await payment_scene.service.run_sql(
        "select payouts_ready from users where email = %(email)s", email=OWNER
    ) == [(False,)]
    assert payment_scene.processor.execute("GET", f"/v1/checkout/sessions/{session}", {})["status"] == "expired"
    await browser.send("/console/start", name="Real Owner", slug="real-owner")
    await connect(browser)
    [(account_id,)] = await payment_scene.service.run_sql("select account_id from payout_accounts")
    assert account_id != planted


async def test_a_payout_account_made_before_the_proof_counts_only_when_its_owner_confirms_it(
    payment_scene: PaymentScene,
) -> None:
    ada = await payment_scene.service.organizer(is_proved=False, email=OWNER)
    event_id = await payment_scene.event(ada)
    known = (await ask_for_link(ada))["stripe_account_id"]
    await payment_scene.service.run_sql("update payout_accounts set is_confirmed = false")
    payment_scene.processor.finish(known)
    await payment_scene.deliver()
    assert await payment_status(ada, event_id) == "unavailable"
    assert (await ask_for_link(ada))["onboarding_complete"] is False

    browser = await signed_in(payment_scene)
    assert "Is the bank account of this account yours?" in page_text(await browser.get(PAYOUTS))
    await browser.send(PAYOUTS, f"{PAYOUTS}/confirm", account=known)

    assert "People can pay for your events" in page_text(await browser.get(PAYOUTS))
    assert await payment_status(ada, event_id) == "required"


async def test_only_the_owner_of_the_address_confirms_an_account(payment_scene: PaymentScene) -> None:
    password = "correct horse battery"
    ada = await payment_scene.service.organizer(is_proved=False, email=OWNER, password=password)
    known = (await ask_for_link(ada))["stripe_account_id"]
    await payment_scene.service.run_sql("update payout_accounts set is_confirmed = false")
    stranger = Browser(payment_scene.service)
    await stranger.send("/sign-in", email=OWNER, password=password)

    refusal = await stranger.send(PAYOUTS, f"{PAYOUTS}/confirm", account=known)

    assert refusal.status_code == 403
    assert await payment_scene.service.run_sql("select is_confirmed from payout_accounts") == [(False,)]


async def test_an_account_that_is_not_connected_any_more_is_not_confirmed(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.service.organizer(is_proved=False, email=OWNER)
    await ask_for_link(ada)
    browser = await signed_in(payment_scene)

    refusal = await browser.send(PAYOUTS, f"{PAYOUTS}/confirm", account="acct_other")

    assert refusal.status_code == 404
    assert await payment_scene.service.run_sql("select account_id from payout_accounts") != [("acct_other",)]


async def test_an_unconfirmed_payout_account_made_before_the_proof_is_replaced(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.service.organizer(is_proved=False, email=OWNER)
    planted = (await ask_for_link(ada))["stripe_account_id"]
    await payment_scene.service.run_sql("update payout_accounts set is_confirmed = false, refund_days = 14")
    payment_scene.processor.finish(planted)

    browser = await signed_in(payment_scene)
    await connect(browser)

    [(account_id, is_confirmed, refund_days)] = await payment_scene.service.run_sql(
        "select account_id, is_confirmed, refund_days from payout_accounts"
    )
    assert (account_id != planted, is_confirmed, refund_days) == (True, True, 14)
    assert "still needs something from you" in page_text(await browser.get(PAYOUTS))


async def test_the_old_address_that_renewed_an_onboarding_link_redirects_to_the_console(
    payment_scene: PaymentScene,
) -> None:
    ada = await payment_scene.service.organizer(is_proved=False, email=OWNER)
    await ask_for_link(ada)
    await payment_scene.service.run_sql("update payout_accounts set linked_at = now()")

    answer = await payment_scene.service.http.get(f"/payouts/again/{ada.id}-{'0' * 32}")
    browser = await signed_in(payment_scene)
    page = await connect(browser)

    assert (answer.status_code, answer.headers["location"]) == (303, PAYOUTS)
    [link] = [link for link in payment_scene.processor.things(LINK) if link["url"] == page]
    assert link["_refresh_url"].endswith(PAYOUTS)
    assert link["_return_url"].endswith(RETURN)
    assert (await Browser(payment_scene.service).get(RETURN)).headers["location"].startswith("/sign-in?")


async def test_an_owner_who_returns_from_the_processor_is_ready_without_a_webhook(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.service.organizer(is_proved=False, email=OWNER)
    event_id = await payment_scene.event(ada)
    browser = await signed_in(payment_scene)
    await connect(browser)
    payment_scene.processor.finish((await ask_for_link(ada))["stripe_account_id"])
    await payment_scene.service.run_sql("update users set payouts_ready = false")

    led = await browser.get(RETURN)

    assert led.headers["location"] == PAYOUTS
    assert "People can pay for your events" in page_text(await browser.get(PAYOUTS))
    assert await payment_status(ada, event_id) == "required"


async def test_a_payout_account_is_polled_less_often_the_longer_it_lasts(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.service.organizer(is_proved=False, email=OWNER)
    event_id = await payment_scene.event(ada)
    browser = await signed_in(payment_scene)
    await connect(browser)
    delays: list[tuple[object, ...]] = []
    for waited in ("1 minute", "4 hours", "20 days", "31 days"):
        await payment_scene.service.run_sql(
            f"update payout_accounts set due_at = now(), linked_at = now() - interval '{waited}'"
        )
        await payment_scene.work()
        delays += await payment_scene.service.run_sql(
            "select round(extract(epoch from due_at - now()) / 60)::integer from payout_accounts"
        )
    assert delays == [(1,), (60,), (1440,), (None,)]

    payment_scene.processor.finish((await ask_for_link(ada))["stripe_account_id"])
    await payment_scene.service.run_sql("update users set payouts_ready = false")
    await payment_scene.service.run_sql("update payout_accounts set due_at = now()")
    await payment_scene.work()
    await payment_scene.service.wait_for_notices()
    assert await payment_status(ada, event_id) == "required"
