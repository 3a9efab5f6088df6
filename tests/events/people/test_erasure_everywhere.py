"""Erasing a person leaves nothing in the whole database that names the person or opens a commitment in a public log."""

import asyncio
import base64
from typing import Any
from uuid import UUID

import pytest

from holdfast.events import ownership
from holdfast.events.api import OPERATIONS
from holdfast.events.people.model import AccountSelector
from holdfast.events.registrations.people_in_answers import PEOPLE_IN_ANSWERS
from holdfast.events.registrations.substring_search import index_batch
from holdfast.events.resources import Tx
from holdfast.events.service import EVENTS
from holdfast.kit.contract.command import Repeatable
from tests.events.check_in.check_in_scene import Entrance
from tests.events.log.pending import accept
from tests.events.mails.post import tell_changes
from tests.events.pages.own_data import ask_for_own_data
from tests.events.pages.own_registration import own_path
from tests.helpers.events_service import Client, Service
from tests.helpers.form_browser import Browser
from tests.helpers.locked_rows import hold_locks
from tests.helpers.payments import PaymentScene
from tests.helpers.people import end_event, erase, handle_of, list_registrations, sign_up
from tests.helpers.sealing import seal_once

ANN = "ann@example.com"


def spellings(text: str) -> set[str]:
    """How a text may stand in a row that PostgreSQL writes as text: as it is, or as bytes in hexadecimal."""
    return {text.lower(), text.encode().hex()}


def spellings_of_nonce(nonce: str) -> set[str]:
    value = UUID(nonce)
    encoded = base64.b64encode(value.bytes).decode().rstrip("=")
    return {
        spelling
        for text in (nonce, value.hex, encoded, encoded.replace("+", "-").replace("/", "_"))
        for spelling in spellings(text)
    }


async def rows(service: Service) -> dict[str, str]:
    """Every row of every table of the database as text, by table. What is sealed is there as plain text too."""
    tables = await service.run_sql(
        """
        select quote_ident(schemaname) || '.' || quote_ident(tablename), tablename = 'functions' from pg_tables
         where schemaname not in ('pg_catalog', 'information_schema') order by 1
        """
    )
    texts_of_tables: dict[str, str] = {}
    for table, is_code in tables:
        if not is_code:
            texts = await service.run_sql(f"select t::text from {table} as t")
            texts_of_tables[str(table)] = "\n".join(str(text) for (text,) in texts).lower()
    secret = service.database.resources.secret
    for table in EVENTS.sealed:
        contents = await service.run_sql(f"select sealed from {table.table} where octet_length(sealed) > 0")
        texts_of_tables[f"{table.table}, unsealed"] = "\n".join(secret.unseal(sealed) for (sealed,) in contents).lower()
    return texts_of_tables


async def register_with_key(
    ada: Client, event: dict[str, Any], status: int = 202, key: str = "", **person: str
) -> dict[str, Any]:
    """Register a person by the API, with an Idempotency-Key of the event."""
    key = key or f"key of {event['id']}"
    answer = await ada.post(
        "/api/registrations",
        {"registration": {"event_id": event["id"], **person}},
        headers={"Idempotency-Key": key},
    )
    assert answer.status_code == status, answer.text
    return answer.json()


@pytest.mark.parametrize("sealed", [True, False])
async def test_no_column_of_any_table_has_data_or_a_nonce_of_an_erased_person(
    payment_scene: PaymentScene, sealed: bool
) -> None:
    service, ada = payment_scene.service, await payment_scene.organizer()
    past, coming, called, unsettled, removed = [await ada.create_event(capacity=5) for _ in range(5)]
    for event in (past, coming):
        await sign_up(service, event, "ann", "bob")
    receipts = [
        (await register_with_key(ada, event, email="Ann@example.com"))["receipt"] for event in (called, past, removed)
    ]
    handle = await handle_of(service, ANN)
    await register_with_key(ada, called, key="again", user_id=handle)
    await register_with_key(ada, called, key="bob", email="bob@example.com")
    await service.settle()
    await ada.delete(f"/api/registrations/{removed['id']}/{handle}")
    bought = [await payment_scene.event(ada, capacity=2) for _ in range(2)]
    for event_id in bought:
        await (await payment_scene.register(event_id, ANN)).pay()
        await payment_scene.deliver()
    await end_event(service, past)
    await end_event(service, {"id": bought[0]})
    await service.run_sql("update events set datetime = now() + interval '1 hour' where id = %(id)s", id=coming["id"])
    await Entrance(service, ada, coming).scan("ann")
    browser = Browser(service)
    await browser.sign_in(ANN)
    await Browser(service).ask(ANN)
    await ask_for_own_data(service, await own_path(service, coming["id"], ANN))
    await ada.patch(f"/api/events/{called['id']}", {"event": {"location_name": "Studio 8"}})
    await tell_changes(service)
    await service.run_sql("insert into searched_events (event_id) values (%(id)s)", id=past["id"])
    await service.database.transact(lambda tx: index_batch(tx, event_id=past["id"]))
    await service.run_sql("update users set name = 'Annabel Smith' where email = %(email)s", email=ANN)
    await accept(service, unsettled["id"], "ann")
    if sealed:
        await seal_once(service.database)
    nonces = [
        str(nonce)
        for (nonce,) in await service.run_sql(
            "select nonce::text from registrations join users on users.id = user_id where email = %(email)s", email=ANN
        )
    ]
    needles = {ANN: spellings(ANN), "Ann Example": spellings("Ann Example"), "Annabel": spellings("Annabel")}
    needles |= {handle: spellings(handle)}
    needles |= {nonce: spellings_of_nonce(nonce) for nonce in (*nonces, *(receipt["nonce"] for receipt in receipts))}
    assert len(needles) >= 4 + 6
    before = "\n".join((await rows(service)).values())
    assert not [needle for needle, ways in needles.items() if not any(way in before for way in ways)]

    await erase(service)

    after = await rows(service)
    assert [
        (needle, table)
        for needle, ways in needles.items()
        for table, text in after.items()
        for way in ways
        if way in text
    ] == []
    assert "bob@example.com" in after["public.users"]
    assert (await register_with_key(ada, called, key="bob", email="bob@example.com"))["receipt"]["nonce"]


async def test_a_request_repeated_after_the_erasure_is_refused_and_registers_no_person(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await register_with_key(ada, event, email=ANN)
    await service.settle()

    await erase(service)

    again = await register_with_key(ada, event, 422, email=ANN)
    assert again["code"] == "idempotency_key_reused"
    assert "It was about a person whose data was erased since." in again["error"]
    assert await list_registrations(ada, event) == []
    assert (await register_with_key(ada, event, 422, email="bob@example.com"))["code"] == "idempotency_key_reused"
    assert (await register_with_key(ada, event, key="new", email=ANN))["status"] == "accepted"


async def test_a_registration_that_is_repeated_while_the_person_is_erased_leaves_no_nonce(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    await register_with_key(ada, event, email=ANN)
    await service.settle()
    handle = await handle_of(service, ANN)
    is_erased, may_commit = asyncio.Event(), asyncio.Event()

    async def erase_slowly(tx: Tx) -> None:
        await ownership.erase(tx, AccountSelector(email=ANN))
        is_erased.set()
        await may_commit.wait()

    erasure = asyncio.create_task(service.database.transact(erase_slowly))
    await is_erased.wait()
    receipt = (await register_with_key(ada, event, key="meanwhile", user_id=handle))["receipt"]
    may_commit.set()
    await erasure

    everything = "\n".join((await rows(service)).values())
    assert not [way for way in spellings_of_nonce(receipt["nonce"]) | spellings(handle) if way in everything]


async def test_an_erasure_waits_for_a_registration_that_is_being_repeated(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    receipt = (await register_with_key(ada, event, email=ANN))["receipt"]
    await service.settle()
    handle = await handle_of(service, ANN)

    async with hold_locks(service.database.url, PEOPLE_IN_ANSWERS.find_known, people=[handle]) as repeated:
        erasure = asyncio.create_task(erase(service))
        await repeated.wait_for_waiters()
        await repeated.commit()
    await erasure

    everything = "\n".join((await rows(service)).values())
    assert not [way for way in spellings_of_nonce(receipt["nonce"]) | spellings(handle) if way in everything]


def test_a_stored_answer_is_about_a_person_only_for_registrations() -> None:
    """Another operation with an Idempotency-Key needs a place in one of the two sets: see `person_of`."""
    about_people = {"create_registration"}
    about_nobody = {
        *("create_api_key", "create_event", "add_event_photo", "presign_upload", "create_queue", "join_queue"),
        "create_webhook_endpoint",
    }

    assert {
        operation.name for operation in OPERATIONS if operation.takes_idempotency_key
    } == about_people | about_nobody
    assert not any(issubclass(operation.command, Repeatable) for operation in OPERATIONS)
