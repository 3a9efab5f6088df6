"""Onboarding: an organizer gets ready to be paid out."""

import httpx2

from holdfast.events.payments import returning
from holdfast.events.payments.demo.faults import Fault
from tests.events.payments.scene import Scene
from tests.support import Service


async def test_an_organizer_is_led_to_the_processor_and_is_ready_afterwards(shop: Scene) -> None:
    ada = await shop.service.organizer()
    event = await ada.create_event(pricing_mode="fixed", price=1200)
    assert event["payment"]["status"] == "unavailable"

    first = (await ada.post("/api/stripe/onboarding_link")).json()["data"]
    assert first["onboarding_complete"] is False
    async with httpx2.AsyncClient(trust_env=False) as browser:
        page = await browser.get(first["onboarding_url"])
        assert page.status_code == 200
    shop.processor.finish(first["stripe_account_id"])
    await shop.deliver()

    again = (await ada.post("/api/stripe/onboarding_link")).json()["data"]
    assert (again["stripe_account_id"], again["onboarding_complete"]) == (first["stripe_account_id"], True)
    assert again["onboarding_url"] != first["onboarding_url"]
    shown = (await ada.get(f"/api/events/{event['id']}")).json()["data"]
    assert (shown["payment"]["status"], shown["agent"]["hosted_registration_ready"]) == ("required", True)
    assert shown["agent"]["payment"] == shown["payment"]


async def test_a_platform_without_the_newer_accounts_makes_older_ones(shop: Scene) -> None:
    shop.processor.refuse_accounts_v2()
    ada = await shop.organizer()

    link = (await ada.post("/api/stripe/onboarding_link")).json()["data"]

    assert link["onboarding_complete"] is True
    assert [each["object"] for each in shop.processor.things("account")] == ["account"]


async def test_two_calls_at_once_make_one_account(shop: Scene) -> None:
    import asyncio

    ada = await shop.service.organizer()

    links = await asyncio.gather(*(ada.post("/api/stripe/onboarding_link") for _ in range(4)))

    made = {each.json()["data"]["stripe_account_id"] for each in links if each.status_code == 200}
    assert len(made) == 1


async def test_a_link_that_works_no_more_leads_to_a_new_one(shop: Scene) -> None:
    ada = await shop.service.organizer()
    await ada.post("/api/stripe/onboarding_link")
    path = returning.again_path(shop.service.database.resources.secret, ada.id)

    answer = await shop.service.http.get(path)
    assert (answer.status_code, answer.headers["location"].startswith(shop.processor.address)) == (303, True)

    forged = path[:-1] + ("0" if path[-1] != "0" else "1")
    assert (await shop.service.http.get(forged)).status_code == 404
    assert (await shop.service.http.get(returning.DONE)).status_code == 200


async def test_an_admin_key_has_no_payouts(shop: Scene) -> None:
    answer = await (await shop.service.admin()).post("/api/stripe/onboarding_link")
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


async def test_a_processor_that_is_away_is_told_as_such(shop: Scene) -> None:
    ada = await shop.service.organizer()
    shop.processor.plan(Fault("down", "/accounts", times=9))

    answer = await ada.post("/api/stripe/onboarding_link")

    assert (answer.status_code, answer.json()["code"]) == (503, "service_unavailable")
    assert answer.headers["retry-after"]


async def test_without_a_processor_nothing_else_is_affected(service: Service) -> None:
    ada = await service.organizer()

    answer = await ada.post("/api/stripe/onboarding_link")

    assert (answer.status_code, answer.json()["code"]) == (503, "payments_not_configured")
    assert (await ada.create_event())["payment"]["status"] == "not_required"
    again = returning.again_path(service.database.resources.secret, ada.id)
    assert (await service.http.get(again, headers={"Accept": "text/html"})).status_code == 503
    paid = await ada.create_event(pricing_mode="fixed", price=1200)
    assert paid["payment"]["status"] == "unavailable"
    page = await service.http.get(f"/events/{paid['id']}/embed", headers={"Accept": "text/html"})
    assert "cannot be paid here yet" in page.text
