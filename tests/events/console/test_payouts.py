"""The page of payouts: an account is connected, and the rule for cancellations is changed; never those of others."""

import re

import httpx2
import pytest

from tests.events.console.organizer_scene import hidden_field
from tests.events.console.organizing import sign_in_by_link
from tests.helpers.event_visitor import page_text
from tests.helpers.events_service import Service
from tests.helpers.payments import PaymentScene

PAYOUTS = "/console/payouts"


async def rules(service: Service) -> list[tuple[object, ...]]:
    return await service.run_sql("select organizer_id, refund_days from payout_accounts order by organizer_id")


async def test_an_account_is_connected_from_the_console(payment_scene: PaymentScene) -> None:
    _, browser = await sign_in_by_link(payment_scene.service)
    assert "Nobody can pay for your events yet" in page_text(await browser.get(PAYOUTS))

    link = await browser.send(PAYOUTS, f"{PAYOUTS}/connect")

    # Not a redirect: browsers let no form of ours lead to another site.
    assert link.status_code == 200
    [opened, linked] = re.findall(r'(?:content="0; url=|class="button" href=")([^"]+)"', link.text)
    assert opened == linked
    assert opened.startswith(payment_scene.processor.address)
    assert "still needs something from you" in page_text(await browser.get(PAYOUTS))
    payment_scene.processor.finish(payment_scene.processor.things("account")[0]["id"])
    await payment_scene.deliver()
    page = page_text(await browser.get(PAYOUTS))
    assert "People can pay for your events" in page
    assert "The platform keeps 5% of each payment" in page


async def test_the_way_to_the_processor_leads_back_to_the_event_that_is_to_be_published(
    payment_scene: PaymentScene,
) -> None:
    ada, browser = await sign_in_by_link(payment_scene.service)
    draft = await ada.create_event(pricing_mode="fixed", price=1250, currency="EUR", published=False)
    path = f"/console/events/{draft['id']}"

    question = await browser.send(path, f"{path}/publication", do="publish")
    link = await browser.send(PAYOUTS, f"{PAYOUTS}/connect", event=str(draft["id"]))
    [account] = payment_scene.processor.things("account")
    [sent] = payment_scene.processor.things("account_link")
    early = await browser.get(f"{PAYOUTS}/return?event={draft['id']}")
    unfinished = page_text(await browser.get(early.headers["location"]))
    payment_scene.processor.finish(account["id"])
    back = await browser.get(f"{PAYOUTS}/return?event={draft['id']}")
    page = await browser.get(back.headers["location"])
    done = await browser.send(path, f"{path}/publication", do="publish")

    assert "Nobody can pay you yet" in page_text(question)
    assert f'name="event" value="{draft["id"]}"' in question.text
    assert (question.status_code, link.status_code) == (200, 200)
    assert sent["_return_url"].endswith(f"{PAYOUTS}/return?event={draft['id']}")
    assert "still needs something from you, or is checking what you gave" in unfinished
    assert back.headers["location"] == f"{path}?done=connected"
    assert "Payouts are connected: people can pay you." in page_text(page)
    assert 'value="publish">Publish' in page.text
    assert (done.status_code, done.headers["location"]) == (303, f"{path}?done=published")


async def test_a_refund_rule_changes_for_its_own_organizer_only(payment_scene: PaymentScene) -> None:
    ada, browser = await sign_in_by_link(payment_scene.service)
    bob, _ = await sign_in_by_link(payment_scene.service, "bob")
    for client in (ada, bob):
        await client.post("/api/stripe/onboarding_link")

    done = await browser.send(PAYOUTS, f"{PAYOUTS}/rule", refund_days="14")

    assert (done.status_code, done.headers["location"]) == (303, f"{PAYOUTS}?done=saved")
    assert "Saved." in page_text(await browser.get(done.headers["location"]))
    assert await rules(payment_scene.service) == [(ada.id, 14), (bob.id, 0)]
    assert 'value="14"' in (await browser.get(PAYOUTS)).text


@pytest.mark.parametrize("days", ["", "-1", "3651", "1.5", "many", "9" * 40])
async def test_an_invalid_refund_rule_is_refused_beside_its_field(payment_scene: PaymentScene, days: str) -> None:
    ada, browser = await sign_in_by_link(payment_scene.service)
    await ada.post("/api/stripe/onboarding_link")

    refusal = await browser.send(PAYOUTS, f"{PAYOUTS}/rule", refund_days=days)

    assert refusal.status_code == 422
    assert 'aria-invalid="true"' in refusal.text
    assert await rules(payment_scene.service) == [(ada.id, 0)]


async def test_a_refund_rule_cannot_be_set_before_a_payout_account_exists(payment_scene: PaymentScene) -> None:
    _, browser = await sign_in_by_link(payment_scene.service)
    assert (await browser.send(PAYOUTS, f"{PAYOUTS}/rule", refund_days="14")).status_code == 404


async def test_the_page_of_payouts_says_that_no_processor_is_set_up(service: Service) -> None:
    _, browser = await sign_in_by_link(service)

    assert "takes no payments yet" in page_text(await browser.get(PAYOUTS))

    keys_page = await browser.get("/console/agents")
    for path, more in (("connect", {}), ("confirm", {"account": "acct_1"}), ("rule", {"refund_days": "1"})):
        answer = await browser.http.post(f"{PAYOUTS}/{path}", data={"token": hidden_field(keys_page, "token"), **more})
        assert answer.status_code == 503
    assert (await browser.get(f"{PAYOUTS}/return")).status_code == 503


async def test_a_form_of_payouts_with_a_forged_token_changes_nothing(payment_scene: PaymentScene) -> None:
    ada, browser = await sign_in_by_link(payment_scene.service)
    await ada.post("/api/stripe/onboarding_link")

    answers: list[httpx2.Response] = [
        await browser.http.post(f"{PAYOUTS}/{path}", data={"token": "forged", "refund_days": "9"})
        for path in ("connect", "rule")
    ]

    assert [answer.status_code for answer in answers] == [403, 403]
    assert await rules(payment_scene.service) == [(ada.id, 0)]
