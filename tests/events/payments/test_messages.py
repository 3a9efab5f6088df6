"""Messages of the processor: accepted if it signed them, and harmless if they come twice, late or in any order."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.helpers.cases import in_turn
from tests.helpers.events_service import Service
from tests.helpers.payments import EVENT_BODY, SECRET, PaymentScene, signature_header

ANN = "ann@example.com"


@in_turn(
    ("header", "why"),
    [
        (lambda: "", "missing"),
        (lambda: "v1=00", "cannot be read"),
        (lambda: "t=now,v1=00", "cannot be read"),
        (lambda: f"t=1,t=2,v1={'0' * 64}", "cannot be read"),
        (lambda: signature_header(EVENT_BODY, secret="whsec_of_another"), "not that of this endpoint"),
        (lambda: signature_header(EVENT_BODY + b" "), "not that of this endpoint"),
        (lambda: signature_header(EVENT_BODY, age=400), "more than five minutes ago"),
        (lambda: signature_header(EVENT_BODY, age=-400), "more than five minutes ago"),
    ],
)
async def test_a_message_that_the_processor_did_not_sign_now_is_refused(
    payment_scene: PaymentScene, header: Callable[[], str], why: str
) -> None:
    headers = {"Stripe-Signature": header(), "Content-Type": "application/json"}
    answer = await payment_scene.service.http.post("/stripe/webhook", content=EVENT_BODY, headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (400, "signature_refused")
    assert why in answer.json()["error"]
    assert await payment_scene.service.run_sql("select count(*) from processor_events") == [(0,)]


async def test_two_secrets_are_accepted_while_one_replaces_the_other(payment_scene: PaymentScene) -> None:
    resources = payment_scene.service.database.resources
    both = resources.settings.model_copy(update={"stripe_webhook_secret": f"whsec_new,{SECRET}"})
    payment_scene.service.database.resources = replace(resources, settings=both)

    assert await payment_scene.tell(signature_header(EVENT_BODY), EVENT_BODY) == 204
    assert await payment_scene.tell(signature_header(EVENT_BODY, secret="whsec_new"), EVENT_BODY) == 204


@in_turn("body", [b"[]", b'{"id": 7}', b'"text"', b"\xff", b'{"id": "\xff"}', b"[" * 2_000, b'{"x":' + b"[" * 2_000])
async def test_a_signed_body_that_is_no_event_is_refused(payment_scene: PaymentScene, body: bytes) -> None:
    assert await payment_scene.tell(signature_header(body), body) == 400


async def test_a_message_about_an_unknown_object_is_accepted_and_changes_nothing(payment_scene: PaymentScene) -> None:
    assert await payment_scene.tell(signature_header(EVENT_BODY), EVENT_BODY) == 204
    assert await payment_scene.tell(signature_header(EVENT_BODY), EVENT_BODY) == 204
    assert await payment_scene.service.run_sql("select id, object_id from processor_events") == [("evt_1", "cs_1")]


async def test_a_checkout_of_a_stranger_with_the_same_reference_is_not_taken_for_ours(
    payment_scene: PaymentScene,
) -> None:
    """A payer who follows a payment link of the same account chooses the reference, and other services count from 1
    too.
    """
    event_id = await payment_scene.event(await payment_scene.organizer())
    buyer = await payment_scene.register_without_work(event_id, ANN)
    [(payment_id,)] = await payment_scene.service.run_sql("select id from payments")
    page = {"id": "cs_of_others", "object": "checkout.session", "client_reference_id": str(payment_id)}
    for number, url in enumerate((None, "https://others.example/thanks")):
        event = {"id": f"evt_{number}", "type": "checkout.session.completed"}
        body = json.dumps({**event, "data": {"object": {**page, "success_url": url}}}).encode()
        assert await payment_scene.tell(signature_header(body), body) == 204

    await payment_scene.work()

    assert await buyer.session() != "cs_of_others"
    await buyer.pay()
    await payment_scene.deliver()
    assert await payment_scene.counts(event_id) == {"registered": 1}


async def test_a_message_is_refused_without_a_webhook_secret(service: Service) -> None:
    headers = {"Stripe-Signature": signature_header(EVENT_BODY), "Content-Type": "application/json"}
    answer = await service.http.post("/stripe/webhook", content=EVENT_BODY, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (503, "payments_not_configured")


async def test_messages_sent_twice_and_newest_first_seat_a_person_once(payment_scene: PaymentScene) -> None:
    event_id = await payment_scene.event(await payment_scene.organizer(), capacity=2)
    payment_scene.processor.webhooks.copies = 2
    payment_scene.processor.webhooks.newest_first = True
    people = [await payment_scene.register(event_id, email) for email in (ANN, "ben@example.com")]
    for person in people:
        await person.pay()

    assert set(await payment_scene.deliver()) == {204}
    await payment_scene.deliver()

    assert await payment_scene.counts(event_id) == {"registered": 2}
    assert (payment_scene.moved_amount("charge"), payment_scene.moved_amount("refund")) == (2400, 0)


async def test_a_lost_message_is_replaced_by_a_request_to_the_processor_at_the_end_of_the_time(
    payment_scene: PaymentScene,
) -> None:
    payment_scene.processor.webhooks.hold = True
    event_id = await payment_scene.event(await payment_scene.organizer())
    ann = await payment_scene.register(event_id, ANN)
    await ann.pay()

    await payment_scene.time_is_up()

    assert await payment_scene.counts(event_id) == {"registered": 1}


@pytest.mark.parametrize("setting", [f"{SECRET}, ", f" ,{SECRET}", f"whsec_new, {SECRET}"])
async def test_a_blank_webhook_secret_accepts_no_signature(payment_scene: PaymentScene, setting: str) -> None:
    resources = payment_scene.service.database.resources
    blank = resources.settings.model_copy(update={"stripe_webhook_secret": setting})
    payment_scene.service.database.resources = replace(resources, settings=blank)

    assert await payment_scene.tell(signature_header(EVENT_BODY, secret=" "), EVENT_BODY) == 400
    assert await payment_scene.tell(signature_header(EVENT_BODY), EVENT_BODY) == 204
