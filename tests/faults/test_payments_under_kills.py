"""People pay while processes are killed: in the end the processor's books and ours agree to the minor unit."""

import asyncio
import os
import random
from pathlib import Path

import pytest

from holdfast.events.payments.reconciliation import reconcile
from holdfast.kit.operations.steps import Steps
from holdfast_demo.stripe.processor import StripeDouble
from holdfast_demo.stripe.webhooks import Endpoint
from tests.helpers.event_visitor import Visitor, field_value
from tests.helpers.events_service import Client, Service, eventually, running_events, unlimited
from tests.helpers.processes import Process, running_processes
from tests.helpers.serving import bind_port, serve_app

SOAK = "HOLDFAST_SOAK" in os.environ
KILLS = 100 if SOAK else 3
PEOPLE = 5_000 if SOAK else 90
TIMEOUT_SECONDS = 3_000 if SOAK else 100
SECRET = "whsec_of_the_tests"
PRICE = 1200
BASE_URL = "http://events.test"
SEATS = 2 * PEOPLE // 3
"""People who pay in time get a seat; the others wait, or were too late."""


async def test_a_person_who_paid_under_kills_has_the_seat_or_a_refund_and_no_other_has_a_seat(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = bind_port()
    address = port.url
    processor = StripeDouble(address)
    processor.webhooks.first_pause = 0.2
    monkeypatch.setenv("STRIPE_SECRET_KEY", processor.key)
    monkeypatch.setenv("STRIPE_API_BASE", address)
    monkeypatch.setenv("STRIPE_WEBHOOK_SECRET", SECRET)
    settings = unlimited(database_url, tmp_path).model_copy(update={"stripe_key": processor.key, "stripe_api": address})
    async with serve_app(processor.app, port), running_events(settings) as service, asyncio.timeout(TIMEOUT_SECONDS):
        ada = await service.organizer()
        account = (await ada.post("/api/stripe/onboarding_link")).json()["data"]["stripe_account_id"]
        processor.finish(account)
        await ada.post("/api/stripe/onboarding_link")
        fields = {"capacity": SEATS, "waitinglist_capacity": PEOPLE, "price": PRICE, "currency": "EUR"}
        event = (await ada.create_event(pricing_mode="fixed", **fields))["id"]
        with (
            running_processes(database_url, tmp_path, 1, base_url=BASE_URL) as first,
            running_processes(database_url, tmp_path, 1) as second,
        ):
            processor.webhooks.endpoints.append(Endpoint(f"{first[0].url}/stripe/webhook", SECRET))
            _, removed, _ = await asyncio.gather(
                register(service, event),
                pay(processor, service, ada, event),
                kill([*first, *second], service),
            )
            await eventually(lambda: in_order(service), seconds=300 if SOAK else 40)
        rows = dict(await count(service))
        compared = await reconcile(Steps(service.database))
        [refunds] = await service.run_sql("select count(*), coalesce(sum(amount), 0)::bigint from refunds")

    assert compared.differences == []
    assert sum(rows.values()) == PEOPLE - removed
    assert rows.keys() <= {"registered", "waitlisted", "rejected"}
    assert rows["registered"] == SEATS
    processor.check()
    charges = processor.things("charge")
    assert compared.compared == len(charges)
    assert sum(charge["amount"] - charge["amount_refunded"] for charge in charges) == PRICE * rows["registered"]
    assert refunds[0] == removed
    assert (len(processor.things("refund")), sum(processor.books.moved("refund").values())) == refunds
    print(f"{KILLS} kills, {PEOPLE} people, {len(charges)} payments, {refunds[0]} refunds, {rows['registered']} seats")
    processor.close()


async def register(service: Service, event: int) -> None:
    """All people send the form."""
    visitor = Visitor(service)
    token = field_value(await visitor.open(event), "token")

    async def send(number: int) -> None:
        answer = await visitor.post(event, token=token, email=f"{number}@example.com")
        assert answer.status_code == 303

    for first in range(0, PEOPLE, 10):
        await asyncio.gather(*map(send, range(first, first + 10)))


async def pay(processor: StripeDouble, service: Service, ada: Client, event: int) -> int:
    """Pay most of the pages that are opened; for the others the time is up. Wait until no person has to pay.

    The organizer removes some who have paid, often before the service knows of it. Returns how many.
    """
    seen: set[str] = set()
    removed = 0

    async def nobody_is_left() -> bool:
        nonlocal removed
        newest = processor.execute("GET", "/v1/checkout/sessions", {"status": "open", "limit": 100})["data"]
        for session in newest:
            if session["id"] not in seen:
                seen.add(session["id"])
                if random.random() < 0.9:
                    processor.pay(session["id"])
                    removed += random.random() < 0.1 and await remove(service, ada, event, session["id"])
        await service.run_sql(
            "update payments set ends_at = now(), due_at = now() where state = 'open' and session_id = any(%(ids)s)"
            " and ends_at > now()",
            ids=[*seen],
        )
        left = {"pending", "held"} & {status for status, _ in await count(service)}
        registered = sum(number for _, number in await count(service))
        return registered == PEOPLE - removed and not left

    await eventually(nobody_is_left, seconds=TIMEOUT_SECONDS)
    return removed


async def remove(service: Service, ada: Client, event: int, session_id: str) -> bool:
    """Remove the registration that a session is for. Returns whether the service knew the session already."""
    payments = await service.run_sql(
        "select public_id from payments join users on users.id = user_id where session_id = %(id)s", id=session_id
    )
    for (handle,) in payments:
        assert (await ada.delete(f"/api/registrations/{event}/{handle}")).status_code == 204
    return bool(payments)


async def kill(processes: list[Process], service: Service) -> None:
    """Kill one of the processes whenever some more sessions were opened."""
    between = SEATS // (KILLS + 1)
    for number in range(KILLS):
        until = number * between + random.randint(1, between)

        async def is_time(until: int = until) -> bool:
            opened = await service.run_sql("select count(*) from payments where session_id is not null")
            return int(str(opened[0][0])) >= until

        await eventually(is_time, seconds=TIMEOUT_SECONDS)
        process = random.choice(processes)
        process.kill()
        await asyncio.to_thread(process.start)


async def in_order(service: Service) -> bool:
    """Whether nothing is on its way any more. What waits for a later attempt is due at once."""
    await service.run_sql("update payments set due_at = now() where due_at is not null")
    await service.run_sql("update refunds set due_at = now() where state = 'wanted'")
    [(waiting,)] = await service.run_sql(
        "select (select count(*) from payments where state in ('opening', 'open'))"
        " + (select count(*) from refunds where state = 'wanted')"
    )
    return waiting == 0


async def count(service: Service) -> list[tuple[str, int]]:
    return [
        (str(status), int(number))
        for status, number in await service.run_sql("select status::text, count(*) from registrations group by status")
    ]
