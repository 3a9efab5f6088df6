"""An accepted person gets a receipt, and the log has what the receipt promises."""

import asyncio
from base64 import b64decode
from typing import Any

import msgspec

from holdfast.events.log.keys import signing_key
from holdfast_verify.formats.entries import commitment, person_text
from holdfast_verify.formats.receipts import Receipt, verify_receipt
from holdfast_verify.formats.signed_note import Signer
from tests.events.log.log_scene import LogScene
from tests.helpers.events_service import Client, Service


async def promise_of(service: Service, answer: dict[str, Any]) -> Any:
    """The promise of a receipt, verified with the key that the service publishes."""
    receipt = msgspec.convert(answer["receipt"], Receipt)
    key = await service.database.transact(signing_key)
    [published] = (await service.http.get("/log/keys")).json()["keys"]
    assert b64decode(published["public_key"]) == key.public_key().public_bytes_raw()
    return verify_receipt(receipt, Signer("events.test/log/promises", key).vkey)


async def log_of(service: Service, noun: str, id: int) -> LogScene:
    [(log_id,)] = await service.run_sql(f"select id from logs where {noun[:-1]}_id = %(id)s", id=id)
    return LogScene(service, log_id, f"/log/{noun}/{id}")


async def register(organizer: Client, event_id: int, email: str, **options: Any) -> dict[str, Any]:
    body = {"registration": {"event_id": event_id, "email": email}}
    answer = await organizer.post("/api/registrations", body, **options)
    assert answer.status_code == 202, answer.text
    return answer.json()


async def test_registrations_of_a_batch_get_receipts_whose_promises_the_log_keeps(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()

    answers = await asyncio.gather(*(register(ada, event["id"], f"guest{number}@example.com") for number in range(5)))

    await service.settle()
    log = await log_of(service, "events", event["id"])
    await log.seal()
    entries = {entry["person"]: entry for entry in await log.read() if entry["kind"] == "arrival"}
    assert len(entries) == 5
    for answer in answers:
        promise = await promise_of(service, answer)
        user_id = answer["next"]["url"].rpartition("/")[2]
        nonce = bytes.fromhex(answer["receipt"]["nonce"])
        assert promise.person == person_text(commitment(f"event {event['id']}", user_id, nonce))
        entry = entries[promise.person]
        assert (promise.log, promise.at) == (f"http://events.test/log/events/{event['id']}", entry["at"])
        status = await ada.get(answer["next"]["url"])
        proof = f"http://events.test/log/events/{event['id']}/proofs/{entry['number']}"
        assert status.headers["link"] == f'<{proof}>; rel="receipt"'
        assert "link" not in status.json()
        assert (await service.http.get(proof)).status_code == 200


async def test_a_repeated_registration_is_promised_the_same(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    keyed = {"headers": {"Idempotency-Key": "once"}}

    first = await register(ada, event["id"], "ann@example.com", **keyed)
    repeated, (again, _) = (
        await register(ada, event["id"], "ann@example.com", **keyed),
        await asyncio.gather(*(register(ada, event["id"], email) for email in ("ann@example.com", "ben@example.com"))),
    )

    assert repeated == first
    assert await promise_of(service, again) == await promise_of(service, first)
    assert again["receipt"]["nonce"] == first["receipt"]["nonce"]


async def test_a_rejected_registration_links_to_its_proof_and_one_without_a_log_has_no_promise(
    service: Service,
) -> None:
    ada = await service.organizer()
    event = await ada.create_event(capacity=1)
    await register(ada, event["id"], "ann@example.com")
    late = await register(ada, event["id"], "ben@example.com")
    assert "link" not in (await ada.get(late["next"]["url"])).headers
    await service.settle()

    rejected = await ada.get(late["next"]["url"])
    assert rejected.json()["code"] == "registration_rejected"
    assert rejected.headers["link"].endswith('/proofs/2>; rel="receipt"')

    private = await ada.create_event(public_log=False)
    accepted = await register(ada, private["id"], "ann@example.com")
    await service.settle()
    assert "receipt" not in accepted
    assert "link" not in (await ada.get(accepted["next"]["url"])).headers


async def test_a_visitor_of_a_queue_gets_a_receipt_for_the_ticket_that_the_log_keeps(service: Service) -> None:
    ada = await service.organizer()
    queue = await ada.create_queue()
    joined = [
        (await ada.post(f"/api/queues/{queue['id']}/join", {"visitor_id": visitor})).json()
        for visitor in ("ann", "ben", "ann")
    ]
    log = await log_of(service, "queues", queue["id"])
    await log.seal()

    arrivals = [entry for entry in await log.read() if entry["kind"] == "arrival"]

    promises = [await promise_of(service, answer) for answer in joined]
    assert [(promise.ticket, promise.person, promise.at) for promise in promises[:2]] == [
        (entry["number"], entry["person"], entry["at"]) for entry in arrivals
    ]
    assert promises[2] == promises[0]
