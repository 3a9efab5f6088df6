"""Onboarding: an organizer gets ready to be paid out."""

import pytest

from holdfast_demo.stripe.errors import Fault
from tests.helpers.events_service import Service
from tests.helpers.payments import PaymentScene


async def test_an_organizer_is_ready_when_the_processor_is_content(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.service.organizer()
    event = await ada.create_event(pricing_mode="fixed", price=1200)
    assert event["payment"]["status"] == "unavailable"

    first = (await ada.post("/api/stripe/onboarding_link")).json()["data"]
    assert first["onboarding_complete"] is False
    payment_scene.processor.finish(first["stripe_account_id"])
    await payment_scene.deliver()

    again = (await ada.post("/api/stripe/onboarding_link")).json()["data"]
    assert (again["stripe_account_id"], again["onboarding_complete"]) == (first["stripe_account_id"], True)
    data = (await ada.get(f"/api/events/{event['id']}")).json()["data"]
    assert (data["payment"]["status"], data["agent"]["hosted_registration_ready"]) == ("required", True)
    assert data["agent"]["payment"] == data["payment"]


async def test_a_platform_without_accounts_of_version_2_makes_accounts_of_version_1(
    payment_scene: PaymentScene,
) -> None:
    payment_scene.processor.refuse_accounts_v2()
    ada = await payment_scene.organizer()

    link = (await ada.post("/api/stripe/onboarding_link")).json()["data"]

    assert link["onboarding_complete"] is True
    assert [account["object"] for account in payment_scene.processor.things("account")] == ["account"]


async def test_two_calls_at_once_make_one_account(payment_scene: PaymentScene) -> None:
    import asyncio

    ada = await payment_scene.service.organizer()

    links = await asyncio.gather(*(ada.post("/api/stripe/onboarding_link") for _ in range(4)))

    made = {link.json()["data"]["stripe_account_id"] for link in links if link.status_code == 200}
    assert len(made) == 1


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"", "application/json", 200),
        (b"{}", "application/json", 200),
        (b"", "application/x-www-form-urlencoded", 200),
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b'{"account": 1}', "application/json", 422),
        (b"a=b", "application/x-www-form-urlencoded", 415),
    ],
)
async def test_an_onboarding_request_takes_no_body_or_an_empty_object(
    payment_scene: PaymentScene, content: bytes, kind: str, status: int
) -> None:
    ada = await payment_scene.service.organizer()

    answer = await ada.http.post(
        "/api/stripe/onboarding_link",
        content=content,
        headers={"Authorization": f"Bearer {ada.key}", "Content-Type": kind},
    )

    assert answer.status_code == status, answer.text


async def test_an_admin_cannot_be_onboarded(payment_scene: PaymentScene) -> None:
    answer = await (await payment_scene.service.admin()).post("/api/stripe/onboarding_link")
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


async def test_an_onboarding_while_the_processor_is_down_is_answered_with_503(payment_scene: PaymentScene) -> None:
    ada = await payment_scene.service.organizer()
    payment_scene.processor.plan(Fault("down", "/accounts", times=9))

    answer = await ada.post("/api/stripe/onboarding_link")

    assert (answer.status_code, answer.json()["code"]) == (503, "service_unavailable")
    assert answer.headers["retry-after"]


async def test_a_service_without_a_processor_refuses_onboarding_only(service: Service) -> None:
    ada = await service.organizer()

    answer = await ada.post("/api/stripe/onboarding_link")

    assert (answer.status_code, answer.json()["code"]) == (503, "payments_not_configured")
    assert (await ada.create_event())["payment"]["status"] == "not_required"
    paid = await ada.create_event(pricing_mode="fixed", price=1200)
    assert paid["payment"]["status"] == "unavailable"
    page = await service.http.get(f"/events/{paid['id']}/embed", headers={"Accept": "text/html"})
    assert "cannot be paid here yet" in page.text
